"""--min-salience and --top: only the salient entities, in every command that shows or scores traces."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

import typer

from fluents.cli.output import messages
from fluents.errors import InputError
from fluents.records import Trace
from fluents.report.terminal import counted, plain

if TYPE_CHECKING:
    from fluents.salience.filter import Keep


@dataclass(frozen=True)
class Salient:
    """Each field is an option."""

    min_salience: Annotated[
        float | None,
        typer.Option(metavar="X", min=0, max=5, help="Minimum salience of an entity."),
    ] = None
    top: Annotated[int | None, typer.Option(metavar="N", min=1, help="Keep the N most salient entities.")] = None

    @property
    def keep(self) -> Keep | None:
        """What to keep; None for everything."""
        from fluents.salience.filter import Keep

        return None if self.min_salience is None and self.top is None else Keep(self.min_salience, self.top)

    def only(self, trace: Trace, *, report: bool = False) -> Trace:
        """The trace with its salient entities only; can report where nothing is left."""
        wanted = self.keep
        if wanted is None:
            return trace
        from fluents.salience.filter import keep_salient

        left = keep_salient(trace, wanted)
        if report and trace.changes and not left.changes:
            lost = counted(len(trace.changes), "change")
            messages.print(plain(f"{trace.id}: no entity is salient enough; left out {lost}"))
        return left


@dataclass(frozen=True)
class ScoredSalient(Salient):
    """Likewise, for a score, where gold and predictions may have different raters."""

    salience_rater: Annotated[
        str | None, typer.Option(help="Rater whose ratings decide, such as A1; the built-in rater rates the rest.")
    ] = None

    @property
    def keep(self) -> Keep | None:
        wanted = super().keep
        if wanted is None and self.salience_rater is not None:
            raise InputError("`salience_rater` needs `min_salience` or `top`", fix="add one of them")
        return None if wanted is None else replace(wanted, rater=self.salience_rater)
