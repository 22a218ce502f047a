"""A transformers model, with or without entity memory: its loss on rows with answers, and what it answers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from fluents.errors import FluentsError, needs_extra
from fluents.neural.emem import Compress, Memory, add_memory
from fluents.neural.encoding import Round
from fluents.neural.inputs import Decoding

with needs_extra("train"):
    import torch
    from torch import Tensor, nn
    from transformers import DynamicCache, EncoderDecoderCache, GenerationConfig
    from transformers.modeling_outputs import BaseModelOutput

IGNORED = -100
"""The label of a position that is not to be learnt."""


def best_device() -> str:
    """A GPU if there is one."""
    return "cuda" if torch.cuda.is_available() else "cpu"


class OutOfMemory(FluentsError):
    """A batch that the device cannot hold."""


@contextmanager
def enough_memory(fix: str) -> Iterator[None]:
    """Says what to do when the device's memory is full."""
    try:
        yield
    except torch.cuda.OutOfMemoryError:
        raise OutOfMemory("the memory of the GPU is full", fix=fix) from None
    except RuntimeError as error:
        if "can't allocate memory" not in str(error):  # how torch says it of the processor's
            raise
        raise OutOfMemory("the memory of this machine is full", fix=fix) from None


class _SameForAllBeams(DynamicCache):
    """Cross-attention's keys and values: the beams of a row all see the same, so that reordering beams moves nothing.

    The library would copy them at every token, and memory makes them longer.
    """

    def reorder_cache(self, beam_idx: Tensor) -> None:
        pass


class Encoded(NamedTuple):
    """What a decoder attends to: states, and which of them are real."""

    states: Tensor
    mask: Tensor


class Network(nn.Module):
    """The model and, for entity memory, what is added to it."""

    def __init__(self, model: Any, *, memory: bool) -> None:
        super().__init__()
        self.model = model
        self.causal = not model.config.is_encoder_decoder
        self.width = add_memory(model) if memory else None
        self.compress = Compress(model.config.hidden_size) if memory else None

    @property
    def device(self) -> Any:
        return self.model.device

    def forward(self, rounds: Sequence[Round]) -> Tensor:
        """The summed loss of all answers. With memory, a round knows the rounds before it: nothing is detached, so
        later answers teach what to remember of earlier ones."""
        memory = self.empty_memory(_procedures(rounds))
        # The encoder knows no memory: it reads the questions of all rounds at once.
        encoded = None if self.causal else self._encoded([row for rows in rounds for row in rows])
        losses, start = [], 0
        for turn, rows in enumerate(rounds, start=1):
            if rows:
                place = slice(start, start + len(rows))
                start += len(rows)
                loss, states = self.read(rows, memory, encoded and Encoded(encoded.states[place], encoded.mask[place]))
                losses.append(loss)
                if memory is not None and self.compress is not None and turn < len(rounds):
                    memory.update(rows, states, self.compress)
        return torch.stack(losses).sum()

    def empty_memory(self, procedures: int) -> Memory | None:
        """A memory of nothing, or None for a model without."""
        return None if self.compress is None else Memory(procedures, self.model.config.hidden_size, self.device)

    def read(self, rows: Round, memory: Memory | None, encoded: Encoded | None = None) -> tuple[Tensor, Tensor]:
        """(summed loss, hidden states) of the rows' answers under teacher forcing.

        The state of a token is the one the token is predicted from; states stand row after row without padding.
        Training and tracking both take h^k from here.
        """
        if self.causal:
            return self._read_causal(rows)
        labels = self._padded([row.answered for row in rows], IGNORED)
        attended = self._with_memory(encoded or self._encoded(rows), rows, memory)
        out = self.model(
            encoder_outputs=BaseModelOutput(last_hidden_state=attended.states),
            attention_mask=attended.mask,
            decoder_input_ids=self.model.prepare_decoder_input_ids_from_labels(labels=labels),
            output_hidden_states=memory is not None,
            use_cache=False,
        )
        real = labels != IGNORED
        loss = nn.functional.cross_entropy(out.logits[real].float(), labels[real], reduction="sum")
        return loss, out.decoder_hidden_states[-1][real] if memory is not None else loss.new_zeros(0)

    def _read_causal(self, rows: Round) -> tuple[Tensor, Tensor]:
        pad = self.model.config.eos_token_id
        ids = self._padded([row.asked + row.answered for row in rows], pad)
        labels = self._padded([(IGNORED,) * len(row.asked) + row.answered for row in rows], IGNORED)
        mask = self._padded([(1,) * (len(row.asked) + len(row.answered)) for row in rows], 0)
        logits = self.model(input_ids=ids, attention_mask=mask, use_cache=False).logits[:, :-1]
        real = labels[:, 1:] != IGNORED
        loss = nn.functional.cross_entropy(logits[real].float(), labels[:, 1:][real], reduction="sum")
        return loss, loss.new_zeros(0)

    def _encoded(self, rows: Round) -> Encoded:
        ids = self._padded([row.asked for row in rows], self.model.config.pad_token_id)
        mask = self._padded([(1,) * len(row.asked) for row in rows], 0)
        return Encoded(self.model.get_encoder()(input_ids=ids, attention_mask=mask).last_hidden_state, mask)

    def _with_memory(self, encoded: Encoded, rows: Round, memory: Memory | None) -> Encoded:
        """The encoder's states with the memory of the rows' procedures behind them."""
        if self.width is None:
            return encoded
        self.width.slots = 0 if memory is None else memory.slots.shape[1]
        if memory is None:
            return encoded
        owners = torch.tensor([row.owner for row in rows], device=self.device)
        slots, filled = memory.slots[owners], memory.filled[owners]
        return Encoded(
            torch.cat([encoded.states, slots.to(encoded.states.dtype)], dim=1),
            torch.cat([encoded.mask, filled.to(encoded.mask.dtype)], dim=1),
        )

    @torch.no_grad()
    def generate(self, rows: Round, memory: Memory | None, decoding: Decoding, most: int) -> list[list[int]]:
        """The tokens of an answer to each row, drawn by the library's own search."""
        config = self.model.config
        # Marian begins with its padding, and might go on; but where the end is the padding, an answer must end.
        never = None if self.causal or config.pad_token_id == config.eos_token_id else [config.pad_token_id]
        how = GenerationConfig(
            **decoding.options(),
            max_new_tokens=most,
            eos_token_id=config.eos_token_id,
            pad_token_id=config.eos_token_id if self.causal else config.pad_token_id,
            decoder_start_token_id=None if self.causal else config.decoder_start_token_id,
            suppress_tokens=never,
        )
        if self.causal:
            width = max(len(row.asked) for row in rows)
            ids = self._padded([row.asked for row in rows], config.eos_token_id, left=True)
            mask = self._padded([(1,) * len(row.asked) for row in rows], 0, left=True)
            made = self.model.generate(input_ids=ids, attention_mask=mask, generation_config=how)[:, width:]
        else:
            attended = self._with_memory(self._encoded(rows), rows, memory)
            made = self.model.generate(
                encoder_outputs=BaseModelOutput(last_hidden_state=attended.states),
                attention_mask=attended.mask,
                past_key_values=EncoderDecoderCache(DynamicCache(), _SameForAllBeams()),
                generation_config=how,
            )
        return [list(map(int, row)) for row in made.tolist()]

    def _padded(self, lines: Sequence[Sequence[int]], value: int, *, left: bool = False) -> Tensor:
        width = max(map(len, lines))
        full = [
            [value] * (width - len(line)) + [*line] if left else [*line] + [value] * (width - len(line))
            for line in lines
        ]
        return torch.tensor(full, device=self.device)


def _procedures(rounds: Sequence[Round]) -> int:
    return 1 + max((row.owner for rows in rounds for row in rows), default=0)
