"""What an answer may be, for each kind of item. Every answer is checked: whoever sends it may send anything."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from fluents.annotation.design import StageKind
from fluents.annotation.items import Item, change_payload
from fluents.errors import InputError
from fluents.jsonl import WrongShape, wrong_shape_is_input_error
from fluents.records import StateChange
from fluents.text.names import fold, one_line

MAX_WORDS = 300
"""Characters of a name or a state."""
_BAR = "|"
MAX_ADDED = 100
"""Changes that one answer adds beside those that the item shows."""

VET_REASONS = ("obscure", "other-step", "mismatch", "reader", "factual")
"""Why a change is invalid: its words say nothing; it belongs to another step; the attribute does not fit the value; it
is about the reader, not about what the text acts on; it does not happen."""

MISSED_TYPES = ("indirect", "dimension", "rewording", "wrong")
"""What an added change is: an indirect effect, another attribute, other words for a known change, a mistake."""

CHANGE_VERDICTS = ("certain", "uncertain", "impossible")
PAIR_VERDICTS = ("right", "no change", "nonsense")


def _readable(text: str) -> str:
    if len(text) > MAX_WORDS:
        raise ValueError(f"the text is longer than {MAX_WORDS} characters")
    text = one_line(text)
    if not text:
        raise ValueError("the text is empty")
    if any(unicodedata.category(character) in ("Cc", "Cs") for character in text):
        raise ValueError("the text contains control characters; delete them")
    if _BAR in text:
        raise ValueError(
            f"the text contains {_BAR}, which has a special meaning in OpenPI2.0 files; use another character"
        )
    return text


Words: TypeAlias = Annotated[str, Field(max_length=10 * MAX_WORDS), AfterValidator(_readable)]


class _Form(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)


class _Keep(_Form):
    keep: bool


class _Change(_Form):
    step: Annotated[int, Field(ge=1)]
    entity: Words
    attribute: Words
    before: Words
    after: Words


class _Missed(_Change):
    type: Literal["indirect", "dimension", "rewording", "wrong"]


class _Corrected(_Change):
    source: Annotated[int, Field(ge=0)] | None = Field(default=None, alias="from")


class _Authored(_Form):
    changes: Annotated[list[_Change], Field(max_length=5000)]


class _Audited(_Form):
    missing: Annotated[list[_Missed], Field(max_length=MAX_ADDED)]


class _Vetted(_Form):
    valid: bool
    reason: Literal["obscure", "other-step", "mismatch", "reader", "factual"] | None = None


class _IsProcedure(_Form):
    procedure: bool


class _ValidSteps(_Form):
    valid: Annotated[list[bool], Field(max_length=100_000)]


class _Certainty(_Form):
    verdict: Literal["certain", "uncertain", "impossible"]


class _Clusters(_Form):
    clusters: Annotated[list[Annotated[list[str], Field(min_length=1, max_length=5000)]], Field(max_length=5000)]


class _Accepted(_Form):
    accepted: Annotated[list[str], Field(max_length=1000)]


class _Scores(_Form):
    scores: Annotated[dict[str, Annotated[int, Field(ge=0, le=5)]], Field(max_length=5000)]


class _Pair(_Form):
    entity: Words
    attribute: Words


class _PairVerdicts(_Form):
    verdicts: Annotated[list[Literal["right", "no change", "nonsense"]], Field(max_length=5000)]
    missing: Annotated[list[_Pair], Field(max_length=MAX_ADDED)] = []


class _Hallucinated(_Form):
    hallucinated: bool


class _BlindPass(_Form):
    changes: Annotated[list[_Change], Field(max_length=5000)]


class _Correction(_Form):
    changes: Annotated[list[_Corrected], Field(max_length=5000)]
    blind: Annotated[list[_Change], Field(max_length=5000)] | None = None


def check_answer(item: Item, answer: Any) -> dict[str, Any]:
    """The answer as it is kept: checked, without what the form does not ask for. An InputError says what is wrong."""
    if not isinstance(answer, Mapping):
        raise InputError(
            "the answer is not a JSON object", where=item.id, fix='send an object, for example {"valid": true}'
        )
    form, finish = _FORMS[item.kind]
    with wrong_shape_is_input_error("the answer does not match the question", item.id):
        values = form.model_validate(dict(answer)).model_dump(by_alias=True)
        return finish(item.payload, values)


def is_blind_first(item: Item) -> bool:
    """Whether people write what they think before they see the item's draft."""
    return item.kind == "correct" and bool(item.payload.get("blind_first"))


def check_blind_pass(item: Item, changes: Any) -> list[dict[str, Any]]:
    """The changes of a blind pass as they are kept; an InputError says what is wrong with them."""
    if not is_blind_first(item):
        raise InputError(
            "this item does not ask you to write changes before you see the draft",
            where=item.id,
            fix="send your answer as a decision",
        )
    with wrong_shape_is_input_error("the changes do not match the question", item.id):
        given = _BlindPass.model_validate({"changes": changes}).model_dump()
        return _changes(item.payload, given["changes"], most=MAX_ADDED)


def after_blind_pass(item: Item, blind: Sequence[Mapping[str, Any]] | None) -> Item:
    """An item with a blind pass as its annotator may see it: without the draft until the pass is saved (`blind`)."""
    if blind is not None:
        return item.replace(payload={**item.payload, "blind": list(blind)})
    return item.replace(payload={name: value for name, value in item.payload.items() if name != "changes"})


Values: TypeAlias = dict[str, Any]
Finish: TypeAlias = Callable[[Mapping[str, Any], Values], Values]


def _as_it_is(payload: Mapping[str, Any], values: Values) -> Values:  # noqa: ARG001 - all finishers are called alike
    return values


def _authored(payload: Mapping[str, Any], values: Values) -> Values:
    values["changes"] = _changes(payload, values["changes"], most=payload["max_changes"])
    return values


def _audited(payload: Mapping[str, Any], values: Values) -> Values:
    values["missing"] = _changes(payload, values["missing"])
    return values


def _corrected(payload: Mapping[str, Any], values: Values) -> Values:
    draft = payload["changes"]
    values["changes"] = _changes(payload, values["changes"])
    if len(values["changes"]) > len(draft) + MAX_ADDED:
        raise WrongShape(f"at most {MAX_ADDED} changes can be added to the draft")
    sources = [change["from"] for change in values["changes"] if change["from"] is not None]
    if any(position >= len(draft) for position in sources):
        raise WrongShape("`from` must be null, or the position of a change in the draft, counted from 0")
    if payload["blind_first"] != (values["blind"] is not None):
        raise WrongShape(
            "`blind` must contain the changes that you wrote before you saw the draft"
            if payload["blind_first"]
            else "`blind` must be null, because this item shows the draft from the start"
        )
    if values["blind"] is not None:
        values["blind"] = _changes(payload, values["blind"], most=MAX_ADDED)
    return values


def _changes(payload: Mapping[str, Any], changes: Sequence[Values], most: int | None = None) -> list[Values]:
    """The changes in the order of their steps, each once; refused if one cannot be."""
    count = len(payload["procedure"]["steps"])
    for change in changes:
        if change["step"] > count:
            raise WrongShape(f"a change is at step {change['step']}, but the procedure has steps 1 to {count}")
        if fold(change["before"]) == fold(change["after"]):
            raise WrongShape(f"{change['entity']!r} does not change: it is {change['after']!r} both before and after")
    distinct: dict[tuple[int, str, str, str, str], Values] = {}
    for change in changes:
        distinct.setdefault(same_words(change), change)
    kept = sorted(distinct.values(), key=lambda change: int(change["step"]))
    per_step = Counter(change["step"] for change in kept)
    if most is not None and any(number > most for number in per_step.values()):
        raise WrongShape(f"a step can have at most {most} changes")
    return kept


def same_words(change: Mapping[str, Any]) -> tuple[int, str, str, str, str]:
    """What two changes share that say the same thing in the same words: case and spaces do not count."""
    entity, attribute, before, after = (fold(change[name]) for name in ("entity", "attribute", "before", "after"))
    return int(change["step"]), entity, attribute, before, after


def is_writable(change: StateChange) -> bool:
    """Whether a form takes the change."""
    try:
        _Change.model_validate(change_payload(change))
    except ValidationError:
        return False
    return fold(change.before) != fold(change.after)


def _vetted(payload: Mapping[str, Any], values: Values) -> Values:  # noqa: ARG001
    if values["valid"] and values["reason"] is not None:
        raise WrongShape("`reason` says why a change is wrong, so it must be null if `valid` is true")
    return values


def _valid_steps(payload: Mapping[str, Any], values: Values) -> Values:
    _same_length(values["valid"], payload["procedure"]["steps"], "steps")
    return values


def _pair_verdicts(payload: Mapping[str, Any], values: Values) -> Values:
    _same_length(values["verdicts"], payload["pairs"], "pairs")
    return values


def _same_length(given: Sequence[Any], asked: Sequence[Any], noun: str) -> None:
    if len(given) != len(asked):
        raise WrongShape(f"the question has {len(asked)} {noun}, but the answer has {len(given)}")


def _clustered(payload: Mapping[str, Any], values: Values) -> Values:
    names = [entry["name"] for entry in payload["names"]]
    _each_once((name for cluster in values["clusters"] for name in cluster), names)
    return values


def _accepted(payload: Mapping[str, Any], values: Values) -> Values:
    given = set(values["accepted"])
    if unknown := given - set(payload["expansions"]):
        raise WrongShape(f"{min(unknown)!r:.80} is not one of the names in the question")
    values["accepted"] = [name for name in payload["expansions"] if name in given]
    return values


def _scores(payload: Mapping[str, Any], values: Values) -> Values:
    _each_once(values["scores"], payload["entities"])
    values["scores"] = {name: values["scores"][name] for name in payload["entities"]}
    return values


def _each_once(given: Iterable[str], asked: Sequence[str]) -> None:
    counts = Counter(iter(given))  # a dict itself would be taken for counts
    if unknown := counts.keys() - set(asked):
        raise WrongShape(f"{min(unknown)!r:.80} is not one of the names in the question")
    if left_out := [name for name in asked if not counts[name]]:
        raise WrongShape(f"the answer does not contain the name {left_out[0]!r:.80}")
    if repeated := [name for name, count in counts.items() if count > 1]:
        raise WrongShape(f"the answer contains the name {repeated[0]!r:.80} twice")


_FORMS: Mapping[StageKind, tuple[type[_Form], Finish]] = {
    "select": (_Keep, _as_it_is),
    "author": (_Authored, _authored),
    "audit": (_Audited, _audited),
    "vet": (_Vetted, _vetted),
    "clean-procedures": (_IsProcedure, _as_it_is),
    "clean-steps": (_ValidSteps, _valid_steps),
    "clean-changes": (_Certainty, _as_it_is),
    "entities": (_Clusters, _clustered),
    "attributes": (_Clusters, _clustered),
    "expansions": (_Accepted, _accepted),
    "salience": (_Scores, _scores),
    "judge": (_PairVerdicts, _pair_verdicts),
    "hallucinations": (_Hallucinated, _as_it_is),
    "correct": (_Correction, _corrected),
}
