"""Tiny models with tokenizers of their own, and procedures to teach them: written for these tests."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from fluents.neural.inputs import answer, question
from fluents.records import Procedure, StateChange, Trace

if TYPE_CHECKING:
    from fluents.neural.checkpoint import Trained

_PROCEDURES: dict[str, tuple[tuple[str, tuple[tuple[str, str, str, str], ...]], ...]] = {
    "Brew tea": (
        ("Boil the water.", (("water", "temperature", "cold", "hot"), ("kettle", "state", "off, empty", "on"))),
        ("Pour it on the leaves.", (("water", "location", "in kettle", "in pot"), ("leaves", "wetness", "dry", "wet"))),
        ("Wait.", (("water", "temperature", "hot", "warm"),)),
        ("Read the paper.", ()),
    ),
    "Plant a bean": (
        ("Fill the pot with soil.", (("pot", "fullness", "empty", "full"),)),
        ("Press the bean in.", (("bean", "location", "in hand", "in soil"), ("soil", "shape", "flat", "dented"))),
        ("Water it.", (("soil", "wetness", "dry", "wet"),)),
        ("Water it.", (("soil", "wetness", "wet", "soaked"), ("can", "weight", "heavy", "light"))),
    ),
}
"""Eight steps in two procedures. The last two of the second are worded alike: only the past tells them apart."""


def gold() -> list[Trace]:
    """The procedures with their changes."""
    traces = []
    for goal, steps in _PROCEDURES.items():
        changes = [
            StateChange(step=number, entity=entity, attribute=attribute, before=before, after=after)
            for number, (_, said) in enumerate(steps, start=1)
            for entity, attribute, before, after in said
        ]
        procedure = Procedure(id=goal.lower().replace(" ", "-"), goal=goal, steps=tuple(text for text, _ in steps))
        traces.append(Trace(procedure=procedure, changes=tuple(changes)))
    return traces


def model_folder(folder: Path, arch: str, *, dropout: float = 0.0) -> Path:
    """A folder with the configuration of a tiny model and a tokenizer trained on the procedures above."""
    import transformers

    tokenizer = _tokenizer(arch)
    shape: dict[str, Any] = {"vocab_size": len(tokenizer), "pad_token_id": 1, "eos_token_id": 2}
    if arch == "gpt2":
        size = {"n_embd": 64, "n_layer": 2, "n_head": 4, "n_positions": 256}
        drop = {"resid_pdrop": dropout, "embd_pdrop": dropout, "attn_pdrop": dropout}
        config = transformers.GPT2Config(**shape, **size, **drop, bos_token_id=2)
    elif arch == "t5":
        size = {"d_model": 64, "d_kv": 16, "d_ff": 128, "num_layers": 2, "num_heads": 4}
        config = transformers.T5Config(**shape, **size, dropout_rate=dropout, decoder_start_token_id=1)
    else:
        cls, start = {"bart": (transformers.BartConfig, 2), "marian": (transformers.MarianConfig, 1)}[arch]
        size = {f"{side}_{what}": n for side in ("encoder", "decoder") for what, n in _SIDE.items()}
        config = cls(
            **shape,
            **size,
            d_model=64,
            max_position_embeddings=192,
            dropout=dropout,
            decoder_start_token_id=start,
            bos_token_id=0,
            forced_eos_token_id=None,
        )
    config.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


_SIDE = {"layers": 2, "attention_heads": 4, "ffn_dim": 128}


def _tokenizer(arch: str) -> Any:
    from tokenizers import ByteLevelBPETokenizer, processors
    from transformers import PreTrainedTokenizerFast

    texts = []
    for trace in gold():
        for step, _, changes in trace.by_step():
            texts += [question(trace.procedure, step).text(), answer(changes)]
    plain = ByteLevelBPETokenizer()
    plain.train_from_iterator(
        texts, vocab_size=400, special_tokens=["<s>", "<pad>", "</s>", "<unk>"], show_progress=False
    )
    if arch != "gpt2":
        single = "<s> $A </s>" if arch == "bart" else "$A </s>"
        plain._tokenizer.post_processor = processors.TemplateProcessing(
            single=single, special_tokens=[("<s>", 0), ("</s>", 2)]
        )
    return PreTrainedTokenizerFast(
        tokenizer_object=plain._tokenizer, eos_token="</s>", pad_token="<pad>", unk_token="<unk>"
    )


def begin(folder: Path, arch: str, system: str = "baseline", *, dropout: float = 0.0, seed: int = 1) -> Trained:
    """A tiny untrained system, its model's files in a folder below this one."""
    import torch

    from fluents.neural.checkpoint import begin as begin_

    torch.set_num_threads(1)  # these models are too small for more
    source = folder / f"{arch}-{dropout}"
    if not source.exists():
        model_folder(source, arch, dropout=dropout)
    return begin_(str(source), system, "openpi-c", arch=arch, from_scratch=True, seed=seed, download=False)
