"""The values everything else passes around: Procedure, StateChange, Trace.

All are frozen and validated. Words are kept as their source wrote them; what fluents adds
(canonical names, salience, support) stands beside them, never over them.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterable, Iterator
from importlib import import_module
from typing import Annotated, Any, Literal, NoReturn, Self, TypeAlias

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue, StringConstraints, model_validator

FORMAT_VERSION = 1
"""Version of the JSONL format. Raised only when an older reader would misread a newer file."""

UNKNOWN_STEP = "(text not given)"
"""Stands in for the text of a step in files that hold answers alone."""

Text: TypeAlias = Annotated[str, StringConstraints(pattern=r"\S")]
"""A string with something to read in it."""

Modality: TypeAlias = Literal["with_image", "without_image", "both"]


def _refuse(*_: object, **__: object) -> NoReturn:
    raise TypeError("records are frozen: build a new one with .replace(...)")


class FrozenDict(dict[str, Any]):
    """A dict that refuses to change, so that a record holding one stays a value."""

    __setitem__ = __delitem__ = __ior__ = clear = pop = popitem = setdefault = update = _refuse

    def __reduce__(self) -> tuple[Any, ...]:  # a copy is made at once, not key by key
        return FrozenDict, (dict(self),)

    def __hash__(self) -> int:  # type: ignore[override]  # a dict has none; this one does not change
        return hash(frozenset(self.items()))


class FrozenList(list[Any]):
    """Likewise a list, inside of one."""

    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse
    append = clear = extend = insert = pop = remove = reverse = sort = _refuse

    def __reduce__(self) -> tuple[Any, ...]:
        return FrozenList, (list(self),)

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(self))


def _frozen(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):  # JSON has no word for it: it would come back as null
        raise ValueError("Input should be a finite number")
    if isinstance(value, dict):
        return FrozenDict({key: _frozen(item) for key, item in value.items()})
    return FrozenList(map(_frozen, value)) if isinstance(value, list) else value


Extra: TypeAlias = Annotated[dict[str, JsonValue], AfterValidator(_frozen)]


class Record(BaseModel):
    """What all records share: frozen, and no field goes unnoticed."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    def replace(self, **changes: Any) -> Self:
        """A validated copy with some fields set anew."""
        return type(self)(**{name: getattr(self, name) for name in self.model_fields_set} | changes)

    def __repr_args__(self) -> Iterable[tuple[str | None, Any]]:
        """What differs from the defaults: most fields are empty, and would hide the others."""
        defaults = {name: field.default for name, field in type(self).model_fields.items()}
        return [(name, value) for name, value in super().__repr_args__() if defaults.get(name or "") != value]


MAX_ID_LENGTH = 60
"""Of an id made from words, in characters."""


def id_from(*texts: str) -> str:
    """An id from the first text that has ASCII letters or digits: its first words, joined by hyphens."""
    for text in texts:
        folded = unicodedata.normalize("NFKD", re.sub("['’]", "", text[: 10 * MAX_ID_LENGTH]))
        slug = ""
        for word in re.findall("[a-z0-9]+", folded.encode("ascii", "ignore").decode().lower()):
            longer = f"{slug}-{word}" if slug else word[:MAX_ID_LENGTH]
            if len(longer) > MAX_ID_LENGTH:
                break
            slug = longer
        if slug:
            return slug
    return "procedure"


class Procedure(Record):
    """A goal and the steps towards it."""

    id: Text = ""
    """Made from the goal, or from the first step, where none is given."""
    goal: str = ""
    steps: tuple[Text, ...]
    topic: str | None = None
    source: str | None = None
    """Where the text comes from: an address, a file, a dataset."""
    images: tuple[str, ...] = ()
    """Addresses of the steps' illustrations, one for each step, or none at all."""
    extra: Extra = Field(default={}, validate_default=True)
    """What the source file holds that no field here means."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.images and len(self.images) != len(self.steps):
            raise ValueError(
                f"the number of images ({len(self.images)}) differs from the number of steps ({len(self.steps)})"
            )
        if not self.id:
            object.__setattr__(self, "id", id_from(self.goal, *self.steps[:1]))  # a frozen record refuses the plain way
            self.model_fields_set.add("id")
        return self


class Alternatives(Record):
    """Every wording annotators gave for a field, where it is not simply the field itself."""

    entity: tuple[str, ...] = ()
    attribute: tuple[str, ...] = ()
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()


LEAST_SURE = 0.5
"""A change with less confidence, or without one with less support, is unsure."""


class StateChange(Record):
    """At one step, one attribute of one entity goes from one state to another."""

    step: Annotated[int, "counted from 1"]
    entity: Text
    attribute: Text
    before: str
    """Empty where the source names entity and attribute alone."""
    after: str
    raw: str | None = None
    """The sentence it was read from, where it is not what the template prints."""
    alternatives: Alternatives = Alternatives()
    modality: Modality | None = None
    """Whether the annotator saw the step's image."""
    votes: int | None = None
    """How often annotators' words support it (OpenPI2.0)."""
    saliency: float | None = None
    """OpenPI2.0's automatic estimate, before people rated salience."""
    support: float | None = None
    """The share of samples or systems that agree with a predicted change, 0 to 1."""
    confidence: Annotated[float, Field(ge=0, le=1)] | None = None
    """How likely a predicted change is right: calibrated, so that of changes with 0.7 about 70 % are."""
    mentioned: bool | None = None
    """Whether the entity stands as a span in this or an earlier step."""
    cluster: int | None = None
    """Changes of a step with the same number say the same thing (OpenPI-C)."""

    @property
    def sentence(self) -> str:
        """The raw sentence if there is one, else the template filled in."""
        return self.raw if self.raw is not None else self.templated

    @property
    def is_unsure(self) -> bool:
        """Whether it is so unlikely, or so few samples agree with it, that a reader should doubt it."""
        share = self.support if self.confidence is None else self.confidence
        return share is not None and share < LEAST_SURE

    @property
    def templated(self) -> str:
        return f"{self.attribute} of {self.entity} was {self.before} before and {self.after} afterwards"


class Annotation(Record):
    """One annotator's own words, from which the published changes were made (OpenPI)."""

    step: int
    sentence: str
    entity: str
    attribute: str
    before: str
    after: str
    modality: Modality


class SimilarPair(Record):
    """Two sentences of one step and how alike they were found (OpenPI v1.1)."""

    step: int
    first: str
    second: str
    similarity: float


class AttributeCluster(Record):
    """The names one attribute of an entity goes by."""

    name: Text
    mentions: tuple[str, ...]
    expansions: tuple[str, ...] = ()
    """Paraphrases nobody wrote, added for fairer evaluation."""


class EntityCluster(Record):
    """The names one entity goes by, and its attributes'."""

    name: Text
    mentions: tuple[str, ...]
    expansions: tuple[str, ...] = ()
    attributes: tuple[AttributeCluster, ...] = ()


class TrackedEntity(Record):
    """What is known of an entity as a whole, and of its part in each step."""

    name: Text
    wordings: tuple[tuple[str, ...], ...] = ()
    """Groups of names that annotation joined under this one."""
    votes: int | None = None
    score: float | None = None
    step_votes: tuple[int, ...] = ()
    """One number a step, or none at all; likewise `step_scores`."""
    step_scores: tuple[float, ...] = ()


class Salience(Record):
    """How much an entity matters, to the goal or to one step, in somebody's judgement."""

    entity: Text
    rater: Text
    """A person ("A1") or a model ("gpt-4")."""
    step: int | None = None
    """None for the whole procedure."""
    value: int | float | None
    """1 to 5, 0 for irrelevant; None where the rater's answer could not be read. Out-of-range
    values of the published files are kept as they are."""
    explanation: str | None = None


class Reject(Record):
    """Something that was said and could not be read as a change."""

    text: str
    reason: Text
    step: int | None = None
    position: Annotated[int, Field(ge=0, le=2**31)] | None = None
    """Where it stood among the step's answers, counted from 0; None if it was not one of them."""


class Provenance(Record):
    """Where a trace comes from, enough to make it again."""

    tracker: str | None = None
    model: str | None = None
    prompt: str | None = None
    decoding: Extra = Field(default={}, validate_default=True)
    seed: int | None = None
    version: str | None = None
    """Of the fluents package."""
    dataset: str | None = None
    """Name and split, for gold traces."""


class Trace(Record):
    """A procedure and what changes in it: gold or predicted, one line of a file."""

    procedure: Procedure
    changes: tuple[StateChange, ...] = ()
    covered: tuple[int, ...] | None = None
    """The steps that were answered, where not all were; a step left out is not a step without changes."""
    rejects: tuple[Reject, ...] = ()
    clusters: tuple[EntityCluster, ...] = ()
    entities: tuple[TrackedEntity, ...] = ()
    salience: tuple[Salience, ...] = ()
    annotations: tuple[Annotation, ...] = ()
    similar: tuple[SimilarPair, ...] = ()
    provenance: Provenance = Provenance()
    error: Text | None = None
    """Why it could not be made, or not as a whole; such a trace stands in the results of batch runs, to be retried."""

    @model_validator(mode="after")
    def _steps_exist(self) -> Self:
        count = len(self.procedure.steps)
        known = f"steps 1 to {count}" if count > 1 else "only step 1" if count else "no steps"
        for change in self.changes:
            if not 1 <= change.step <= count:
                raise ValueError(f"a change is at step {change.step}, but the procedure has {known}")
        for step in self.covered or ():
            if not 1 <= step <= count:
                raise ValueError(f"`covered` contains step {step}, but the procedure has {known}")
        return self

    @property
    def id(self) -> str:
        return self.procedure.id

    @property
    def covered_steps(self) -> tuple[int, ...]:
        return tuple(range(1, len(self.procedure.steps) + 1)) if self.covered is None else self.covered

    def at(self, step: int) -> tuple[StateChange, ...]:
        """The changes of one step, in their order."""
        return tuple(change for change in self.changes if change.step == step)

    def by_step(self) -> Iterator[tuple[int, str, tuple[StateChange, ...]]]:
        """(number, text, changes) of every covered step."""
        found: dict[int, list[StateChange]] = {step: [] for step in self.covered_steps}
        for change in self.changes:
            found.setdefault(change.step, []).append(change)
        for step in sorted(found):
            yield step, self.procedure.steps[step - 1], tuple(found[step])

    def rows(self) -> list[dict[str, Any]]:
        """The changes as plain dicts, one each: `pandas.DataFrame(trace.rows())`."""
        return [
            {
                "procedure": self.id,
                "step": change.step,
                "text": self.procedure.steps[change.step - 1],
                "entity": change.entity,
                "attribute": change.attribute,
                "before": change.before,
                "after": change.after,
                "confidence": change.confidence,
                "support": change.support,
                "mentioned": change.mentioned,
            }
            for change in self.changes
        ]

    def _repr_html_(self) -> str:
        """What a notebook shows: the page with its three views."""
        report = import_module("fluents.report.trace_page")  # when it is used: records stand below everything
        return str(report.notebook_html(self))
