"""Models that annotate among people: each kind of item is answered by the part of fluents that does the same work."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Unpack

from fluents.annotation.design import StageKind
from fluents.annotation.forms import MISSED_TYPES, VET_REASONS, check_answer, check_blind_pass, is_writable
from fluents.annotation.grid import same_as
from fluents.annotation.items import Item, change_payload
from fluents.annotation.paraphrase import change_clusters
from fluents.annotation.writing import change_of
from fluents.canonicalisation import canonicalise
from fluents.errors import FluentsError, InputError
from fluents.llm import LanguageModel, Question
from fluents.llm.answers import Unreadable, UnreadableAnswer, answered, json_in
from fluents.prompts.llm import JSON_TEXT, json_list, json_object, quoted_name, render, scene, system, whole_scene
from fluents.records import Procedure, StateChange, Trace
from fluents.salience import rate_salience
from fluents.trackers import Tracker, TrackerOptions, open_tracker

MAX_TOKENS = 1024
"""Of an answer: enough for the verdicts on some hundred pairs."""
PROMPTS: Mapping[StageKind, str] = {
    "select": "annotate-select-1",
    "vet": "annotate-vet-1",
    "clean-procedures": "annotate-procedure-1",
    "clean-steps": "annotate-steps-1",
    "clean-changes": "annotate-certainty-1",
    "expansions": "annotate-expansions-1",
    "judge": "annotate-pairs-1",
    "hallucinations": "annotate-hallucination-1",
}
"""Kinds of items that a language model is asked about."""


class NoModelAnswerError(FluentsError):
    """An item that the model has no answer to."""


@dataclass(frozen=True)
class ModelAnnotator:
    """Answers items. What is to be written comes from a tracker; verdicts come from a language model, if there is one;
    names and salience come from the language model, or else from the offline methods."""

    tracker: Callable[[], Tracker]
    """Called when something is to be written."""
    model: LanguageModel | None = None

    def answer(self, item: Item) -> dict[str, Any]:
        """The answer to an item, as `check_answer` takes it; a NoModelAnswerError if there is none."""
        if item.kind in _OWN_WORK:
            return check_answer(item, _OWN_WORK[item.kind](self, item.payload))
        if self.model is None:
            if item.kind == "expansions":
                return check_answer(item, {"accepted": _alike(item.payload)})
            raise InputError(
                f'an embedded model cannot answer the questions of the stage "{item.kind}"',
                fix="set `base_url` to an endpoint, and `model` to the name of a language model there",
            )
        return self._asked(item, self.model)

    def _asked(self, item: Item, model: LanguageModel) -> dict[str, Any]:
        prompt = PROMPTS[item.kind]
        question = Question(
            render(prompt, **_values(item.payload, item.kind)),
            system=system(),
            schema=json_object(**_ANSWERS[item.kind]),
            name=prompt,
            max_tokens=model.max_tokens or MAX_TOKENS,
        )
        [found] = answered(model.answerer, question, partial(_read, item))
        if isinstance(found, Unreadable):
            raise NoModelAnswerError(f"the model gave no valid answer: {found.reason}", where=item.id)
        return found

    def blind_pass(self, item: Item) -> list[dict[str, Any]]:
        """What the model writes before it sees the draft of an item."""
        return check_blind_pass(item, [change_payload(one) for one in self.tracked(_procedure(item.payload))])

    def tracked(self, procedure: Procedure) -> list[StateChange]:
        """What the tracker says, without what no form takes."""
        return [change for change in self.tracker().track(procedure).changes if is_writable(change)]


@contextmanager
def open_model_annotator(
    language_model: LanguageModel | None = None, **options: Unpack[TrackerOptions]
) -> Iterator[ModelAnnotator]:
    """A model as an annotator, until the block ends.

    A language model does everything. Without one, `options` name a tracker as `open_tracker` takes them; it can write,
    and the offline methods group and rate names. Nothing is loaded before it is needed.

    >>> with open_model_annotator(model="small") as annotator:
    ...     answer = annotator.answer(item)
    """
    opened: list[Tracker] = []

    def tracker() -> Tracker:
        if not opened:
            opened.append(open_tracker(**options) if language_model is None else open_tracker(model=language_model))
        return opened[0]

    try:
        yield ModelAnnotator(tracker, language_model)
    finally:
        for one in opened:
            one.close()


def _procedure(payload: Mapping[str, Any]) -> Procedure:
    shown = payload["procedure"]
    return Procedure(id="item", goal=shown["goal"], steps=tuple(shown["steps"]))


# Writing


def _author(annotator: ModelAnnotator, payload: Mapping[str, Any]) -> dict[str, Any]:
    kept: list[StateChange] = []
    for change in annotator.tracked(_procedure(payload)):
        if sum(one.step == change.step for one in kept) < payload["max_changes"]:
            kept.append(change)
    return {"changes": [change_payload(change) for change in kept]}


def _audit(annotator: ModelAnnotator, payload: Mapping[str, Any]) -> dict[str, Any]:
    """What the tracker has that is there in no words."""
    known = [change_of(change) for change in payload["changes"]]
    found = annotator.tracked(_procedure(payload))
    clusters = change_clusters([*known, *found])
    said = {(change.step, cluster) for change, cluster in zip(known, clusters, strict=False)}
    missing = [
        change
        for change, cluster in zip(found, clusters[len(known) :], strict=True)
        if (change.step, cluster) not in said
    ]
    return {"missing": [change_payload(change) | {"type": _type(change, known)} for change in missing]}


def _type(change: StateChange, known: Sequence[StateChange]) -> str:
    """Another attribute of something that is mentioned at the step, or something that is not mentioned there at all."""
    mentioned = [one.entity for one in known if one.step == change.step]
    indirect, dimension, *_ = MISSED_TYPES
    return dimension if change.entity in mentioned or same_as(change.entity, mentioned) else indirect


def _correct(annotator: ModelAnnotator, payload: Mapping[str, Any]) -> dict[str, Any]:
    """The draft without what the language model calls wrong, beside what was written in the blind pass."""
    kept = []
    for change in payload["changes"]:
        words = {name: value for name, value in change.items() if name != "position"}
        if is_writable(change_of(change)) and _is_valid(annotator, payload["procedure"], words):
            kept.append(words | {"from": change["position"]})
    return {"changes": kept, "blind": payload.get("blind")}


def _is_valid(annotator: ModelAnnotator, procedure: Mapping[str, Any], change: Mapping[str, Any]) -> bool:
    if annotator.model is None:
        return True
    payload = {"procedure": procedure, "change": change, "position": 0, "modality": "without_image"}
    item = Item(id="0" * 20, stage=1, kind="vet", procedure="item", payload=payload, judges=1)
    return bool(annotator.answer(item)["valid"])


# Names and salience


def _entities(annotator: ModelAnnotator, payload: Mapping[str, Any]) -> dict[str, Any]:
    changes = [_stand_in(entry["name"], "state", step) for entry in payload["names"] for step in entry["steps"][:1]]
    clusters = [cluster.mentions for cluster in _clustered(annotator, payload, changes).clusters]
    return {"clusters": _all_once(clusters, [entry["name"] for entry in payload["names"]])}


def _attributes(annotator: ModelAnnotator, payload: Mapping[str, Any]) -> dict[str, Any]:
    entity = payload["entity"]
    changes = [_stand_in(entity, entry["name"], step) for entry in payload["names"] for step in entry["steps"][:1]]
    found = _clustered(annotator, payload, changes).clusters
    clusters = [attribute.mentions for cluster in found for attribute in cluster.attributes]
    return {"clusters": _all_once(clusters, [entry["name"] for entry in payload["names"]])}


def _stand_in(entity: str, attribute: str, step: int) -> StateChange:
    """A change that shows the names where they were used; the values are not known."""
    return StateChange(step=step, entity=entity, attribute=attribute, before="", after="")


def _clustered(annotator: ModelAnnotator, payload: Mapping[str, Any], changes: Sequence[StateChange]) -> Trace:
    trace = Trace(procedure=_procedure(payload), changes=tuple(changes))
    return canonicalise(trace) if annotator.model is None else canonicalise(trace, "prompted", model=annotator.model)


def _all_once(clusters: Sequence[Sequence[str]], names: Sequence[str]) -> list[list[str]]:
    """The clusters with each of the names exactly once; one that is in none is alone."""
    left = dict.fromkeys(names)
    found = []
    for cluster in clusters:
        mine = [name for name in dict.fromkeys(cluster) if name in left]
        for name in mine:
            del left[name]
        found += [mine] if mine else []
    return [*found, *([name] for name in left)]


def _salience(annotator: ModelAnnotator, payload: Mapping[str, Any]) -> dict[str, Any]:
    procedure, scope = _procedure(payload), payload["scope"]
    step = payload.get("step")
    changes = tuple(_stand_in(name, "state", step or _first_step(procedure, name)) for name in payload["entities"])
    trace = Trace(procedure=procedure, changes=changes)
    if annotator.model is None:
        rated = rate_salience(trace, scope=scope)
    else:
        rated = rate_salience(trace, "prompted", scope=scope, model=annotator.model)
    values = {one.entity: one.value for one in rated.salience if one.step == step and one.value is not None}
    if missing := [name for name in payload["entities"] if name not in values]:
        raise NoModelAnswerError(f"the model gave no valid salience rating for {missing[0]!r:.80}")
    return {"scores": {name: min(5, max(0, round(values[name]))) for name in payload["entities"]}}


def _first_step(procedure: Procedure, name: str) -> int:
    mentioning = (number for number, text in enumerate(procedure.steps, start=1) if name.lower() in text.lower())
    return next(mentioning, 1)


def _alike(payload: Mapping[str, Any]) -> list[str]:
    kind: Any = "attribute" if payload["level"] == "attributes" else "entity"
    return [name for name in payload["expansions"] if same_as(name, payload["cluster"], kind)]


_OWN_WORK: Mapping[StageKind, Callable[[ModelAnnotator, Mapping[str, Any]], dict[str, Any]]] = {
    "author": _author,
    "audit": _audit,
    "correct": _correct,
    "entities": _entities,
    "attributes": _attributes,
    "salience": _salience,
}


# What a language model is asked


def _values(payload: Mapping[str, Any], kind: StageKind) -> dict[str, Any]:
    """What the prompt of this kind is filled in with; texts of others stand between quotation marks."""
    procedure = _procedure(payload)
    if kind in ("vet", "clean-changes", "hallucinations"):
        change = payload["change"]
        words = {name: quoted_name(change[name]) for name in ("entity", "attribute", "before", "after")}
        shown = scene(procedure, change["step"]) if kind == "hallucinations" else whole_scene(procedure)
        return {"scene": shown, "step": change["step"], **words}
    if kind == "judge":
        pairs = [(quoted_name(pair["entity"]), quoted_name(pair["attribute"])) for pair in payload["pairs"]]
        return {"scene": scene(procedure, payload["step"]), "pairs": pairs, "count": len(pairs)}
    if kind == "expansions":
        names = {field: list(map(quoted_name, payload[field])) for field in ("cluster", "expansions")}
        return {"scene": whole_scene(procedure), "level": payload["level"], **names}
    return {"scene": whole_scene(procedure), "count": len(procedure.steps)}


_BOOL = {"type": "boolean"}


_ANSWERS: Mapping[StageKind, dict[str, object]] = {
    "select": {"keep": _BOOL},
    "vet": {"valid": _BOOL, "reason": {"type": ["string", "null"], "enum": [*VET_REASONS, None]}},
    "clean-procedures": {"procedure": _BOOL},
    "clean-steps": {"valid": json_list(_BOOL)},
    "clean-changes": {"verdict": {"type": "string", "enum": ["certain", "uncertain", "impossible"]}},
    "expansions": {"accepted": json_list(JSON_TEXT)},
    "judge": {"verdicts": json_list({"type": "string", "enum": ["right", "no change", "nonsense"]})},
    "hallucinations": {"hallucinated": _BOOL},
}


def _read(item: Item, text: str) -> dict[str, Any]:
    """The answer in a text, or UnreadableAnswer."""
    value = json_in(text)
    if not isinstance(value, dict):
        raise UnreadableAnswer("the answer is not a JSON object")
    if item.kind == "vet" and value.get("valid") is True:
        value["reason"] = None
    if item.kind == "expansions" and isinstance(value.get("accepted"), list):
        value["accepted"] = [name for name in value["accepted"] if name in item.payload["expansions"]]
    try:
        return check_answer(item, value)
    except InputError as error:
        raise UnreadableAnswer(error.what) from None
