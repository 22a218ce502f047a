"""Entity memory: the paper's equations, and that batching, padding and beams leave results alone."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tiny_neural import begin, gold

from fluents.errors import FluentsError
from fluents.neural.encoding import EncodedRow, Span, side_by_side, taught
from fluents.neural.inputs import Decoding

if os.environ.get("CI") != "true":
    pytest.importorskip("torch", reason="neural systems: pip install 'fluents[train]'")
    pytest.importorskip("transformers", reason="neural systems: pip install 'fluents[train]'")

if TYPE_CHECKING:
    from fluents.neural.checkpoint import Trained

pytestmark = [
    pytest.mark.slow,
    # Deprecations inside torch and transformers are theirs to mend.
    pytest.mark.filterwarnings("ignore"),
]

ARCHES = ("bart", "t5", "marian")


def _rounds(trained: Trained) -> list[list[EncodedRow]]:
    return side_by_side([taught(trace, trained.system, "openpi-c", trained.codec) for trace in gold()])


def _remembered(trained: Trained, rounds: list[list[EncodedRow]]) -> tuple[Any, list[Any]]:
    """The memory after all rounds, and each round's states."""
    import torch

    network = trained.network.eval()
    memory = network.empty_memory(2)
    assert memory is not None
    assert network.compress is not None
    all_states = []
    with torch.no_grad():
        for rows in rounds:
            _, states = network.read(rows, memory)
            memory.update(rows, states, network.compress)
            all_states.append(states)
    return memory, all_states


def _slowly(rounds: list[list[EncodedRow]], all_states: list[Any], compress: Any, owner: int) -> dict[Any, list[float]]:
    """Equations 1 and 2 for one procedure with Python's own numbers."""
    first, later = (layer.weight[0].tolist() for layer in (compress.first, compress.later))
    slots: dict[Any, list[float]] = {}
    for rows, states in zip(rounds, all_states, strict=True):
        spoken: dict[Any, list[list[float]]] = {}
        offset = 0
        for row in rows:
            if row.owner == owner:
                for span in row.spans:
                    spoken.setdefault(span.key, []).extend(states[offset + span.start : offset + span.end].tolist())
            offset += len(row.answered)
        for key, tokens in spoken.items():
            weights = first if key not in slots else later
            scores = [math.fsum(w * h for w, h in zip(weights, token, strict=True)) for token in tokens]
            raised = [math.exp(score - max(scores)) for score in scores]
            h = [
                math.fsum(r * token[place] for r, token in zip(raised, tokens, strict=True)) / math.fsum(raised)
                for place in range(len(first))
            ]
            slots[key] = h if key not in slots else [(m + new) / 2 for m, new in zip(slots[key], h, strict=True)]
    return slots


@pytest.mark.parametrize("arch", ARCHES)
@pytest.mark.parametrize("system", ["emem", "emem+econd"])
def test_slots_are_what_the_equations_say(tmp_path: Path, arch: str, system: str) -> None:
    trained = begin(tmp_path, arch, system)
    rounds = _rounds(trained)
    memory, all_states = _remembered(trained, rounds)
    for owner in (0, 1):
        expected = _slowly(rounds, all_states, trained.network.compress, owner)
        names = memory.names[owner].slots
        assert names.keys() == expected.keys()
        for key, values in expected.items():
            assert memory.slots[owner, names[key]].tolist() == pytest.approx(values, abs=1e-5)
    assert ("soil", "wetness") in memory.names[1].slots, "one that changes twice is among them"


@pytest.mark.parametrize("arch", ARCHES)
def test_the_states_are_the_decoders_last(tmp_path: Path, arch: str) -> None:
    """Behind the final norm, where the model has one, and shifted as in training."""
    import torch

    trained = begin(tmp_path, arch, "emem")
    network, row = trained.network.eval(), _rounds(trained)[0][0]
    with torch.no_grad():
        _, states = network.read([row], network.empty_memory(1))
        start = network.model.config.decoder_start_token_id
        encoded = network.model.get_encoder()(input_ids=torch.tensor([row.asked])).last_hidden_state
        plain = network.model.get_decoder()(
            input_ids=torch.tensor([[start, *row.answered[:-1]]]), encoder_hidden_states=encoded
        ).last_hidden_state[0]
    assert torch.allclose(states, plain, atol=1e-6)


@pytest.mark.parametrize("arch", ARCHES)
def test_memory_is_empty_at_step_one_and_counts_after(tmp_path: Path, arch: str) -> None:
    import torch

    trained, plain = begin(tmp_path, arch, "emem"), begin(tmp_path, arch)
    _spread(trained)
    _spread(plain)
    rounds = _rounds(trained)
    memory = trained.network.empty_memory(2)
    assert memory is not None
    assert memory.slots.shape[1] == 0
    with torch.no_grad():
        at_one = [network.eval().read(rounds[0], network.empty_memory(2))[0] for network in _pair(trained, plain)]
        assert torch.equal(*at_one), "at step 1 the model is the baseline"
        full, _ = _remembered(trained, rounds[:1])
        with_memory = trained.network.read(rounds[1], full)[0]
        without = plain.network.read(rounds[1], None)[0]
    assert not torch.allclose(with_memory, without, atol=1e-4), "at step 2 it is not"


def _pair(one: Trained, other: Trained) -> tuple[Any, Any]:
    return one.network, other.network


@pytest.mark.parametrize("arch", ARCHES)
def test_padding_and_neighbours_change_nothing(tmp_path: Path, arch: str) -> None:
    """A procedure alone and beside a longer one: the same loss, the same slots, the same beams."""
    import torch

    trained = begin(tmp_path, arch, "emem")
    _spread(trained)
    units = [taught(trace, trained.system, "openpi-c", trained.codec) for trace in gold()]
    together, _ = _remembered(trained, side_by_side(units))
    with torch.no_grad():
        alone = [trained.network(side_by_side([unit])) for unit in units]
        assert torch.allclose(trained.network(side_by_side(units)), sum(alone), atol=1e-3)
    for owner, unit in enumerate(units):
        memory, _ = _remembered(trained, side_by_side([unit]))
        used = len(memory.names[0].slots)
        # What differs is float32's rounding, most with T5; the same in float64 agrees to 1e-13.
        assert torch.allclose(memory.slots[0, :used], together.slots[owner, :used], atol=3e-5)
        row = EncodedRow(owner, unit[3][0].asked)
        beside = [EncodedRow(1 - owner, units[1 - owner][3][0].asked), row]
        assert (
            _written(trained, [EncodedRow(0, row.asked)], memory, 0)
            == _written(trained, beside, together, 1)
        )  # fmt: skip


def _written(trained: Trained, rows: list[EncodedRow], memory: Any, place: int) -> list[int]:
    pad = trained.network.model.config.pad_token_id
    made = trained.network.generate(rows, memory, Decoding(beams=3, length_penalty=0.5), 24)[place]
    return [token for token in made if token != pad]


def _spread(trained: Trained) -> None:
    """Untrained models repeat one word whatever they are asked: larger weights, and words that are not those read,
    make answers differ and beams cross."""
    import torch

    head = trained.network.model.get_output_embeddings()
    torch.manual_seed(1)
    head.weight = torch.nn.Parameter(torch.randn_like(head.weight))
    with torch.no_grad():
        for parameter in trained.network.parameters():
            if parameter.ndim > 1:
                parameter.mul_(4)


@pytest.mark.parametrize("arch", ARCHES)
def test_beam_search_with_its_cache_finds_what_scoring_whole_answers_finds(tmp_path: Path, arch: str) -> None:
    """The memory is reordered with the beams: each beam's score is that of its text under teacher forcing."""
    import torch

    trained = begin(tmp_path, arch, "emem")
    _spread(trained)
    units = [taught(trace, trained.system, "openpi-c", trained.codec) for trace in gold()]
    memory, _ = _remembered(trained, side_by_side([unit[:2] for unit in units]))
    rows = [EncodedRow(owner, unit[2][0].asked) for owner, unit in enumerate(units)]
    options = {"min_new_tokens": 8, "length_penalty": 0.0, "return_dict_in_generate": True, "output_scores": True}
    out = _by_the_library(trained, rows, memory, max_new_tokens=8, **options)
    with torch.no_grad():
        for owner, row in enumerate(rows):
            answered = tuple(out.sequences[owner, 1:].tolist())
            loss, _ = trained.network.read([EncodedRow(owner, row.asked, answered)], memory)
            assert float(out.sequences_scores[owner]) == pytest.approx(-float(loss), abs=1e-3)


def _by_the_library(trained: Trained, rows: list[EncodedRow], memory: Any, **options: Any) -> Any:
    """Three beams by the library alone, with the cache it makes itself."""
    import torch
    from transformers import GenerationConfig
    from transformers.modeling_outputs import BaseModelOutput

    network, config = trained.network, trained.network.model.config
    tokens = {name: getattr(config, name) for name in ("eos_token_id", "pad_token_id", "decoder_start_token_id")}
    with torch.no_grad():
        attended = network._with_memory(network._encoded(rows), rows, memory)
        return network.model.generate(
            encoder_outputs=BaseModelOutput(last_hidden_state=attended.states),
            attention_mask=attended.mask,
            generation_config=GenerationConfig(num_beams=3, **tokens, **options),
        )


@pytest.mark.parametrize("arch", ARCHES)
def test_beams_need_no_copies_of_what_they_all_see(tmp_path: Path, arch: str) -> None:
    """The answers are those of the library's own cache, which reorders cross-attention with the beams."""
    trained = begin(tmp_path, arch, "emem")
    _spread(trained)
    units = [taught(trace, trained.system, "openpi-c", trained.codec) for trace in gold()]
    memory, _ = _remembered(trained, side_by_side([unit[:2] for unit in units]))
    rows = [EncodedRow(owner, unit[2][0].asked) for owner, unit in enumerate(units)]
    ours = trained.network.generate(rows, memory, Decoding(beams=3), 24)
    pad = trained.network.model.config.pad_token_id
    theirs = _by_the_library(trained, rows, memory, max_new_tokens=24, suppress_tokens=[pad])
    assert ours == theirs.tolist()
    assert ours[0] != ours[1], "the rows have different answers, so a mix-up would show"


def test_a_pass_without_memory_forgets_the_pass_before(tmp_path: Path) -> None:
    """How many positions are memory is known anew for every pass."""
    import torch

    trained = begin(tmp_path, "bart", "emem")
    rounds = _rounds(trained)
    with torch.no_grad():
        before = trained.network.eval().read(rounds[1], None)[0]
        trained.network.read(rounds[1], _remembered(trained, rounds[:1])[0])
        assert torch.equal(trained.network.read(rounds[1], None)[0], before)


def test_memory_begins_small_and_the_encoders_projections_stay(tmp_path: Path) -> None:
    trained, plain = begin(tmp_path, "bart", "emem"), begin(tmp_path, "bart")
    theirs = dict(plain.network.model.named_parameters())
    for name, parameter in trained.network.model.named_parameters():
        if name.endswith("memory.weight"):
            assert 0.015 < float(parameter.std()) < 0.025, name
        elif name.endswith("memory.bias"):
            assert not parameter.any(), name
        else:
            assert parameter.equal(theirs[name]), name


def test_later_answers_teach_what_to_remember(tmp_path: Path) -> None:
    """Gradients reach the memory's projections and both weight vectors of the compression."""
    trained = begin(tmp_path, "bart", "emem")
    trained.network.train()(_rounds(trained)).backward()
    for name, parameter in trained.network.named_parameters():
        if ".memory." in name or name.startswith("compress."):
            assert parameter.grad is not None
            assert float(parameter.grad.abs().sum()) > 0, name


def test_a_full_memory_drops_what_has_not_changed_for_longest() -> None:
    import torch

    from fluents.neural.emem import Compress, Memory

    compress = Compress(4)
    memory = Memory(1, 4, "cpu", most=2)

    def tell(*names: str) -> None:
        spans = tuple(Span((name, "state"), place, place + 1) for place, name in enumerate(names))
        states = torch.tensor([[float(ord(name))] * 4 for name in names])
        memory.update([EncodedRow(0, (), (0,) * len(names), spans)], states, compress)

    with torch.no_grad():
        tell("a", "b")
        tell("a")
        tell("c")
        assert set(memory.names[0].slots) == {("a", "state"), ("c", "state")}
        assert memory.slots[0, memory.names[0].slots["c", "state"], 0] == ord("c"), (
            "a new slot knows nothing of the old"
        )
        tell("d", "e", "f")
    assert memory.slots.shape[1] == 2
    assert set(memory.names[0].slots) == {("e", "state"), ("f", "state")}


def test_a_step_without_changes_leaves_memory_alone(tmp_path: Path) -> None:
    import torch

    trained = begin(tmp_path, "bart", "emem")
    rounds = _rounds(trained)
    memory, _ = _remembered(trained, rounds[:3])
    before = memory.slots[0].clone()
    with torch.no_grad():
        nothing = [row for row in rounds[3] if row.owner == 0]
        memory.update(nothing, trained.network.read(nothing, memory)[1], trained.network.compress)
    assert torch.equal(memory.slots[0], before)


def test_memory_needs_a_decoder_that_looks_at_an_encoder(tmp_path: Path) -> None:
    with pytest.raises(FluentsError, match="encoder–decoder"):
        begin(tmp_path, "gpt2", "emem")
