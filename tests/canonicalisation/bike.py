"""A procedure whose things go by several names."""

from __future__ import annotations

from fluents.records import Procedure, StateChange, Trace


def change(
    step: int, entity: str, attribute: str = "location", before: str = "here", after: str = "there"
) -> StateChange:
    return StateChange(step=step, entity=entity, attribute=attribute, before=before, after=after)


BIKE = Trace(
    procedure=Procedure(id="bike", goal="Clean a bike", steps=("Wet the bike.", "Rub it with a towel.", "Hang it up.")),
    changes=(
        change(1, "bike", "wetness", "dry", "wet"),
        change(1, "the bicycle", "moisture", "dry", "wet"),
        change(1, "a bike", "cleanness", "dirty", "clean"),
        change(2, "towel", "wetness", "dry", "damp"),
        change(2, "kitchen towel", "wetness", "dry", "damp"),
        change(3, "hook", "fullness", "empty", "full"),
    ),
)
"""The bike goes by three names, and so does its wetness by two."""
