"""The base model and its tokenizer, from the GGUF, as transformers objects that agree with llama.cpp."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fluents.errors import InputError, needs_extra
from fluents.neural.checkpoint import WEIGHTS, save_weights, weights
from fluents.neural.network import Network
from fluents.weights import ensure

with needs_extra("train"):
    import torch
    from tokenizers import pre_tokenizers
    from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedTokenizerFast

END = 2
"""<|im_end|>, the GGUF's end of text; the tokenizer transformers makes of it names another token."""


def load_tokenizer(base: Path) -> Any:
    tokenizer = AutoTokenizer.from_pretrained(base.parent, gguf_file=base.name, local_files_only=True)
    # The conversion forgets that this model splits numbers into digits first; llama.cpp does not.
    tokenizer.backend_tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    return tokenizer


def load_model(base: Path, device: str, dtype: Any = torch.float32) -> Any:
    model = AutoModelForCausalLM.from_pretrained(base.parent, gguf_file=base.name, dtype=dtype, local_files_only=True)
    if getattr(model.config, "quantization_config", None) is not None:
        del model.config.quantization_config  # the weights are plain by now; peft would look for quantised layers
    return model.to(device)


def encode(tokenizer: Any, text: str) -> list[int]:
    ids: list[int] = tokenizer(text, add_special_tokens=False)["input_ids"]
    return ids


def export_base(out: Path) -> None:
    """Write the base weights `tiny` as a transformers folder, which `fluents train neural` can start from."""
    if out.exists() and any(out.iterdir()):
        raise InputError("the folder `out` is not empty", where=out, fix="choose another folder")
    out.mkdir(parents=True, exist_ok=True)  # before the weights are loaded: it may not be writable
    write_folder(ensure("tiny"), out)


def write_folder(base: Path, folder: Path) -> None:
    inner = load_tokenizer(base).backend_tokenizer
    end = inner.id_to_token(END)
    model = load_model(base, "cpu")
    model.config.eos_token_id = model.config.pad_token_id = END
    folder.mkdir(parents=True, exist_ok=True)
    model.config.save_pretrained(folder)
    PreTrainedTokenizerFast(tokenizer_object=inner, eos_token=end, pad_token=end).save_pretrained(folder)
    # The library's own way refuses: to it the model is still quantised.
    save_weights(weights(Network(model, memory=False)), folder / WEIGHTS)
