"""CREPE (Zhang et al. 2023): how likely events and entity states become along a procedure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from fluents.data import file_catalogue
from fluents.errors import InputError
from fluents.jsonl import wrong_shape_is_input_error
from fluents.records import Procedure, Provenance, StateChange, Trace
from fluents.task_records import CrepeCase, Likelihood

START = "Start"
"""What step 0 says, with or without a full stop: nothing has been done yet."""
_FIX = "copy the file of CREPE again; if this is not such a file, use one of the formats in docs/formats.md"
_OPPOSITE = {"more likely": "less likely", "less likely": "more likely", "True": "False", "False": "True"}


def cases(document: Mapping[str, Any], where: str) -> Iterator[CrepeCase]:
    """The cases of a document {id: {"goal", "steps"}}."""
    for case_id, value in document.items():
        with wrong_shape_is_input_error(f"case {case_id!r:.80} is not in the CREPE format", where, _FIX):
            case = _case(case_id, value)
        yield case


def _case(case_id: str, value: Mapping[str, Any]) -> CrepeCase:
    steps = value["steps"]
    if steps[0][0]["step"].rstrip(".") != START:
        raise InputError(f"the first step of case {case_id!r} must be {START!r}")
    return CrepeCase(
        procedure=Procedure(id=case_id, goal=value["goal"], steps=tuple(items[0]["step"] for items in steps[1:])),
        likelihoods=tuple(
            Likelihood(
                step=number,
                change=item["change"],
                event=item.get("event"),
                entity=item.get("entity"),
                attribute=item.get("attribute"),
                predicted=item["type"].startswith("predicted"),
            )
            for number, items in enumerate(steps)
            for item in items[1:]
        ),
        annotator=value.get("annotator"),
    )


def load(split: str) -> Iterator[CrepeCase]:
    """CREPE: dev, test, or the released answers of Codex."""
    path = {
        "dev": "data_dev_v2.json",
        "test": "data_test_v2.json",
        "codex-events": "codex/v1.2/data_dev_out_event_only_atonce.json",
        "codex-entities": "codex/v1.2/data_dev_out_entity_and_event_atonce.json",
    }[split]
    value, where = file_catalogue.document("crepe", path)
    return cases(value, where)


def trace_of(case: CrepeCase) -> Trace:
    """The annotated entity states as changes: what becomes more likely was less likely before.

    Events and predictions are left out.
    """
    return Trace(
        procedure=case.procedure,
        changes=tuple(
            StateChange(
                step=item.step,
                entity=item.entity,
                attribute=item.attribute,
                before=_OPPOSITE.get(item.change, ""),
                after=item.change,
            )
            for item in case.likelihoods
            if item.entity and item.attribute and item.step > 0 and not item.predicted
        ),
        provenance=Provenance(dataset="crepe"),
    )
