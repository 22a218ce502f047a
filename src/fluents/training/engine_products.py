"""llama.cpp's products of matrices in PyTorch, to the last bit: which numbers are rounded, and in which order they are
added up. For its code for AVX2, FMA and F16C.

Whole numbers are added up first; 32 bits hold their sums as they are. What is left is a chain of products with the
scales of blocks, added up in order, often in several lanes.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fluents.errors import InputError, needs_extra

with needs_extra("train"):
    import gguf
    import torch
    from torch.nn.functional import pad

NUMBERS = {"cpu": 2**23, "cuda": 2**28}
"""How many products of one matrix are in memory at a time: more do not fit a processor's cache, or a GPU."""

Bytes = NDArray[np.uint8]
Product = Callable[[Any, bool], Any]
"""Multiplies rows of activations with a matrix, together or each alone."""


def quantised_product(tensor: Any, where: Path, device: str) -> Product:
    """The product with a matrix of a GGUF file."""
    kind = tensor.tensor_type.name
    if kind not in _KINDS:
        raise InputError(f"{tensor.name} has the unsupported type {kind}", where=where, fix="choose other base weights")
    arrays, product = _KINDS[kind]
    size = gguf.GGML_QUANT_SIZES[tensor.tensor_type][1]
    rows = np.array(tensor.data).reshape(len(tensor.data), -1, size)
    return product(*(torch.from_numpy(np.ascontiguousarray(array, np.float32)).to(device) for array in arrays(rows)))


class Adapted:
    """A matrix with a LoRA adapter beside it."""

    def __init__(self, whole: Product, down: Any, up: Any, scale: float) -> None:
        self._whole, self._down, self._up, self._scale = whole, down, up, scale

    def __call__(self, rows: Any, alone: bool) -> Any:
        low = half_product(rows, self._down, alone)
        return self._whole(rows, alone) + half_product(low, self._up, alone) * self._scale


class _Blocks32:
    """A matrix in blocks of 32: Q8_0 and Q5_0, or Q4_1 with a least value for each block.

    The activations are Q8_0, or Q8_1 with the sum of each block. Eight lanes add up the products of four numbers each.
    """

    def __init__(self, numbers: Any, scales: Any, least: Any = None) -> None:
        self._numbers = numbers.flatten(1).unflatten(1, (-1, 4)).permute(1, 2, 0).contiguous()
        self._scales = scales.T.contiguous()
        self._least = None if least is None else least.T.double()

    def __call__(self, rows: Any, _alone: bool) -> Any:
        return _in_parts(rows, self._numbers.shape[0] * self._numbers.shape[2], self._product)

    def _product(self, rows: Any) -> Any:
        numbers, scales = _rounded(rows, 32)
        halves = half(scales)
        dots = torch.bmm(numbers.flatten(1).unflatten(1, (-1, 4)).transpose(0, 1), self._numbers)
        both = halves.T[:, :, None] * self._scales[:, None]
        found = across(_chain(both[:, None], dots.unflatten(0, (-1, 8))))
        if self._least is None:
            return found
        sums = half(numbers.sum(-1) * scales)
        return found + _chain(self._least[:, None], sums.T[:, :, None])


class _Blocks256:
    """A matrix in Q4_K: eight sub-blocks in a block, each with a scale and a least value."""

    def __init__(self, numbers: Any, scales: Any, least: Any, least_scales: Any) -> None:
        self._numbers = numbers.flatten(1).unflatten(1, (-1, 64)).permute(1, 2, 0).contiguous()
        self._least = least.flatten(1).unflatten(1, (-1, 2)).permute(1, 2, 0).contiguous()
        self._scales, self._least_scales = scales.T.contiguous(), least_scales.T.contiguous()

    def __call__(self, rows: Any, alone: bool) -> Any:
        together = 0 if alone else len(rows) // 4 * 4  # four rows at a time have sums over quarters of blocks
        width = self._numbers.shape[0] * self._numbers.shape[2]
        parts = ((rows[:together], self._by_quarters), (rows[together:], self._by_blocks))
        return torch.cat([_in_parts(part, width, product) for part, product in parts if len(part)])

    def _by_quarters(self, rows: Any) -> Any:
        return self._sums(rows, 4)

    def _by_blocks(self, rows: Any) -> Any:
        return self._sums(rows, 1)

    def _sums(self, rows: Any, parts: int) -> Any:
        numbers, scales = _rounded(rows, 256)
        dots = torch.bmm(numbers.flatten(1).unflatten(1, (-1, 64)).transpose(0, 1), self._numbers)
        sums = numbers.unflatten(-1, (8, 32)).sum(-1).flatten(1).unflatten(1, (-1, 2)).transpose(0, 1)
        least = torch.bmm(sums, self._least)
        inverse = scales.T[:, :, None]
        found = []
        for factors, products in ((self._scales, dots), (self._least_scales, least)):
            if parts == 1:
                products = products.unflatten(0, (-1, 4)).sum(1, dtype=torch.float64).float()
            both = (inverse * factors[:, None]).repeat_interleave(parts, 0)
            found.append(_chain(both, products))
        return found[0] - found[1]


class _Blocks256Of16:
    """A matrix in Q6_K: sixteen sub-blocks in a block, each with a scale. The numbers are stored without their sign:
    32 too high."""

    def __init__(self, numbers: Any, scales: Any, parts: Any) -> None:
        rows, blocks = scales.shape
        lanes = numbers.reshape(rows, blocks, 2, 4, 8, 4).permute(1, 4, 2, 3, 5, 0)
        self._numbers = lanes.reshape(blocks * 16, 16, rows).contiguous()  # by block, lane and half of the block
        self._parts = parts.reshape(rows, blocks * 8, 2).permute(1, 2, 0).contiguous()
        self._scales = scales.T.contiguous()

    def __call__(self, rows: Any, alone: bool) -> Any:
        product = self._by_lanes if alone or len(rows) < 8 else self._by_blocks
        return _in_parts(rows, self._numbers.shape[0] * self._numbers.shape[2], product)

    def _lanes(self, numbers: Any) -> Any:
        rows, blocks, _ = numbers.shape
        lanes = numbers.reshape(rows, blocks, 2, 4, 8, 4).permute(1, 4, 2, 0, 3, 5).reshape(blocks * 16, rows, 16)
        dots = torch.bmm(lanes, self._numbers).unflatten(0, (blocks, 8, 2)).sum(2, dtype=torch.float64)
        sums = numbers.reshape(rows, blocks * 8, 2, 16).sum(-1).transpose(0, 1)
        return dots - 32 * torch.bmm(sums, self._parts).unflatten(0, (blocks, 8)).double()

    def _by_lanes(self, rows: Any) -> Any:
        numbers, scales = _rounded(rows, 256)
        both = scales.T[:, :, None] * self._scales[:, None]
        return across(_chain(both[:, None], self._lanes(numbers).float()))

    def _by_blocks(self, rows: Any) -> Any:
        numbers, scales = _rounded(rows, 256)
        dots = self._scales[:, None] * self._lanes(numbers).sum(1).float()
        return _chain(scales.T[:, :, None], dots)


def _in_parts(rows: Any, width: int, product: Callable[[Any], Any]) -> Any:
    """The product of so many rows at a time that their numbers fit into memory."""
    return torch.cat([product(part) for part in rows.split(max(1, NUMBERS[rows.device.type] // width))])


def _rounded(rows: Any, size: int) -> tuple[Any, Any]:
    """(whole numbers from -127 to 127, scales) of blocks of activations."""
    blocks = rows.unflatten(-1, (-1, size))
    most = blocks.abs().amax(-1)
    factors = torch.where(most > 0, quotient(127.0, most), 0.0)
    numbers = (blocks * factors[..., None]).round()
    if size == 32:
        return numbers, quotient(most, 127.0)
    return numbers, torch.where(most > 0, quotient(1.0, factors), 0.0)


def quotient(above: Any, below: Any) -> Any:
    """Rightly rounded, which PyTorch's own is not on every device."""
    above, below = (one.double() if torch.is_tensor(one) else one for one in (above, below))
    return (above / below).float()


def _chain(factors: Any, numbers: Any) -> Any:
    """Products added up in order, each sum rounded once: 64 bits hold a product of 32 bits as it is."""
    factors = factors.double()
    found = torch.zeros(torch.broadcast_shapes(factors.shape[1:], numbers.shape[1:]), device=numbers.device)
    for factor, number in zip(factors, numbers, strict=True):
        torch.addcmul(found, factor, number, out=found)
    return found


def across(lanes: Any) -> Any:
    """The sum over eight lanes."""
    lanes = lanes[4:] + lanes[:4]
    lanes = lanes[2:] + lanes[:2]
    return lanes[0] + lanes[1]


# Products of 16 bits


def half(numbers: Any) -> Any:
    return numbers.half().float()


def half_product(rows: Any, matrix: Any, alone: bool, *, padded: bool = False) -> Any:
    """Rows times a matrix of 16 bits: eight lanes for several rows, thirty-two for each row alone.

    What is left beyond a multiple of 32 numbers is then added up in 64 bits, unless the engine's numbers are `padded`
    with zeros.
    """
    rows, count = half(rows), rows.shape[-1]
    if not alone:
        return across(_half_lanes(rows, matrix, 8))
    whole = count if padded else count // 32 * 32
    found: Any = 0.0
    if whole:
        lanes = _half_lanes(rows[..., :whole], matrix[..., :whole], 32).unflatten(0, (4, 8))
        lanes = lanes[:2] + lanes[2:]
        lanes = lanes[0] + lanes[1]
        lanes = lanes[:4] + lanes[4:]
        found = ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])).double()
    if whole < count:
        found = found + rows[..., whole:].double() @ matrix[..., whole:].double().transpose(-1, -2)
    return found.float()


def _half_lanes(rows: Any, matrix: Any, lanes: int) -> Any:
    missing = -rows.shape[-1] % lanes
    above, below = (
        pad(one, (0, missing)).unflatten(-1, (-1, lanes)).movedim((-2, -1), (0, 1)) for one in (rows, matrix)
    )
    return _chain(above[..., :, None], below[..., None, :])


# How the types of a GGUF file are laid out


def _halves(blocks: Bytes, start: int) -> NDArray[np.float16]:
    return np.ascontiguousarray(blocks[..., start : start + 2]).view(np.float16)[..., 0]


def _q8_0(blocks: Bytes) -> tuple[NDArray[Any], ...]:
    return blocks[..., 2:].view(np.int8), _halves(blocks, 0)


def _q5_0(blocks: Bytes) -> tuple[NDArray[Any], ...]:
    fifth = np.unpackbits(blocks[..., 2:6], axis=-1, bitorder="little").astype(np.int8)
    low = np.concatenate([blocks[..., 6:] & 15, blocks[..., 6:] >> 4], -1).astype(np.int8)
    return low + 16 * fifth - 16, _halves(blocks, 0)


def _q4_1(blocks: Bytes) -> tuple[NDArray[Any], ...]:
    numbers = np.concatenate([blocks[..., 4:] & 15, blocks[..., 4:] >> 4], -1)
    return numbers, _halves(blocks, 0), _halves(blocks, 2)


def _q4_k(blocks: Bytes) -> tuple[NDArray[Any], ...]:
    """The numbers are already multiplied with the scales of their sub-blocks."""
    first, second, third = blocks[..., 4:8], blocks[..., 8:12], blocks[..., 12:16]
    scales = np.concatenate([first & 63, (third & 15) | (first >> 6 << 4)], -1)
    least = np.concatenate([second & 63, (third >> 4) | (second >> 6 << 4)], -1)
    packed = blocks[..., 16:].reshape(*blocks.shape[:2], 4, 1, 32)
    numbers = np.concatenate([packed & 15, packed >> 4], -2).reshape(*blocks.shape[:2], 8, 32)
    return numbers.astype(np.int16) * scales[..., None], _halves(blocks, 0), least, _halves(blocks, 2)


def _q6_k(blocks: Bytes) -> tuple[NDArray[Any], ...]:
    """The numbers are already multiplied with the scales of their sub-blocks."""
    low = blocks[..., :128].reshape(*blocks.shape[:2], 2, 2, 32)
    high = blocks[..., 128:192].reshape(*blocks.shape[:2], 2, 1, 32)
    shifts = np.array([0, 2, 4, 6], np.uint8)[:, None]
    numbers = np.concatenate([low & 15, low >> 4], -2) | ((high >> shifts & 3) << 4)
    scales = blocks[..., 192:208].view(np.int8).astype(np.int16)
    return numbers.reshape(*blocks.shape[:2], 16, 16) * scales[..., None], _halves(blocks, 208), scales


_KINDS: dict[str, tuple[Callable[[Bytes], tuple[NDArray[Any], ...]], Callable[..., Product]]] = {
    "Q8_0": (_q8_0, _Blocks32),
    "Q5_0": (_q5_0, _Blocks32),
    "Q4_1": (_q4_1, _Blocks32),
    "Q4_K": (_q4_k, _Blocks256),
    "Q6_K": (_q6_k, _Blocks256Of16),
}
