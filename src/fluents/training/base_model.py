"""The base model and its tokenizer, from the GGUF, as objects of transformers that agree with llama.cpp."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fluents.errors import InputError, needs_extra
from fluents.neural.checkpoint import WEIGHTS, save_weights, weights
from fluents.neural.network import Network
from fluents.prompts.transcript import END
from fluents.training.engine_arithmetic import EngineModel
from fluents.weights import ensure

with needs_extra("train"):
    import gguf
    import torch
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers
    from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast

_SPECIAL = 3
"""The type of special tokens in a GGUF file."""

_WORDS = {
    "qwen2": [
        pre_tokenizers.Split(
            Regex(
                r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
                r"|\s*[\r\n]+|\s+(?!\S)|\s+"
            ),
            "isolated",
        ),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
    ],
    "smollm": [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)],
}
"""How a text is parted into words before its tokens are looked up, by the name that a GGUF file gives to it."""


def load_tokenizer(base: Path) -> Any:
    """The tokenizer of base weights. transformers' own conversion forgets that SmolLM2 parts numbers into digits."""
    fields = gguf.GGUFReader(str(base)).fields
    tokens, merges, types, words = (
        fields[f"tokenizer.ggml.{name}"].contents() for name in ("tokens", "merges", "token_type", "pre")
    )
    if words not in _WORDS:
        raise InputError(f"unsupported tokenizer {words!r}", where=base, fix="choose another `model`")
    vocabulary = {token: number for number, token in enumerate(tokens)}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[tuple(pair.split(" ")) for pair in merges]))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(_WORDS[words])
    tokenizer.decoder = decoders.ByteLevel()
    special = (token for token, kind in zip(tokens, types, strict=True) if kind == _SPECIAL)
    tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in special])
    return tokenizer


def end_token(tokenizer: Any) -> int:
    """The token that ends an answer. transformers takes another for the end of the text."""
    found: int = tokenizer.token_to_id(END)
    return found


def load_model(base: Path, device: str, dtype: Any = torch.float32) -> Any:
    model = AutoModelForCausalLM.from_pretrained(
        base.parent,
        gguf_file=base.name,
        dtype=dtype,
        local_files_only=True,
        attn_implementation="eager",  # with the others, gradients of padded batches became NaN for Qwen2
    )
    if getattr(model.config, "quantization_config", None) is not None:
        del model.config.quantization_config  # the weights are plain by now; peft would look for quantised layers
    return model.to(device)


def load_engine_model(base: Path, adapter: Path | None, device: str) -> EngineModel:
    """The model with llama.cpp's arithmetic: it gives llama.cpp's answers, but is slower. For comparisons."""
    return EngineModel(base, adapter, device)


def encode(tokenizer: Any, text: str) -> list[int]:
    ids: list[int] = tokenizer.encode(text, add_special_tokens=False).ids
    return ids


def export_base(out: Path) -> None:
    """Write the base weights `tiny` as a transformers folder, which `fluents train neural` can start from."""
    if out.exists() and any(out.iterdir()):
        raise InputError("the output folder (`out`) is not empty", where=out, fix="choose another folder")
    out.mkdir(parents=True, exist_ok=True)  # before the weights are loaded: it may not be writable
    write_folder(ensure("tiny"), out)


def write_folder(base: Path, folder: Path) -> None:
    tokenizer = load_tokenizer(base)
    model = load_model(base, "cpu")
    model.config.eos_token_id = model.config.pad_token_id = end_token(tokenizer)
    folder.mkdir(parents=True, exist_ok=True)
    model.config.save_pretrained(folder)
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token=END, pad_token=END).save_pretrained(folder)
    # The library's own way refuses: to it the model is still quantised.
    save_weights(weights(Network(model, memory=False)), folder / WEIGHTS)
