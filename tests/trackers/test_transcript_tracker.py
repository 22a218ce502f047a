"""The embedded tracker with a scripted model: memory, confidences, samples, resuming. Slow tests run the tiny model."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest

from fluents.errors import FluentsWarning, InputError
from fluents.prompts.transcript import END, VERSION
from fluents.records import Procedure, Trace
from fluents.trackers import Listener, open_tracker
from fluents.trackers.embedded import Engine, Sampling, WrittenAnswer, WrittenToken
from fluents.trackers.transcript import (
    Features,
    TranscriptSettings,
    TranscriptTracker,
    calibration_path,
    embedded_engine,
    transcript_engine,
)
from fluents.weights.adapters import open_embedded
from fluents.weights.base_weights import AT_ONCE, BASES

TEA = Procedure(id="tea", goal="Make tea", steps=("Boil the water.", "Pour the water over the leaves.", "Drink it."))
ANSWERS = {
    1: "water | temperature | cold | boiling\nkettle | temperature | cold | hot\n",
    2: "water | location | in the kettle | in the pot\nleaves | wetness | dry | wet\nwater | location | a | b\n",
    3: "the water | temperature | hot | warm\nnonsense\n",
}
FACTS: dict[str, str | list[str]] = {
    "fluents.base": BASES["tiny"].release,
    "fluents.base_sha256": BASES["tiny"].sha256,
    "fluents.prompt": VERSION,
    "fluents.styles": ["plain"],
    "fluents.data": ["mine.jsonl"],
    "fluents.data_sha256": "0" * 64,
}


def write_adapter(path: Path, facts: dict[str, str | list[str]] = FACTS) -> Path:
    """An adapter for the tiny model that changes little."""
    writer = gguf.GGUFWriter(str(path), "llama")
    writer.add_type(gguf.GGUFType.ADAPTER)
    writer.add_name("mine")
    writer.add_string("adapter.type", "lora")
    writer.add_float32("adapter.lora.alpha", 8.0)
    for key, value in facts.items():
        if isinstance(value, list):
            writer.add_array(key, value)
        else:
            writer.add_string(key, value)
    chance = np.random.default_rng(1)
    for block in range(30):
        for side, shape in (("a", (4, 576)), ("b", (576, 4))):
            values = chance.normal(0, 0.02, shape).astype(np.float32)
            writer.add_tensor(f"blk.{block}.attn_q.weight.lora_{side}", values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


@pytest.fixture
def adapter(tmp_path: Path) -> str:
    return str(write_adapter(tmp_path / "mine.gguf"))


class Scripted:
    """Writes what a function of (step, sample) says, a token a word; remembers what it was asked."""

    def __init__(self, answer: Callable[[int, int], str] = lambda step, _: ANSWERS[step]) -> None:
        self._answer = answer
        self.asked: list[tuple[str, int, bool]] = []

    def continue_from(
        self,
        prompt: str,
        sampling: Sampling,
        seed: int,
        *,
        fresh: bool,
        on_line: Callable[[str], None] | None = None,
        slot: int | None = None,  # noqa: ARG002 - it takes any
    ) -> list[WrittenAnswer]:
        self.asked.append((prompt, seed, fresh))
        step = int(prompt.rpartition("Step ")[2].partition(":")[0])
        written = []
        for number in range(sampling.samples):
            text = self._answer(step, number)
            tokens = tuple(WrittenToken(part.encode(), -0.1 * len(part)) for part in _parts(text))
            written.append(WrittenAnswer(text, tokens, ended=True))
            for line in text.splitlines():
                if on_line:
                    on_line(line)
        return written


def _parts(text: str) -> Iterator[str]:
    word = ""
    for character in text:
        word += character
        if character in " \n":
            yield word
            word = ""
    yield word


def _tracker(adapter: str, model: Scripted | None = None, **more: Any) -> TranscriptTracker:
    return TranscriptTracker(TranscriptSettings(adapter, **more), model or Scripted(), calibration=_by_entity)


def _by_entity(features: Features) -> float:
    return round(1 + features["entity"], 3)


def test_the_model_sees_what_it_said_before_and_nothing_is_rewritten(adapter: str) -> None:
    model = Scripted()
    trace = _tracker(adapter, model).track(TEA)
    prompts = [prompt for prompt, _, _ in model.asked]
    assert all(later.startswith(earlier) for earlier, later in pairwise(prompts))
    assert prompts[2].count(END) == 2
    assert "leaves | wetness | dry | wet\n" in prompts[2]
    assert [fresh for _, _, fresh in model.asked] == [True, False, False]
    assert trace.covered is None
    assert [(c.step, c.entity) for c in trace.changes] == [
        (1, "water"),
        (1, "kettle"),
        (2, "water"),
        (2, "leaves"),
        (3, "water"),
    ]


def test_states_begin_where_they_were_left_and_names_stay(adapter: str) -> None:
    last = _tracker(adapter).track(TEA).at(3)[0]
    assert (last.entity, last.before, last.after) == ("water", "boiling", "warm")


def test_what_is_no_change_is_rejected(adapter: str) -> None:
    trace = _tracker(adapter).track(TEA)
    assert [(reject.step, reject.text) for reject in trace.rejects] == [
        (2, "water | location | a | b"),
        (3, "nonsense"),
    ]


def test_every_change_has_a_confidence_and_is_mentioned_or_not(adapter: str) -> None:
    first = _tracker(adapter).track(TEA).at(1)
    assert [change.mentioned for change in first] == [True, False]
    assert [change.confidence for change in first] == [0.6, 0.55]  # tokens of 6 and 2, of 7 and 2 characters
    assert all(change.support is None for change in first), "one answer has no support"


def test_low_confidences_are_cut_at_the_end_alone(adapter: str) -> None:
    seen: list[int] = []

    class Watching(Listener):
        def on_step(self, trace: Trace) -> None:
            seen.append(len(trace.changes))

    model = Scripted()
    trace = _tracker(adapter, model, min_confidence=0.58).track(TEA, Watching())
    assert [change.entity for change in trace.changes] == ["water"] * 3, "what was cut is still in the transcript"
    assert "kettle | temperature | cold | hot\n" in model.asked[2][0]
    assert seen == [2, 4, 3], "steps are kept whole until the last is done"
    assert trace.provenance.decoding["min_confidence"] == 0.58


def test_a_shipped_calibration_brings_its_cut(adapter: str) -> None:
    fitted = {"base": 1.0, "weights": {"entity": 1.0}, "min_confidence": 0.64}
    calibration_path(Path(adapter)).write_text(json.dumps({"one pass": fitted}))
    tracker = TranscriptTracker(TranscriptSettings(adapter), Scripted())
    assert tracker.provenance.decoding["min_confidence"] == 0.64
    assert {change.entity for change in tracker.track(TEA).changes} == {"water"}
    keeping = TranscriptTracker(TranscriptSettings(adapter, min_confidence=0), Scripted())
    assert len(keeping.track(TEA).changes) == 5


def test_without_a_calibration_there_is_no_confidence(adapter: str) -> None:
    trace = TranscriptTracker(TranscriptSettings(adapter), Scripted()).track(TEA)
    assert {change.confidence for change in trace.changes} == {None}
    with pytest.raises(InputError, match="`min_confidence` needs"):
        TranscriptTracker(TranscriptSettings(adapter, min_confidence=0.5), Scripted())


def test_a_run_goes_on_where_it_stopped(adapter: str) -> None:
    kept: list[Trace] = []

    class Keeping(Listener):
        def on_step(self, trace: Trace) -> None:
            kept.append(trace)

    first = Scripted()
    whole = _tracker(adapter, first, min_confidence=0.58).track(TEA, Keeping())
    for done in (1, 2):
        model = Scripted()
        resumed = _tracker(adapter, model, min_confidence=0.58).track(TEA, done=kept[done - 1])
        assert resumed == whole
        assert [(prompt, seed) for prompt, seed, _ in model.asked] == [asked[:2] for asked in first.asked[done:]]
        assert model.asked[0][2], "it reads the transcript anew"


def test_samples_agree_and_the_transcript_goes_on_with_what_they_agree_on(adapter: str) -> None:
    def answer(step: int, sample: int) -> str:
        return ANSWERS[step] + ("spoon | location | a | b\n" if sample == 0 else "")

    model = Scripted(answer)
    trace = _tracker(adapter, model, samples=4).track(TEA)
    assert {change.entity for change in trace.at(1)} == {"water", "kettle"}
    assert all(change.support and change.confidence for change in trace.changes)
    assert "spoon" not in model.asked[1][0]
    assert trace.provenance.decoding["samples"] == 4
    assert len({seed for _, seed, _ in model.asked}) == 3


def test_no_more_changes_than_wanted_the_first_ones(adapter: str) -> None:
    trace = _tracker(adapter, max_changes=1).track(TEA)
    assert [change.entity for change in trace.changes] == ["water", "water", "water"]


def test_a_long_procedure_is_tracked_and_the_reader_is_told(adapter: str) -> None:
    steps = tuple(f"Turn the wheel number {number}, {'slowly ' * 30}." for number in range(1, 41))
    model = Scripted(lambda step, _: f"wheel {step} | position | up | down\n")
    with pytest.warns(FluentsWarning, match="no longer saw steps 1 to"):
        trace = _tracker(adapter, model).track(Procedure(goal="Turn", steps=steps))
    assert len(trace.changes) == 40


def test_a_procedure_without_steps_is_done(adapter: str) -> None:
    assert _tracker(adapter).track(Procedure(goal="Rest", steps=())).covered_steps == ()


def test_an_adapter_for_another_prompt_is_refused(tmp_path: Path) -> None:
    path = write_adapter(tmp_path / "old.gguf", FACTS | {"fluents.prompt": "local-1"})
    with pytest.raises(InputError, match="trained with prompt version local-1"):
        TranscriptTracker(TranscriptSettings(str(path)))


def test_the_prompt_an_adapter_was_trained_with_chooses_the_tracker(adapter: str) -> None:
    with open_tracker(adapter=adapter, samples=3, max_changes=4, seed=9) as tracker:
        assert isinstance(tracker, TranscriptTracker)
        assert tracker.settings == TranscriptSettings(adapter, samples=3, max_changes=4, seed=9)
    with pytest.raises(InputError, match="`setting` has no effect with `adapter`"):
        open_tracker(adapter=adapter, setting="openpi")


@pytest.fixture(scope="module")
def engine(real_weights: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    adapter = write_adapter(tmp_path_factory.mktemp("adapter") / "mine.gguf")
    with transcript_engine(real_weights, adapter, slots=3) as loaded:
        yield loaded


PROMPT = f"Goal: Make tea\nStep 1: Boil the water.\nwater | heat | cold | hot\n{END}Step 2: Pour the water.\n"
SHORT = Sampling(samples=1, temperature=0, max_tokens=24)


@pytest.mark.slow
def test_the_same_prompts_in_the_same_order_give_the_same_answers_and_probabilities(engine: Engine) -> None:
    runs = []
    for _ in range(2):
        first = engine.continue_from(PROMPT, SHORT, 1, fresh=True)[0]
        second = engine.continue_from(f"{PROMPT}{first.text}{END}Step 3: Drink it.\n", SHORT, 1, fresh=False)[0]
        runs.append((first, second))
        engine.continue_from("Goal: Something else\nStep 1: Sit down.\n", SHORT, 1, fresh=True)
    assert runs[0] == runs[1], "whatever was asked in between"
    for answer in runs[0]:
        assert b"".join(token.text for token in answer.tokens).decode() == answer.text
        assert all(-50 < token.logprob <= 0 for token in answer.tokens)


@pytest.mark.slow
def test_samples_of_one_seed_are_the_same_and_differ_from_each_other(engine: Engine) -> None:
    three = Sampling(samples=5, temperature=1.0, top_k=0, top_p=1.0, max_tokens=16)
    first = engine.continue_from(PROMPT, three, 7, fresh=True)
    assert len(first) == 5, "more than there are slots"
    assert len({answer.text for answer in first}) > 2
    assert [a.text for a in engine.continue_from(PROMPT, three, 7, fresh=True)] == [a.text for a in first]


@pytest.mark.parametrize(
    ("model", "at_once", "is_merged"),
    [("tiny", 1, False), ("tiny", 8, True), ("small", 8, True), ("base", 16, False), ("a file", 8, False)],
)
def test_side_by_side_the_adapter_is_in_the_weights_where_that_is_faster(
    model: str, at_once: int, is_merged: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = tmp_path / "mine.gguf"
    mine.write_bytes(b"weights")
    embedded = open_embedded(model) if model in BASES else open_embedded(mine, adapter="transcript-tiny")
    assert at_once in (1, embedded.size.at_once if embedded.size else AT_ONCE)
    given: dict[str, Any] = {}
    names = {"Engine": lambda file, **more: given.update(more, file=file), "merged": lambda *_: Path("both.gguf")}
    for name, replaced in names.items():
        monkeypatch.setattr(f"fluents.trackers.transcript.{name}", replaced)
    monkeypatch.setattr("fluents.weights.adapters.ensure_shown", lambda *_: Path("base.gguf"))
    embedded_engine(embedded, at_once=at_once)
    assert (given["file"] == Path("both.gguf"), given["adapter"] is None) == (is_merged, is_merged)
    assert given["slots"] == at_once
    assert given["plain_attention"]


@pytest.mark.slow
def test_an_adapter_at_run_time_changes_the_answers(engine: Engine, real_weights: Path) -> None:
    with_it = engine.continue_from(PROMPT, SHORT, 1, fresh=True)[0]
    with transcript_engine(real_weights, None) as plain:
        without = plain.continue_from(PROMPT, SHORT, 1, fresh=True)[0]
    assert [token.logprob for token in with_it.tokens] != [token.logprob for token in without.tokens]


@pytest.mark.slow
@pytest.mark.usefixtures("model_cache")
def test_procedures_side_by_side_come_in_order_each_with_its_own_answers() -> None:
    """Not word for word as alone: batches change the last bits of the numbers, and the adapter is in the weights."""
    goals = {"soup": "Heat the soup in a pot.", "shirt": "Iron the shirt.", "door": "Paint the door red."}
    wanted = [Procedure(id=name, goal=name, steps=(step, "Wait an hour.")) for name, step in goals.items()]
    with open_tracker(model="tiny", at_once=2, min_confidence=0) as tracker:
        traces = list(tracker.track_many(wanted))
    assert [trace.procedure for trace in traces] == wanted
    assert all(trace.covered is None for trace in traces)
    for trace in traces:
        said = " ".join(change.entity for change in trace.at(1)).lower()
        assert trace.id in said, f"{trace.id}: {said}"
    assert traces[0].provenance.decoding["at_once"] == 2


def test_side_by_side_with_several_samples_is_refused() -> None:
    with pytest.raises(InputError, match="`at_once` has no effect with several `samples`"):
        open_tracker(model="tiny", at_once=2, samples=3)
