"""The design of an annotation project: its stages, how many judge each item, and what they are paid."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeAlias, get_args

from pydantic import Field, ValidationError, model_validator

from fluents import jsonl
from fluents.errors import InputError
from fluents.records import Record, Text

StageKind: TypeAlias = Literal[
    "select",
    "author",
    "audit",
    "vet",
    "clean-procedures",
    "clean-steps",
    "clean-changes",
    "entities",
    "attributes",
    "expansions",
    "salience",
    "judge",
    "hallucinations",
    "correct",
]
STAGE_KINDS: tuple[StageKind, ...] = get_args(StageKind)

Role: TypeAlias = Literal["annotator", "adjudicator", "owner"]

Sight: TypeAlias = Literal["with_image", "without_image"]
"""Whether an annotator sees the images of the steps."""

JUDGES: Mapping[StageKind, int] = {
    "select": 1,
    "author": 2,
    "audit": 1,
    "vet": 3,
    "clean-procedures": 3,
    "clean-steps": 3,
    "clean-changes": 2,
    "entities": 1,
    "attributes": 1,
    "expansions": 1,
    "salience": 2,
    "judge": 1,
    "hallucinations": 1,
    "correct": 1,
}
"""How many people decide on an item, as in the papers; authors are counted for each modality."""

_INVALID = "not a valid design of an annotation project"
MAX_JUDGES = 99
MAX_STAGES = 50
MAX_TEXT = 200_000
"""Characters of a guideline or of a consent."""

OFFERED_ATTRIBUTES: tuple[str, ...] = (
    *("location", "position", "orientation", "distance", "height", "depth", "direction"),
    *("temperature", "wetness", "cleanliness", "color", "brightness", "transparency", "sound"),
    *("shape", "size", "length", "width", "thickness", "volume", "weight", "amount", "fullness"),
    *("texture", "hardness", "smoothness", "stickiness", "flexibility", "tightness", "sharpness", "strength"),
    *("composition", "contents", "mixture", "taste", "smell", "ripeness", "freshness", "doneness"),
    *("existence", "openness", "power", "motion", "speed", "pressure", "attachment", "coverage"),
    *("ownership", "availability", "completeness", "condition"),
)
"""Fifty-one attributes to choose from; annotators may always write others."""


class Pay(Record):
    """What a decision earns: a price for the item, and one for each change written, in two tiers."""

    per_item: Annotated[float, Field(ge=0)] = 0.0
    per_change: Annotated[float, Field(ge=0)] = 0.0
    first: Annotated[int, Field(ge=0)] = 3
    """How many changes of a step are paid at the first price."""
    per_change_after: Annotated[float, Field(ge=0)] | None = None
    """The price of every further change of the step; None for the same price."""
    per_ruling: Annotated[float, Field(ge=0)] = 0.0
    """What an adjudicator's ruling or an expert's check earns, in place of the other prices."""
    currency: Annotated[str, Field(max_length=12)] = "USD"


class StageDesign(Record):
    """One stage: what is asked, and of how many."""

    kind: StageKind
    judges: Annotated[int, Field(ge=0, le=MAX_JUDGES)] = 0
    """How many people decide on each item; where none is given, as many as in the papers."""
    pay: Pay | None = None
    expert_check: Annotated[int, Field(ge=0)] = 0
    """How many items an expert judges as well, to see how often the outcome is right."""
    min_steps: Annotated[int, Field(ge=1)] = 4
    """Select: procedures with fewer steps fail; likewise `max_steps`."""
    max_steps: Annotated[int, Field(ge=1)] = 6
    filtered: bool = True
    """Select: remove procedures that fail the filters without asking anybody."""
    max_changes: Annotated[int, Field(ge=1, le=50)] = 6
    """Author: the most changes of a step."""
    modalities: Annotated[tuple[Sight, ...], Field(min_length=1, max_length=2)] = ("without_image",)
    """Author: who sees images; each modality has its own annotators."""
    offered: tuple[Annotated[Text, Field(max_length=100)], ...] = OFFERED_ATTRIBUTES
    """Author: attributes to choose from."""
    blind_first: bool = False
    """Correct: annotators write what they think before they see the draft."""
    scope: Literal["both", "global", "local"] = "both"
    """Salience: to the goal, in each step, or both."""

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if not self.judges:
            object.__setattr__(self, "judges", JUDGES[self.kind])
            self.model_fields_set.add("judges")
        if self.max_steps < self.min_steps:
            raise ValueError("`max_steps` must be at least as large as `min_steps`")
        if len(set(self.modalities)) < len(self.modalities):
            raise ValueError("`modalities` must not contain the same value twice")
        return self

    @property
    def majority(self) -> int:
        """The least number of judges that are more than half of them."""
        return self.judges // 2 + 1


class ProjectDesign(Record):
    """A project's name, its stages in order, and the texts that annotators see."""

    name: Annotated[Text, Field(max_length=200)]
    stages: Annotated[tuple[StageDesign, ...], Field(min_length=1, max_length=MAX_STAGES)]
    guideline: Annotated[str, Field(max_length=MAX_TEXT)] = ""
    consent: Annotated[Text, Field(max_length=MAX_TEXT)] | None = None
    """Shown before anybody decides; None where nothing is asked."""
    seed: Annotated[int, Field(ge=0, lt=2**53)] = 0
    """For everything that is shuffled or sampled."""

    @model_validator(mode="after")
    def _one_currency(self) -> Self:
        if len({stage.pay.currency for stage in self.stages if stage.pay is not None}) > 1:
            raise ValueError("`currency` must be the same in all stages")
        return self

    def stage(self, number: int) -> StageDesign:
        """The stage of this number, counted from 1."""
        if not 1 <= number <= len(self.stages):
            raise InputError(f"there is no stage {number}", fix=f"choose a number from 1 to {len(self.stages)}")
        return self.stages[number - 1]


def design_of(name: str, stages: str, **given: Any) -> ProjectDesign:
    """A design with stages given as "author,vet", each with the settings of the papers; "vet:1" asks one judge only.

    >>> [stage.judges for stage in design_of("soups", "author,vet,salience:1").stages]
    [2, 3, 1]
    """
    with jsonl.wrong_shape_is_input_error("invalid stages", "`stages`"):
        value = {"stages": list(map(_stage, stages.split(",")))}
    return _validated(value, {"name": name, **given}, "`stages`")


def _stage(text: str) -> dict[str, Any]:
    kind, colon, judges = (part.strip() for part in text.partition(":"))
    if kind not in STAGE_KINDS:
        raise InputError(f"unknown stage {kind!r:.80}", fix=f"choose from: {', '.join(STAGE_KINDS)}")
    if colon and not (
        judges.isascii() and judges.isdecimal() and 1 <= len(judges) <= 3 and 1 <= int(judges) <= MAX_JUDGES
    ):
        raise InputError(
            f"{judges!r:.80} is not a number from 1 to {MAX_JUDGES}",
            where=f"stage {kind}",
            fix=f"say how many people answer each question, for example {kind}:3",
        )
    return {"kind": kind, "judges": int(judges)} if colon else {"kind": kind}


def read_design(path: str | Path, **given: Any) -> ProjectDesign:
    """The design in a JSON file. Fields that are given, such as `name`, stand in place of the file's."""
    with jsonl.open_input(path) as stream:
        data = stream.read(jsonl.MAX_LINE_BYTES)
    return _validated(jsonl.parse_json(data, str(path)), given, str(path))


def _validated(value: Any, given: Mapping[str, Any], where: str) -> ProjectDesign:
    """The design. What is wrong with a given field is blamed on the parameter of this name, and all else on `where`."""
    whole = {**value, **given} if isinstance(value, dict) else value
    try:
        return ProjectDesign.model_validate(whole)
    except ValidationError as error:
        wrong = str(next(iter(error.errors()[0]["loc"]), ""))
    with jsonl.wrong_shape_is_input_error(_INVALID, f"`{wrong}`" if wrong in given else where):
        return ProjectDesign.model_validate(whole)
