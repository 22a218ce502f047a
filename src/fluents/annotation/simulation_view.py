"""A simulated project as tables for the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fluents.annotation.simulation import MEASURED, Simulation

if TYPE_CHECKING:
    from rich.console import RenderableType


def simulation_view(simulation: Simulation) -> RenderableType:
    """The stages as a table, and under it what other numbers of judges would give."""
    from rich.console import Group

    from fluents.report.terminal import plain, table_of

    columns = {
        "stage": [f"{one.number} {one.kind}" for one in simulation.stages],
        "judges": [str(one.judges) for one in simulation.stages],
        "items": [f"{one.items:,}" for one in simulation.stages],
        "decisions": [f"{one.decisions:,}" for one in simulation.stages],
        "agree": [_share(one.full) for one in simulation.stages],
        "alpha": [_share(one.alpha) for one in simulation.stages],
        "F1": [_share(one.f1) for one in simulation.stages],
        "right": [_share(one.right) for one in simulation.stages],
        "kept": ["" if one.noun is None else f"{one.kept:,} {one.noun}" for one in simulation.stages],
        "precision": [_share(one.precision) for one in simulation.stages],
        "recall": [_share(one.recall) for one in simulation.stages],
        f"pay, {simulation.currency}": ["" if one.pay is None else f"{one.pay:,.2f}" for one in simulation.stages],
    }
    told = {name: cells for name, cells in columns.items() if any(cell not in ("", _NONE) for cell in cells)}
    parts: list[RenderableType] = [table_of(list(told), list(zip(*told.values(), strict=True)))]
    parts += [plain(f"{name}: {meaning}", "dim") for name, meaning in _MEANINGS.items() if name in told]
    for kind in dict.fromkeys(one.kind for one in simulation.needed):
        of_kind = [one for one in simulation.needed if one.kind == kind]
        errors = list(dict.fromkeys(one.error for one in of_kind))
        cells = {(one.judges, one.error): f"{_share(one.precision)} / {_share(one.recall)}" for one in of_kind}
        lines = [
            [str(judges), *(cells[judges, error] for error in errors)]
            for judges in dict.fromkeys(one.judges for one in of_kind)
        ]
        parts.append(plain(f"\nStage {kind}: precision / recall of the {MEASURED[kind]} that it keeps", "bold"))
        parts.append(table_of(["judges", *(f"{error:.0%} errors" for error in errors)], lines))
    return Group(*parts)


_NONE = "–"
_MEANINGS = {
    "judges": "number of people who answer each item",
    "items": "questions of the stage",
    "decisions": "answers to all items",
    "agree": "how often all judges give the same answer (1: always)",
    "alpha": "Krippendorff's alpha (1: all agree, 0: no better than chance)",
    "F1": "how many changes two authors have in common (1: all, 0: none); the wording does not matter",
    "right": "how often the answer of the majority is right (1: always)",
    "kept": "what is left after the stage",
    "precision": "share of what is kept that is right",
    "recall": "share of what is right that is kept",
}


def _share(value: float | None) -> str:
    return _NONE if value is None else f"{value:.2f}"
