"""Entity memory (OpenPI-C, equations 1 and 2) for the library's encoder–decoder models.

A slot belongs to an (entity, attribute). When it first changes, at step k0, it becomes h^{k0}; whenever it changes
again, the mean of itself and h^k; else it stays. h^k is a sum of the decoder's hidden states over the tokens that
express the change, weighted by a softmax: one weight vector for the first time, another for all later ones.

Memory enters cross-attention behind the encoder's states, through key and value projections of its own. To the library
a memory is thus a longer encoder output: its beam search, cache and attention work as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fluents.errors import FluentsError, needs_extra
from fluents.neural.encoding import EncodedRow
from fluents.neural.inputs import Key

with needs_extra("train"):
    import torch
    from torch import Tensor, nn

MOST_SLOTS = 256
"""A procedure has; the one that has not changed for longest makes room."""

FIRST_WEIGHTS = 0.02
"""Their standard deviation, as the library's models have it."""

CROSS_ATTENTION = ("encoder_attn.k_proj", "encoder_attn.v_proj", "EncDecAttention.k", "EncDecAttention.v")
"""How key and value projections of cross-attention are called: in BART, Marian and their kin, and in T5."""


class Width:
    """How many of the last positions are memory; all projections of a model look here."""

    def __init__(self) -> None:
        self.slots = 0


class WithMemory(nn.Linear):
    """A key or value projection whose last positions are memory and have weights of their own.

    The encoder's weights keep the name they had, so that the library still finds them in a file.
    """

    def __init__(self, encoder: Any, width: Width) -> None:
        super().__init__(encoder.in_features, encoder.out_features, bias=encoder.bias is not None, device="meta")
        self.weight, self.bias = encoder.weight, encoder.bias
        self.memory = nn.Linear(
            encoder.in_features, encoder.out_features, bias=encoder.bias is not None, device=encoder.weight.device
        )
        # Small, so that memory hardly speaks at first. A copy of the encoder's would: what it looks for is not what
        # the decoder's states hold, and training does not get over that.
        nn.init.normal_(self.memory.weight, std=FIRST_WEIGHTS)
        if self.memory.bias is not None:
            nn.init.zeros_(self.memory.bias)
        self.width = width

    def forward(self, states: Tensor) -> Tensor:
        slots = self.width.slots
        if not slots:
            return super().forward(states)
        encoded = super().forward(states[:, :-slots])
        return torch.cat([encoded, self.memory(states[:, -slots:])], dim=1)


def add_memory(model: Any) -> Width:
    """Give every cross-attention of a model's decoder projections for memory."""
    width = Width()
    decoder: Any = model.get_decoder() if model.config.is_encoder_decoder else nn.Identity()
    names = [name for name, _ in decoder.named_modules() if name.endswith(CROSS_ATTENTION)]
    if not names:
        raise FluentsError(
            "entity memory (emem) needs an encoder–decoder model such as BART or T5, but this model is "
            f"{model.config.model_type}",
            fix="train such a model (see `model` and `arch`), or set `system` to concat-states, which adds past "
            "changes to the input as text",
        )
    for name in names:
        parent, _, child = name.rpartition(".")
        setattr(decoder.get_submodule(parent), child, WithMemory(decoder.get_submodule(name), width))
    return width


class Compress(nn.Module):
    """Hidden states of several tokens → one vector h^k."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.first = nn.Linear(size, 1, bias=False)
        self.later = nn.Linear(size, 1, bias=False)

    def forward(self, states: Tensor, real: Tensor, is_new: Tensor) -> Tensor:
        """(changes, tokens, size) → (changes, size), given which tokens are real and which changes a slot's first."""
        scores = torch.where(is_new[:, None], self.first(states).squeeze(-1), self.later(states).squeeze(-1))
        weights = scores.float().masked_fill(~real, float("-inf")).softmax(-1)
        return torch.einsum("ct,cts->cs", weights, states.float())


@dataclass(frozen=True)
class Update:
    """A slot that changes at this step, and the tokens that say so, counted over all rows."""

    owner: int
    slot: int
    is_new: bool
    tokens: tuple[int, ...]


class Names:
    """Which slot belongs to which (entity, attribute) of one procedure."""

    def __init__(self, most: int = MOST_SLOTS) -> None:
        self.most = most
        self.slots: dict[Key, int] = {}  # the one that changed last stands last

    def slot(self, key: Key) -> tuple[int, bool]:
        """Where a change goes, and whether it is the first of its (entity, attribute)."""
        is_new = key not in self.slots
        if not is_new:
            slot = self.slots.pop(key)
        elif len(self.slots) < self.most:
            slot = len(self.slots)
        else:
            slot = self.slots.pop(next(iter(self.slots)))
        self.slots[key] = slot
        return slot, is_new


class Memory:
    """The slots of several procedures: (procedures, slots, size), padded; before the first change there are none."""

    def __init__(self, procedures: int, size: int, device: Any, most: int = MOST_SLOTS) -> None:
        self.names = [Names(most) for _ in range(procedures)]
        self.slots = torch.zeros(procedures, 0, size, device=device)

    @property
    def filled(self) -> Tensor:
        """Which slots are in use: (procedures, slots)."""
        used = torch.tensor([len(names.slots) for names in self.names], device=self.slots.device)
        return torch.arange(self.slots.shape[1], device=self.slots.device) < used[:, None]

    def update(self, rows: Sequence[EncodedRow], states: Tensor, compress: Compress) -> None:
        """Take in a step: the rows' answers, and the decoder's states of their tokens, row after row."""
        updates = self._updates(rows)
        if not updates:
            return
        device = self.slots.device
        width = max(len(update.tokens) for update in updates)
        index = torch.zeros(len(updates), width, dtype=torch.long)
        real = torch.zeros(len(updates), width, dtype=torch.bool)
        for number, update in enumerate(updates):
            index[number, : len(update.tokens)] = torch.tensor(update.tokens)
            real[number, : len(update.tokens)] = True
        is_new = torch.tensor([update.is_new for update in updates], device=device)
        new = compress(states[index.to(device)], real.to(device), is_new)
        grown = max(len(names.slots) for names in self.names) - self.slots.shape[1]
        old = nn.functional.pad(self.slots, (0, 0, 0, grown))
        place = (
            torch.tensor([update.owner for update in updates], device=device),
            torch.tensor([update.slot for update in updates], device=device),
        )
        self.slots = old.index_put(place, torch.where(is_new[:, None], new, (old[place] + new) / 2))

    def _updates(self, rows: Sequence[EncodedRow]) -> list[Update]:
        """One for each slot that changes; all tokens that speak of it count, wherever they stand."""
        tokens: dict[tuple[int, Key], list[int]] = {}
        offset = 0
        for row in rows:
            for span in row.spans:
                tokens.setdefault((row.owner, span.key), []).extend(range(offset + span.start, offset + span.end))
            offset += len(row.answered)
        # A step that changes more than the memory holds keeps the last of them: no slot is written twice.
        chosen: dict[tuple[int, int], Update] = {}
        for (owner, key), places in tokens.items():
            slot, is_new = self.names[owner].slot(key)
            chosen[owner, slot] = Update(owner, slot, is_new, tuple(places))
        return list(chosen.values())
