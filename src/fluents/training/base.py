"""The base model and its tokenizer, from the GGUF, as transformers objects that agree with llama.cpp."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from fluents.errors import MissingExtraError

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

try:
    import torch
    from tokenizers import pre_tokenizers
    from transformers import AutoModelForCausalLM, AutoTokenizer
except ImportError as error:
    raise MissingExtraError(error.name or "torch", "train") from None

END = 2
"""<|im_end|>, the GGUF's end of text; the tokenizer transformers makes of it names another token."""


def load_tokenizer(base: Path) -> Any:
    tokenizer = AutoTokenizer.from_pretrained(base.parent, gguf_file=base.name)
    # The conversion forgets that this model splits numbers into digits first; llama.cpp does not.
    tokenizer.backend_tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    return tokenizer


def load_model(base: Path, device: str, dtype: Any = torch.float32) -> Any:
    model = AutoModelForCausalLM.from_pretrained(base.parent, gguf_file=base.name, dtype=dtype)
    if getattr(model.config, "quantization_config", None) is not None:
        del model.config.quantization_config  # the weights are plain by now; peft would look for quantised layers
    return model.to(device)


def encode(tokenizer: Any, text: str) -> list[int]:
    ids: list[int] = tokenizer(text, add_special_tokens=False)["input_ids"]
    return ids


def best_device() -> str:
    return "cuda" if torch.cuda.is_available() else "cpu"
