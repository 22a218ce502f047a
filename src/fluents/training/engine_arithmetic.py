"""llama.cpp's arithmetic in PyTorch, to the last bit.

llama.cpp on a processor rounds activations to 8 bits before it multiplies them with quantised weights. An activation
halfway between two of these values goes one way or the other with the last bit of the number before, and the next
layers spread the difference. So two programs that round in the same way still disagree as much as two that do not,
unless they add up in the same order as well. Here they do: the order is that of llama.cpp's code for AVX2, FMA and
F16C, which the shipped package runs on every x86 processor. Whether a sum is rounded once or twice matters too.

What is read together matters: llama.cpp has other code for one token than for several. An `EngineModel` reads tokens
together, as the engine reads a prompt, or each alone, as the engine reads what it writes.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import math
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from fluents.errors import InputError, needs_extra
from fluents.training.adapter_file import read_adapter
from fluents.training.engine_products import Adapted, Product, across, half, half_product, quantised_product, quotient

with needs_extra("train"):
    import gguf
    import torch
    from torch.nn.functional import pad

PART = 512
"""llama.cpp reads at most so many tokens at a time."""


class EngineModel:
    """A model that reads tokens and tells the logits of the next one, as the embedded model's engine does.

    It takes the base weights and the adapter as the engine gets them, the adapter unpacked and beside the weights.
    """

    def __init__(self, base: Path, adapter: Path | None = None, device: str = "cpu") -> None:
        reader = gguf.GGUFReader(str(base))
        tensors = {tensor.name: tensor for tensor in reader.tensors}
        kind = reader.fields["general.architecture"].contents()
        if kind not in ("llama", "qwen2"):
            raise InputError(f"unsupported architecture {kind!r}", where=base, fix="choose other base weights")

        def fact(name: str) -> Any:
            return reader.fields[f"{kind}.{name}"].contents()

        self.device = device
        self.length = 0
        """How many tokens it has read."""
        self._shape = _Shape(
            heads=fact("attention.head_count"),
            shared=fact("attention.head_count_kv"),
            size=fact("embedding_length") // fact("attention.head_count"),
            epsilon=fact("attention.layer_norm_rms_epsilon"),
            base=fact("rope.freq_base"),
            paired=kind == "llama",
        )
        self._embeddings = tensors["token_embd.weight"]
        lora = read_adapter(adapter) if adapter else None

        def vector(name: str) -> Any:
            return torch.from_numpy(np.array(tensors[name].data)).to(device) if name in tensors else None

        def product(name: str) -> Product:
            whole = quantised_product(tensors[name], base, device)
            if lora is None or name not in lora.pairs:
                return whole
            down, up = (torch.from_numpy(np.array(matrix, np.float32)).to(device) for matrix in lora.pairs[name])
            return Adapted(whole, down, up, lora.alpha / len(down))

        self._layers = [_Layer(product, vector, f"blk.{number}.", self._shape) for number in range(fact("block_count"))]
        self._norm = vector("output_norm.weight")
        self._head = product("output.weight" if "output.weight" in tensors else "token_embd.weight")

    def read(self, tokens: Sequence[int], *, alone: bool = False) -> Any:
        """Read tokens, together or each `alone`; logits after the last of them, or after each."""
        rows = []
        for start in range(0, len(tokens), PART):
            part = tokens[start : start + PART]
            data = gguf.quants.dequantize(self._embeddings.data[list(part)], self._embeddings.tensor_type)
            states = torch.from_numpy(data).to(self.device)
            turns = _turns(self._shape, self.length, self.length + len(part), self.device)
            for layer in self._layers:
                is_last = layer is self._layers[-1]
                states = layer.read(states, turns, self.length, alone or len(part) == 1, is_last)
            self.length += len(part)
            rows.append(states)
        states = torch.cat(rows) if alone else rows[-1]
        return self._head(_norm(states, self._norm, self._shape.epsilon), True)

    def crop(self, length: int) -> None:
        """Forget all but the first tokens."""
        self.length = min(length, self.length)


class _Shape(NamedTuple):
    heads: int
    shared: int
    """Heads of keys and values."""
    size: int
    """Of a head."""
    epsilon: float
    base: float
    """Of the rotary frequencies."""
    paired: bool
    """Whether a head's neighbours are turned together, or its halves."""


class _Layer:
    def __init__(self, product: Callable[[str], Product], vector: Callable[[str], Any], name: str, shape: _Shape):
        self._shape = shape
        self._attention = [product(f"{name}attn_{part}.weight") for part in ("q", "k", "v", "output")]
        self._biases = [vector(f"{name}attn_{part}.bias") for part in ("q", "k", "v")]
        self._gate, self._up, self._down = (product(f"{name}ffn_{part}.weight") for part in ("gate", "up", "down"))
        self._norms = [vector(f"{name}{part}_norm.weight") for part in ("attn", "ffn")]
        self._keys = self._values = torch.zeros(0)

    def read(self, states: Any, turns: tuple[Any, Any], start: int, alone: bool, last: bool) -> Any:
        """The states of new tokens after this layer; after the last layer only the last of them, unless `alone`."""
        normed = _norm(states, self._norms[0], self._shape.epsilon)
        query, key, value = (
            self._heads(product(normed, alone), bias)
            for product, bias in zip(self._attention[:3], self._biases, strict=True)
        )
        self._keep(_turned(key, turns, self._shape.paired), value, start)
        attended = self._attended(_turned(query, turns, self._shape.paired), start, alone)
        states = self._attention[3](attended, alone) + states
        if last and not alone:
            states, alone = states[-1:], True  # llama.cpp goes on with what it needs
        normed = _norm(states, self._norms[1], self._shape.epsilon)
        return self._down(_swiglu(self._gate(normed, alone), self._up(normed, alone)), alone) + states

    def _heads(self, rows: Any, bias: Any) -> Any:
        rows = rows if bias is None else rows + bias
        return rows.unflatten(-1, (-1, self._shape.size)).transpose(0, 1)

    def _keep(self, key: Any, value: Any, start: int) -> None:
        key, value = half(key), half(value)
        self._keys = torch.cat([self._keys[:, :start], key], 1) if start else key
        self._values = torch.cat([self._values[:, :start], value], 1) if start else value

    def _attended(self, query: Any, start: int, alone: bool) -> Any:
        groups = self._shape.heads // self._shape.shared
        keys, values = (kept.repeat_interleave(groups, 0) for kept in (self._keys, self._values))
        scores = half_product(query, keys, alone) * float(np.float32(1) / np.sqrt(np.float32(self._shape.size)))
        later = torch.ones(scores.shape[1:], dtype=torch.bool, device=scores.device).triu(start + 1)
        chances = _softmax(scores.masked_fill(later, -math.inf))
        return half_product(chances, values.transpose(1, 2), alone, padded=True).transpose(0, 1).flatten(1)


# All else has 32 bits


def _norm(rows: Any, weights: Any, epsilon: float) -> Any:
    squares = (rows * rows).sum(-1, keepdim=True, dtype=torch.float64)
    spread = (squares / rows.shape[-1]).float() + epsilon
    return rows * quotient(1.0, spread.double().sqrt().float()) * weights


def _turns(shape: _Shape, start: int, end: int, device: str) -> tuple[Any, Any]:
    """The cosines and sines of the rotary angles of positions."""
    cosine, sine = _trigonometry()
    step = np.float32(float(np.float32(shape.base)) ** float(np.float32(-2 / shape.size)))
    angles = [np.arange(start, end, dtype=np.float32)]
    while len(angles) < shape.size // 2:
        angles.append(angles[-1] * step)
    flat = np.stack(angles, -1)
    found = (np.array([turn(float(angle)) for angle in flat.ravel()], np.float32) for turn in (cosine, sine))
    first, second = (torch.from_numpy(one.reshape(flat.shape)).to(device) for one in found)
    return first, second


@cache
def _trigonometry() -> tuple[Callable[[float], float], Callable[[float], float]]:
    """The C library's functions of 32 bits, which the engine uses; their last bits are not always the right ones."""
    library = ctypes.CDLL(ctypes.util.find_library("m"))
    for function in (library.cosf, library.sinf):
        function.argtypes, function.restype = [ctypes.c_float], ctypes.c_float
    return library.cosf, library.sinf


def _turned(states: Any, turns: tuple[Any, Any], paired: bool) -> Any:
    """Rotary positions."""
    cosines, sines = turns
    first, second = (states[..., 0::2], states[..., 1::2]) if paired else states.chunk(2, -1)
    turned = (
        _sum(first, cosines, -(second * sines)),
        _sum(first, sines, second * cosines),
    )
    return torch.stack(turned, -1).flatten(-2) if paired else torch.cat(turned, -1)


def _sum(factor: Any, number: Any, more: Any) -> Any:
    """A product and a sum, rounded once."""
    number, more = (one.double() if torch.is_tensor(one) else one for one in (number, more))
    return (factor.double() * number + more).float()


def _softmax(scores: Any) -> Any:
    powers = _exp(scores - scores.amax(-1, keepdim=True))
    lanes = pad(powers, (0, -powers.shape[-1] % 8)).unflatten(-1, (-1, 8)).movedim(-1, 0)
    return powers * quotient(1.0, across(lanes).sum(-1, keepdim=True, dtype=torch.float64))


def _swiglu(gate: Any, up: Any) -> Any:
    return quotient(gate, 1 + _exp(-gate)) * up


def _exp(numbers: Any) -> Any:
    """Powers of two times a polynomial of degree five, as the engine has it."""
    most = 12582912.0  # beyond 2^23 there are no fractions: what was added and taken away again is a whole number
    power = _sum(numbers, float.fromhex("0x1.715476p+0"), most) - most
    rest = _sum(power, -float.fromhex("0x1.7f7d1cp-20"), _sum(power, -float.fromhex("0x1.62e4p-1"), numbers))
    square = rest * rest
    high = _sum(rest, float.fromhex("0x1.0e4020p-7"), float.fromhex("0x1.573e2ep-5"))
    low = _sum(rest, float.fromhex("0x1.555e66p-3"), float.fromhex("0x1.fffdb6p-2"))
    found = _sum(_sum(high, square, low), square, rest * float.fromhex("0x1.ffffecp-1"))
    two = ((power.clamp(-126, 127).int() + 127) << 23).view(torch.float32)
    return torch.where(power < -126, 0.0, torch.where(power > 127, math.inf, _sum(two, found, two)))
