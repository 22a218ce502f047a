"""--min-salience and --top: only what matters, in every command that shows or scores traces."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated

import typer

from fluents.cli.output import messages
from fluents.cli.sources import Source
from fluents.errors import InputError
from fluents.records import Procedure, Trace
from fluents.report.terminal import plain

if TYPE_CHECKING:
    from fluents.salience.filter import Keep


@dataclass(frozen=True)
class Salient:
    """Each field is an option."""

    min_salience: Annotated[
        float | None, typer.Option(min=0, max=5, help="Only entities that matter this much to the goal, 0 to 5.")
    ] = None
    top: Annotated[int | None, typer.Option(min=1, help="Only so many entities, those that matter most.")] = None

    @property
    def keep(self) -> Keep | None:
        """What to keep; None for everything."""
        from fluents.salience.filter import Keep

        return None if self.min_salience is None and self.top is None else Keep(self.min_salience, self.top)

    def after(
        self, run: Callable[[Iterable[Procedure]], Iterator[Trace]]
    ) -> Callable[[Iterable[Procedure]], Iterator[Trace]]:
        """A run whose traces keep only what matters, and which says where nothing is left."""
        wanted = self.keep
        if wanted is None:
            return run
        from fluents.salience.filter import keep_salient

        def kept(procedures: Iterable[Procedure]) -> Iterator[Trace]:
            for trace in run(procedures):
                left = keep_salient(trace, wanted)
                if trace.changes and not left.changes:
                    messages.print(plain(f"{trace.id}: nothing matters enough, {len(trace.changes)} changes left out"))
                yield left

        return kept


@dataclass(frozen=True)
class ScoredSalient(Salient):
    """Likewise, for a score, where gold and predictions may be rated by different hands."""

    salience_rater: Annotated[
        str | None, typer.Option(help="Whose ratings decide, such as A1; else predictions are rated offline.")
    ] = None

    @property
    def keep(self) -> Keep | None:
        wanted = super().keep
        if wanted is None and self.salience_rater is not None:
            raise InputError("--salience-rater decides nothing here", fix="add --min-salience or --top")
        return None if wanted is None else replace(wanted, rater=self.salience_rater)

    def gold(self, name: str) -> Source:
        """The gold, without what does not matter in the procedures that have ratings."""
        return Source(name) if self.keep is None else SalientSource(name, self.keep, is_gold=True)

    def pred(self, name: str) -> Source:
        """The predictions, without what does not matter by the rater's ratings or, where there are none, offline."""
        return Source(name) if self.keep is None else SalientSource(name, self.keep)


@dataclass(frozen=True)
class SalientSource(Source):
    """A source of which only what matters is read."""

    keep: Keep
    is_gold: bool = False
    whole: list[str] = field(default_factory=list, compare=False)
    """The gold procedures that nobody rated, and which stay as they are."""
    emptied: list[str] = field(default_factory=list, compare=False)
    """The procedures of which nothing is left."""

    def traces(self) -> Iterator[Trace]:
        self.whole.clear()
        self.emptied.clear()
        for trace in super().traces():
            left = self._kept(trace)
            if trace.changes and not left.changes:
                self.emptied.append(trace.id)
            yield left

    def _kept(self, trace: Trace) -> Trace:
        from fluents.salience.filter import has_ratings, keep_rated, keep_salient

        if not self.is_gold:
            return keep_salient(trace, self.keep)
        if has_ratings(trace, self.keep):
            return keep_rated(trace, self.keep)
        self.whole.append(trace.id)
        return trace

    @property
    def kept(self) -> str:
        return str(self.keep)

    def warnings(self) -> Iterator[str]:
        if self.whole:
            whose = f" by {self.keep.rater}" if self.keep.rater else ""
            yield f"{len(self.whole)} gold procedures have no salience{whose}, and are scored whole"
        if self.emptied:
            whose = "gold" if self.is_gold else "predicted"
            yield f"nothing of {len(self.emptied)} {whose} procedures matters enough: none of their changes is scored"
