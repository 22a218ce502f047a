"""llama.cpp's arithmetic in PyTorch: the same numbers as the embedded model's engine, to the last bit."""

from __future__ import annotations

import math
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fluents.errors import InputError
from fluents.records import Procedure
from fluents.trackers.embedded import Sampling

if os.environ.get("CI") != "true":
    pytest.importorskip("torch", reason="training: pip install 'fluents[train]'")

SIZES = {"Q8_0": (34, (0,)), "Q5_0": (22, (0,)), "Q4_1": (20, (0, 2)), "Q4_K": (144, (0, 2)), "Q6_K": (210, (208,))}
"""For each type of weights, the bytes of a block, and where its scales are."""


def _tensor(kind: str, rows: int, columns: int, seed: int = 1) -> Any:
    """A matrix of random weights, as the reader of GGUF files gives it."""
    import gguf

    bytes_each, scales = SIZES[kind]
    width = gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType[kind]][0]
    random = np.random.default_rng(seed)
    blocks = random.integers(0, 256, (rows, columns // width, bytes_each), np.uint8)
    for start in scales:
        values = random.uniform(0.001, 0.01, blocks.shape[:2]).astype(np.float16)
        blocks[..., start : start + 2] = values[..., None].view(np.uint8)
    return SimpleNamespace(name=kind, data=blocks.reshape(rows, -1), tensor_type=gguf.GGMLQuantizationType[kind])


@pytest.mark.parametrize("kind", SIZES)
@pytest.mark.parametrize("alone", [True, False])
def test_a_product_is_that_of_the_weights_and_the_rounded_activations(kind: str, alone: bool) -> None:
    """Every order of adding up is an order of the same numbers; eleven rows take each way that several rows can."""
    import gguf
    import torch

    from fluents.training.engine_products import _rounded, quantised_product

    tensor = _tensor(kind, 16, 512)
    rows = torch.from_numpy(np.random.default_rng(2).normal(size=(11, 512)).astype(np.float32))
    numbers, scales = _rounded(rows, 256 if kind.endswith("K") else 32)
    weights = torch.from_numpy(gguf.quants.dequantize(tensor.data, tensor.tensor_type)).double()
    expected = (numbers * scales[..., None]).flatten(1).double() @ weights.T
    found = quantised_product(tensor, Path("weights.gguf"), "cpu")(rows, alone)
    limit = 2e-3 if not kind.endswith("K") else 1e-5  # the scales of blocks of 32 are stored with 16 bits
    assert (found - expected).abs().max() < limit * expected.abs().max()


@pytest.mark.parametrize("kind", SIZES)
def test_a_row_alone_does_not_depend_on_the_others(kind: str) -> None:
    """An answer's tokens can be checked at once, though the engine wrote them one by one."""
    import torch

    from fluents.training.engine_products import quantised_product

    product = quantised_product(_tensor(kind, 8, 256), Path("weights.gguf"), "cpu")
    rows = torch.from_numpy(np.random.default_rng(3).normal(size=(9, 256)).astype(np.float32))
    assert torch.equal(product(rows, True), torch.cat([product(row, True) for row in rows.split(1)]))


def test_a_type_that_is_not_known_is_refused() -> None:
    import gguf

    from fluents.training.engine_products import quantised_product

    tensor = SimpleNamespace(name="blk.0.ffn_up.weight", data=b"", tensor_type=gguf.GGMLQuantizationType.IQ3_S)
    with pytest.raises(InputError, match=r"blk\.0\.ffn_up\.weight has the unsupported type IQ3_S"):
        quantised_product(tensor, Path("weights.gguf"), "cpu")


@given(st.integers(0, 2**32 - 1), st.integers(-20, 20), st.sampled_from([32, 256]))
def test_rounded_activations_are_half_a_step_away_at_most(seed: int, power: int, size: int) -> None:
    import torch

    from fluents.training.engine_products import _rounded

    rows = torch.from_numpy(np.random.default_rng(seed).normal(0, 2.0**power, (1, 256)).astype(np.float32))
    numbers, scales = _rounded(rows, size)
    assert numbers.abs().max() <= 127
    assert torch.equal(numbers, numbers.round())
    away = (numbers * scales[..., None] - rows.unflatten(-1, (-1, size))).abs()
    assert (away <= scales[..., None] * 0.5001).all()


def test_a_block_of_zeros_stays_one() -> None:
    import torch

    from fluents.training.engine_products import _rounded

    numbers, scales = _rounded(torch.zeros(1, 256), 256)
    assert numbers.abs().max() == 0 == scales.abs().max()


def test_halves_are_rounded_to_even_numbers() -> None:
    """The greatest of a block becomes 127; with a scale of 1, halves lie between two numbers."""
    import torch

    from fluents.training.engine_products import _rounded

    numbers, scales = _rounded(torch.tensor([[127.0, 0.5, 1.5, 2.5, -0.5, -1.5, *[0.0] * 26]]), 32)
    assert scales.tolist() == [[1.0]]
    assert numbers[0, 0, :6].tolist() == [127, 0, 2, 2, 0, -2]


def test_a_chain_rounds_each_sum_once() -> None:
    """(1 + 2^-12)^2 has 25 bits: with 24 its last one would be lost before 1 is taken away."""
    import torch

    from fluents.training.engine_products import _chain

    one = 1 + 2**-12
    found = _chain(torch.tensor([[-1.0], [one]]), torch.tensor([[1.0], [one]]))
    assert found.item() == 2**-11 + 2**-24


@given(st.floats(-87, 88, width=32))
def test_the_exponential_is_right_but_for_the_last_bits(value: float) -> None:
    import torch

    from fluents.training.engine_arithmetic import _exp

    assert _exp(torch.tensor([value])).item() == pytest.approx(math.exp(value), rel=3e-7)


def test_what_may_not_be_seen_has_no_chance() -> None:
    import torch

    from fluents.training.engine_arithmetic import _softmax

    chances = _softmax(torch.tensor([[0.0, -math.inf, 0.0, -500.0]]))
    assert chances.tolist() == [[0.5, 0.0, 0.5, 0.0]]


def _runs_the_same_code() -> bool:
    """Whether this machine's llama.cpp adds up in the order that we imitate."""
    import xllamacpp

    system = str(xllamacpp.get_system_info())
    return all(f"{feature} = 1" in system for feature in ("AVX2", "F16C", "FMA")) and "AVX512" not in system


@pytest.mark.slow
def test_it_would_write_what_the_engine_writes(real_weights: Path) -> None:
    """The second prompt goes on from the first: what the engine still holds was partly read, partly written."""
    import torch

    from fluents.prompts.transcript import Transcript, read_answer
    from fluents.trackers.transcript import transcript_engine
    from fluents.training.base_model import encode, end_token, load_tokenizer
    from fluents.training.engine_arithmetic import EngineModel
    from fluents.weights.adapters import open_adapter, unpacked

    if not _runs_the_same_code():
        pytest.skip("this machine's llama.cpp adds up in another order")
    adapter = unpacked(open_adapter("transcript-tiny").path)
    tokenizer, model = load_tokenizer(real_weights), EngineModel(real_weights, adapter)
    end = end_token(tokenizer)
    transcript = Transcript(Procedure(goal="Make tea", steps=("Boil the water.", "Pour it over the leaves.")))
    held: list[int] = []
    with transcript_engine(real_weights, adapter) as engine, torch.inference_mode():
        for step in (1, 2):
            prompt, sampling = transcript.prompt, Sampling(samples=1, temperature=0)
            [answer] = engine.continue_from(prompt, sampling, seed=1, fresh=step == 1)
            ids, written = encode(tokenizer, prompt), [*encode(tokenizer, answer.text), end]
            assert ids[: len(held)] == held
            logits = torch.cat([model.read(ids[len(held) :]), model.read(written[:-1], alone=True)])
            assert logits.argmax(-1).tolist() == written
            theirs = [token.logprob for token in answer.tokens]
            ours = logits.log_softmax(-1)[range(len(written)), written].tolist()[: len(theirs)]
            assert ours == pytest.approx(theirs, abs=1e-3)
            held = [*ids, *written[:-1]]
            transcript.answer(line.change for line in read_answer(answer.text, step)[0])
