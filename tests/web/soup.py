"""What tests of the web application track: a short text, and a trace that a replaying server has for it."""

from __future__ import annotations

from fluents.records import Procedure, Provenance, StateChange, Trace

TEXT = """# Leek soup

1. Wash the leeks.
2. Fry the leeks in butter.
3. Pour in the stock.
4. Boil the soup.
"""
STEPS = ("Wash the leeks.", "Fry the leeks in butter.", "Pour in the stock.", "Boil the soup.")


def change(step: int, entity: str, attribute: str, before: str, after: str, confidence: float = 0.9) -> StateChange:
    return StateChange(
        step=step, entity=entity, attribute=attribute, before=before, after=after, confidence=confidence, support=0.5
    )


SOUP = Trace(
    procedure=Procedure(id="leek-soup", goal="Leek soup", steps=STEPS),
    changes=(
        change(1, "leeks", "cleanness", "dirty", "clean"),
        change(1, "sink", "wetness", "dry", "wet", 0.4),
        change(2, "leeks", "texture", "firm", "soft"),
        change(2, "butter", "state", "solid", "melted", 0.7),
        change(3, "pot", "fullness", "empty", "full"),
        change(4, "soup", "temperature", "cold", "boiling hot", 0.95),
    ),
    provenance=Provenance(tracker="hand"),
)
