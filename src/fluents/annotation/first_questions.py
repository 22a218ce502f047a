"""Whether a new project has questions at all, and if its first stage has none, why, and what to do."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from typing import NamedTuple

from fluents.annotation.cleaning import selection_report
from fluents.annotation.design import ProjectDesign, StageDesign, StageKind
from fluents.annotation.stages import items, outcome
from fluents.errors import FluentsWarning, InputError
from fluents.records import Trace
from fluents.text.names import counted


class Material(NamedTuple):
    """What a project is made from."""

    traces: Sequence[Trace]
    drafts: Sequence[Trace] = ()
    systems: Mapping[str, Sequence[Trace]] = {}


_SAME_SOURCE = "make them from the same texts or traces as the project"


class Advice(NamedTuple):
    """Why there are no questions, and what to do."""

    reason: str
    fix: str


def check_questions(design: ProjectDesign, material: Material) -> None:
    """A project that can never ask anything is an error; one whose first questions are not as expected is a warning."""
    number = first_asking_stage(design, material)
    if number is None:
        advice = _advice(design.stages[0], material)
        raise InputError(f"no stage of this project has questions, because {advice.reason}", fix=advice.fix)
    if number > 1:
        advice = _advice(design.stages[0], material)
        _warn(
            f"the first stage has no questions, because {advice.reason}. The first stage with questions is stage "
            f"{number} ({design.stage(number).kind})",
            advice.fix,
        )
    for advice in _on_drafts(design, material):
        _warn(f"in the stage correct, {advice.reason}", advice.fix)


def first_asking_stage(design: ProjectDesign, material: Material) -> int | None:
    """The first stage that has a question. The stages before it have no answers, so what they leave is known."""
    traces = material.traces
    for number in range(1, len(design.stages) + 1):
        asked = items(design, number, traces, drafts=material.drafts, systems=material.systems)
        if next(asked, None) is not None:
            return number
        traces = outcome(design, number, traces, (), ()).traces
    return None


def _warn(what: str, fix: str) -> None:
    warnings.warn(f"{what}\n  fix: {fix}", FluentsWarning, stacklevel=4)


def _advice(stage: StageDesign, material: Material) -> Advice:
    """On a stage that has no questions."""
    if stage.kind == "select":
        return _on_selection(stage, material.traces)
    if stage.kind in ("judge", "hallucinations"):
        return _on_judging(material)
    if not any(trace.changes for trace in material.traces):
        return Advice(
            "the procedures contain no changes",
            "give traces, for example from `fluents track`, or let people write changes first (stage author)",
        )
    return _NO_NAMES[stage.kind]


_NO_NAMES: Mapping[StageKind, Advice] = {
    "entities": Advice(
        "no procedure has changes of more than one entity", "leave out the stage entities: there is nothing to group"
    ),
    "attributes": Advice(
        "no entity has more than one attribute", "leave out the stage attributes: there is nothing to group"
    ),
    "expansions": Advice(
        "no other names are known for the entities and attributes of the procedures",
        "let people group names first (stages entities and attributes), or give traces from `fluents expand`",
    ),
}
"""On stages that may have no questions although there are changes."""


def _on_selection(stage: StageDesign, traces: Sequence[Trace]) -> Advice:
    report = selection_report(traces, stage)
    reasons = [name for name in report if name not in ("procedures", "left") and report[name]]
    counts = ", ".join(f"{report[name]:,} with {name}" for name in reasons)
    return Advice(
        f"the filter of the stage select removes every procedure ({counts})",
        "choose other procedures, or set `min_steps`, `max_steps` or `filtered` of the stage select in a design file",
    )


def _on_judging(material: Material) -> Advice:
    if not material.systems:
        return Advice(
            "there are no predictions to judge",
            "give the predictions of a system as `system`, for example mine=mine.jsonl",
        )
    known = {trace.id for trace in material.traces}
    if not any(trace.id in known for found in material.systems.values() for trace in found):
        return Advice(
            "no prediction has the id of a procedure of the project",
            _SAME_SOURCE,
        )
    return Advice("the predictions contain no changes", "check the files of `system`")


def _on_drafts(design: ProjectDesign, material: Material) -> Iterator[Advice]:
    """On procedures for which there is nothing to correct, unless people write changes before."""
    kinds = [stage.kind for stage in design.stages]
    before = list(takewhile(lambda kind: kind != "correct", kinds))
    if "correct" not in kinds or "author" in before or "audit" in before:
        return
    drafts = {draft.id: draft for draft in material.drafts}
    empty = sum(not drafts.get(trace.id, trace).changes for trace in material.traces)
    if drafts and not any(trace.id in drafts for trace in material.traces):
        yield Advice("no draft has the id of a procedure of the project", _SAME_SOURCE)
    elif empty:
        yield Advice(
            f"people start from an empty list for {empty:,} of {counted(len(material.traces), 'procedure')}, because "
            "there is no draft with changes",
            "add `draft`, for example the output of `fluents track`; or use the stage author, in which people write "
            "all changes themselves",
        )
