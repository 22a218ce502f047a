"""The values of every attribute as bands over the steps: where the pot is, and when it is hot."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, groupby, pairwise

from fluents.records import EntityCluster
from fluents.report.trace_layout import WIDEST_SPAN, EntityRow, Entry, Matrix
from fluents.text.names import fold

COLOURS = 12
"""How many the style has. With more values than that, some share one; neighbours in a track never do."""

_MANY_TRACKS = 40
"""Beyond so many tracks, entities show their first one alone until they are opened."""


@dataclass(frozen=True)
class Band:
    """A value and the columns in which it holds; without words, nothing is said there."""

    words: str
    start: int
    """Column 0 is before the first step, column n after step n."""
    stop: int
    entries: tuple[Entry, ...] = ()
    """The changes that lead to the value, or away from it where it is `assumed`."""
    assumed: bool = False
    """Whether it is the value before the first change: said of that moment alone."""
    broken: str = ""
    """The value the change starts from, where the band to the left has another."""
    colour: int | None = None

    def spans(self) -> Iterator[int]:
        """Its width, in pieces that HTML reads."""
        for column in range(self.start, self.stop, WIDEST_SPAN):
            yield min(WIDEST_SPAN, self.stop - column)

    @property
    def is_unsure(self) -> bool:
        return bool(self.entries) and all(entry.change.is_unsure for entry in self.entries)

    @property
    def confidence(self) -> float | None:
        """Of the surest change, where all have one; likewise `support`."""
        return _most([entry.change.confidence for entry in self.entries])

    @property
    def support(self) -> float | None:
        return _most([entry.change.support for entry in self.entries])

    @property
    def when(self) -> str:
        if self.assumed:
            return f"before step {self.stop}"
        last = self.stop - 1
        return f"after step {self.start}" if last == self.start else f"after steps {self.start} to {last}"


@dataclass(frozen=True)
class Track:
    """One attribute of an entity, on one side."""

    attribute: str
    is_gold: bool
    bands: tuple[Band, ...]


@dataclass(frozen=True)
class Lifeline:
    """An entity and its tracks, the one with most changes first."""

    row: EntityRow
    tracks: tuple[Track, ...]
    opened: bool

    @property
    def is_broken(self) -> bool:
        return any(band.broken for track in self.tracks for band in track.bands)


def lifelines_of(matrix: Matrix) -> list[Lifeline]:
    """Lay out the values of every attribute. The same words have the same colour throughout a trace."""
    clusters = matrix.trace.clusters + (matrix.gold.clusters if matrix.gold else ())
    by_name: dict[str, list[EntityCluster]] = {}
    for cluster in clusters:
        by_name.setdefault(fold(cluster.name), []).append(cluster)
    columns = len(matrix.steps) + 1
    drawn = [(row, list(_tracks(row, by_name.get(fold(row.name), ()), columns))) for row in matrix.rows]
    colours = _colours([track for _, tracks in drawn for track in tracks])
    opened = sum(len(tracks) for _, tracks in drawn) <= _MANY_TRACKS
    return [Lifeline(row, tuple(_coloured(track, colours) for track in tracks), opened) for row, tracks in drawn]


def _tracks(row: EntityRow, clusters: Iterable[EntityCluster], columns: int) -> Iterator[Track]:
    """The attribute with most changes first, the others in the order of their first change; gold under prediction."""
    names = {
        fold(mention): attribute.name
        for cluster in clusters
        for attribute in cluster.attributes
        for mention in (attribute.name, *attribute.mentions)
    }
    found: dict[str, tuple[str, list[Entry]]] = {}
    for entry in row.entries:
        words = entry.change.attribute
        name = names.get(fold(words), words)
        found.setdefault(fold(name), (name, []))[1].append(entry)
    for name, entries in sorted(found.values(), key=lambda one: -len(one[1])):
        for is_gold in (False, True):
            side = [entry for entry in entries if entry.is_gold is is_gold]
            if side:
                yield Track(name, is_gold, tuple(_bands(side, columns)))


def _bands(entries: Sequence[Entry], columns: int) -> Iterator[Band]:
    steps = [(step, tuple(group)) for step, group in groupby(entries, key=lambda entry: entry.change.step)]
    first, leaving = steps[0]
    held = _joined(entry.change.before for entry in leaving)
    yield Band(held, 0, first, leaving if held else (), assumed=True)
    for (step, group), (following, _) in pairwise([*steps, (columns, ())]):
        before = _joined(entry.change.before for entry in group)
        yield Band(
            _joined(entry.change.after for entry in group) or "—",
            step,
            following,
            group,
            broken=before if held and before and fold(before) != fold(held) else "",
        )
        held = _joined(entry.change.after for entry in group)


def _joined(values: Iterable[str]) -> str:
    """Different values of one moment, side by side."""
    distinct = {fold(value): value for value in values if value.strip()}
    return " · ".join(distinct.values())


def _most(shares: Sequence[float | None]) -> float | None:
    known = [share for share in shares if share is not None]
    return max(known) if known and len(known) == len(shares) else None


def _colours(tracks: Sequence[Track]) -> dict[str, int]:
    """A colour for each value: one that no neighbour in a track has, and of these the one that is used least."""
    values = [[fold(band.words) for band in track.bands if band.words.strip("—")] for track in tracks]
    neighbours: dict[str, set[str]] = {}
    for left, right in chain.from_iterable(pairwise(track) for track in values):
        if left != right:
            neighbours.setdefault(left, set()).add(right)
            neighbours.setdefault(right, set()).add(left)
    colours: dict[str, int] = {}
    used: Counter[int] = Counter()
    for value in dict.fromkeys(chain.from_iterable(values)):
        taken = {colours.get(neighbour) for neighbour in neighbours.get(value, ())}
        free = [colour for colour in range(COLOURS) if colour not in taken] or range(COLOURS)
        colours[value] = min(free, key=lambda colour: used[colour])
        used[colours[value]] += 1
    return colours


def _coloured(track: Track, colours: dict[str, int]) -> Track:
    return replace(track, bands=tuple(replace(band, colour=colours.get(fold(band.words))) for band in track.bands))
