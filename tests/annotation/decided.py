"""People who decide on items, for tests: a notebook gives every decision an id and a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from fluents.annotation import Decision, Item, StageOutcome, check_answer, items, outcome
from fluents.annotation.design import ProjectDesign, StageDesign
from fluents.records import Procedure, StateChange, Trace

TEA = Procedure(
    id="tea",
    goal="Make tea",
    steps=("Boil the water.", "Pour the water into the cup.", "Put the bag into the cup.", "Take the bag out."),
    images=("1.jpg", "2.jpg", "3.jpg", "4.jpg"),
)

Say = Callable[[Item, str], Mapping[str, Any]]
"""(item, author) → answer."""


def change(step: int, entity: str, attribute: str, before: str, after: str, **more: Any) -> StateChange:
    return StateChange(step=step, entity=entity, attribute=attribute, before=before, after=after, **more)


BOILED = change(1, "water", "temperature", "cold", "hot")
POURED = change(2, "water", "location", "in the kettle", "in the cup")
FILLED = change(2, "cup", "fullness", "empty", "full")
SOAKED = change(3, "bag", "wetness", "dry", "wet")
MOVED = change(4, "bag", "location", "in the cup", "on the saucer")
TEA_TRACE = Trace(procedure=TEA, changes=(BOILED, POURED, FILLED, SOAKED, MOVED))


BARE = Trace(procedure=TEA)


def one_stage(kind: str, **settings: Any) -> ProjectDesign:
    """A project of a single stage."""
    return ProjectDesign(name="tea", stages=(StageDesign.model_validate({"kind": kind, **settings}),))


def shown(change: StateChange, **more: Any) -> dict[str, Any]:
    """A change as a form sends it."""
    names = ("step", "entity", "attribute", "before", "after")
    return {name: getattr(change, name) for name in names} | more


class Notebook:
    """Takes down decisions."""

    def __init__(self) -> None:
        self.decisions: list[Decision] = []

    def note(self, item: Item, author: str, answer: Mapping[str, Any], **more: Any) -> Decision:
        number = len(self.decisions) + 1
        checked = check_answer(item, answer) if answer else {}
        made = Decision(
            id=f"decision-{number}", item=item.id, author=author, answer=checked, time=float(number), **more
        )
        self.decisions.append(made)
        return made


def run(
    design: ProjectDesign, traces: Iterable[Trace], say: Say, *, stage: int = 1, people: str = "ABCDEFG", **sources: Any
) -> StageOutcome:
    """The outcome of a stage on whose items the first people who may decide on them do."""
    before = list(traces)
    made = list(items(design, stage, before, **sources))
    notebook = Notebook()
    busy: dict[str | None, str] = {}
    for item in made:
        free = "".join(author for author in people if item.apart is None or author not in busy.get(item.apart, ""))
        for author in free[: item.judges]:
            notebook.note(item, author, say(item, author))
            busy[item.apart] = busy.get(item.apart, "") + author
    return outcome(design, stage, before, made, notebook.decisions)
