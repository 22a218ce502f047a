"""Small figures as inline SVG. Every text passes through `visible` and is escaped; colours come from the page's style.

A figure has a title and a description that says all it shows, so that it can be heard as well as seen.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from fluents.metrics.salience import by_procedure
from fluents.records import Trace
from fluents.report.score_tables import with_interval
from fluents.report.trace_page import short, visible
from fluents.scoring.bootstrap import Interval
from fluents.scoring.score import Score

WIDTH = 440
"""Of a figure, in its own units: about as many pixels on a telephone, so that its words stay readable there."""

_LINE = 18
_SERIES = 6
"""Colours; a seventh series begins again, told apart by its letter."""


@dataclass(frozen=True)
class Point:
    label: str
    x: float
    y: float
    series: int | None
    """Which system it belongs to, counted from 0; None for one that is here only to be compared with."""

    def __str__(self) -> str:
        return f"{self.label}: precision {self.y:.1f}, recall {self.x:.1f}"


@dataclass(frozen=True)
class Bar:
    value: float
    interval: Interval | None = None

    def __str__(self) -> str:
        return with_interval(self.value, self.interval, 1)


def letter(series: int) -> str:
    """A, B, C, …, Z, A2, …: what a system goes by in tables and figures."""
    again, place = divmod(series, 26)
    return f"{chr(ord('A') + place)}{again + 1 if again else ''}"


def bars(name: str, title: str, groups: Mapping[str, Sequence[Bar | None]]) -> Markup:
    """Horizontal bars from 0 to 100: a labelled group for every key, in it a bar for every system that has one."""
    parts: list[Markup] = []
    told: list[str] = []
    y = 0
    for label, group in groups.items():
        y += _LINE + 4
        parts.append(text(0, y - 5, short(label, 60)))
        for series, bar in enumerate(group):
            told.append(f"{label}, {letter(series)}: {bar or '–'}")
            parts += _bar(y, series, bar, told[-1])
            y += _LINE
        y += 4
    return figure(name, title, "; ".join(told), max(y, _LINE), parts)


_START, _TRACK = 26, WIDTH - 170
"""Where 0 is, and how far from it 100; the rest is for the letter before it and the numbers after."""


def _bar(y: int, series: int, bar: Bar | None, told: str) -> Iterable[Markup]:
    width = _along(bar.value) if bar else 0.0
    yield text(0, y + 12, letter(series), "letter")
    yield Markup(
        '<rect class="track" x="{x}" y="{y}" width="{track}" height="14"/>'
        '<rect class="bar s{colour}" x="{x}" y="{y}" width="{width:.1f}" height="14"><title>{told}</title></rect>'
    ).format(x=_START, y=y, track=_TRACK, colour=series % _SERIES, width=width, told=visible(told))
    if bar and bar.interval:
        low, high = (_START + _along(end) for end in bar.interval)
        yield Markup('<line class="between" x1="{:.1f}" x2="{:.1f}" y1="{y}" y2="{y}"/>').format(low, high, y=y + 7)
    yield text(_START + _TRACK + 8, y + 12, str(bar or "–"), "value")


def _along(value: float) -> float:
    return max(0.0, min(value, 100.0)) / 100 * _TRACK


_SIDE, _LEFT, _TOP = 360, 46, 28
"""The square of a precision and recall plot, and where it begins."""


def precision_recall(name: str, title: str, points: Sequence[Point]) -> Markup:
    """Precision over recall, both 0 to 100, with curves of equal F1."""
    parts = [_grid(), *(_equal_f1(f1) for f1 in (10, 20, 30, 40, 60, 80))]
    for point in points:
        x, y = _place(point.x, point.y)
        style = "other" if point.series is None else f"s{point.series % _SERIES}"
        circle = Markup('<circle class="{}" cx="{:.1f}" cy="{:.1f}" r="5"><title>{}</title></circle>')
        parts += [circle.format(style, x, y, visible(str(point))), _label(x, y, point)]
    return figure(name, title, "; ".join(map(str, points)), _TOP + _SIDE + 42, parts)


def _label(x: float, y: float, point: Point) -> Markup:
    """Beside the point, on the side that has room; others' names stand lower, for they may lie on a point of ours."""
    left = x > _LEFT + _SIDE / 2
    return text(x - 8 if left else x + 8, y + (17 if point.series is None else 4), short(point.label, 34), "end" * left)


def _place(recall: float, precision: float) -> tuple[float, float]:
    return _LEFT + recall / 100 * _SIDE, _TOP + (100 - precision) / 100 * _SIDE


def _grid() -> Markup:
    lines: list[Markup] = []
    for value in range(0, 101, 20):
        x, y = _place(value, value)
        line = Markup('<line class="grid" x1="{:.0f}" y1="{:.0f}" x2="{:.0f}" y2="{:.0f}"/>')
        lines.append(line.format(x, _TOP, x, _TOP + _SIDE) + line.format(_LEFT, y, _LEFT + _SIDE, y))
        lines.append(
            text(x, _TOP + _SIDE + 16, f"{value}", "tick middle") + text(_LEFT - 6, y + 4, f"{value}", "tick end")
        )
    lines.append(text(_LEFT + _SIDE / 2, _TOP + _SIDE + 34, "recall", "middle"))
    lines.append(text(0, 14, "precision"))
    return Markup("").join(lines)


def _equal_f1(f1: float) -> Markup:
    """The curve along which precision and recall give one F1."""
    lowest = f1 / (200 - f1) * 100
    recalls = [lowest + (100 - lowest) * step / 24 for step in range(25)]
    places = [_place(recall, f1 * recall / (2 * recall - f1)) for recall in recalls]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    return Markup('<polyline class="curve" points="{}"/>').format(path) + text(
        places[-1][0] - 2, places[-1][1] - 3, f"F1 {f1:g}", "tick end"
    )


def text(x: float, y: float, words: str, style: str = "") -> Markup:
    """Words at a place."""
    return Markup('<text x="{:.1f}" y="{:.1f}"{}>{}</text>').format(
        x, y, Markup(' class="{}"').format(style) if style else "", visible(words)
    )


def figure(name: str, title: str, told: str, height: float, parts: Iterable[Markup]) -> Markup:
    """The whole: what it is called, what it tells, how high it is, and what it is drawn of."""
    return Markup(
        '<svg role="img" aria-labelledby="{name}-title {name}-text" viewBox="0 0 {width} {height:.0f}">'
        '<title id="{name}-title">{title}</title><desc id="{name}-text">{told}</desc>{parts}</svg>'
    ).format(
        name=name, width=WIDTH, height=height, title=visible(title), told=visible(told), parts=Markup("").join(parts)
    )


# Files of their own

_STYLE = Markup(
    "<style>svg{font:13px system-ui,sans-serif;background:#fff}text{fill:#1c2330}.tick{fill:#5a626d;font-size:11px}"
    ".middle{text-anchor:middle}.end{text-anchor:end}.grid{stroke:#d5dae1}.track{fill:#f1f3f6}"
    ".curve{fill:none;stroke:#d5dae1;stroke-dasharray:4 3}.other{fill:none;stroke:#5a626d}.s0{fill:#0b6670}"
    ".s1{fill:#a3561b}.s2{fill:#5b4b9a}.s3{fill:#18713a}.s4{fill:#a32a55}.s5{fill:#5a626d}.s6{fill:#8a7a00}</style>"
)


def _lone_file(drawn: Markup) -> str:
    head = Markup('<svg xmlns="http://www.w3.org/2000/svg" ')
    return str(drawn.replace("<svg ", head, 1).replace("</desc>", Markup("</desc>") + _STYLE, 1)) + "\n"


def curve_file(title: str, points: Sequence[Point]) -> str:
    """Precision over recall: every point with its label, and all numbers in the description."""
    return _lone_file(precision_recall("curve", title, points))


def count_bars(title: str, counts: Mapping[str, float]) -> str:
    """A bar for every count, in their order, as long as its share of the largest."""
    most = max(counts.values(), default=0) or 1
    parts, y = [text(0, 16, short(title, 60))], 26
    for label, count in counts.items():
        told = f"{label}: {count:,.10g}"
        parts.append(text(0, y + 13, short(label, 60)))
        parts.append(
            Markup(
                '<rect class="bar s0" x="0" y="{y}" width="{width:.1f}" height="12"><title>{told}</title></rect>'
            ).format(y=y + _LINE, width=_TRACK * max(count, 0) / most, told=visible(told))
        )
        parts.append(text(_TRACK * max(count, 0) / most + 6, y + _LINE + 11, f"{count:,.10g}", "tick"))
        y += 2 * _LINE + 2
    said = "; ".join(f"{label}: {count:,.10g}" for label, count in counts.items())
    return _lone_file(figure("counts", title, said, y + 4, parts))


Correlations = Mapping[str, float | None]
"""Procedure → correlation, None where it is not defined."""

_DOT, _RATERS = 8, 7
_FROM, _TO = 30, WIDTH - 14
_MARKS = (-1.0, -0.5, 0.0, 0.5, 1.0)


def raters_plot(gold: Iterable[Trace], scores: Mapping[str, Score], reference: str) -> str:
    """Each procedure's correlation with the reference, rater by rater (OpenPI2.0, figure 3)."""
    found = {name: by_procedure(score) for name, score in scores.items()}
    rated = {procedure for one in found.values() for procedure in one}
    goals = {trace.id: trace.procedure.goal or trace.id for trace in gold if trace.id in rated}
    return correlation_plot(f"Correlation of global salience with {reference}, by procedure", goals, found)


def correlation_plot(title: str, goals: Mapping[str, str], raters: Mapping[str, Correlations]) -> str:
    """The file's content. `goals`: procedure → what to call it, in the order to show; the first rater is the system.

    Within a procedure the raters stand one under the other in the order of the legend, so that colour alone tells
    nobody apart; every dot and the description say the numbers.
    """
    y = _LINE
    parts = [text(0, y - 4, short(title, 70))]
    for series, (rater, values) in enumerate(raters.items()):
        y += _LINE
        words = f"{letter(series)} {short(rater, 40)}: {_mean(values.values())}"
        parts += [_dot(6, y - 5, series, words), text(18, y, words)]
    told = []
    for procedure, goal in goals.items():
        y += _LINE + 6
        parts.append(text(0, y, short(goal, 60)))
        found = [(rater, values.get(procedure)) for rater, values in raters.items()]
        parts += _band(y + 6, found)
        told.append(f"{goal}: " + ", ".join(f"{rater} {_number(value)}" for rater, value in found))
        y += 6 + _DOT * len(raters)
    parts += [text(_along_strip(mark), y + _LINE, f"{mark:g}".replace("-", "−"), "tick middle") for mark in _MARKS]
    return _lone_file(figure("correlations", title, "; ".join(told), y + _LINE + 10, parts))


def _band(y: float, found: Sequence[tuple[str, float | None]]) -> Iterable[Markup]:
    """One procedure's dots on a strip from −1 to 1, with lines at every half."""
    height = _DOT * len(found)
    strip = Markup('<rect class="track" x="{}" y="{:.0f}" width="{}" height="{}"/>')
    yield strip.format(_FROM, y, _TO - _FROM, height)
    for mark in _MARKS:
        line = Markup('<line class="grid" x1="{0:.1f}" y1="{1:.0f}" x2="{0:.1f}" y2="{2:.0f}"/>')
        yield line.format(_along_strip(mark), y, y + height)
    for series, (rater, value) in enumerate(found):
        if value is not None:
            yield _dot(_along_strip(value), y + _DOT * (series + 0.5), series, f"{rater}: {_number(value)}")


def _along_strip(value: float) -> float:
    return _FROM + (value + 1) / 2 * (_TO - _FROM)


def _dot(x: float, y: float, series: int, told: str) -> Markup:
    circle = Markup('<circle class="s{}" cx="{:.1f}" cy="{:.1f}" r="3.5"><title>{}</title></circle>')
    return circle.format(series % _RATERS, x, y, visible(told))


def _mean(values: Iterable[float | None]) -> str:
    known = [value for value in values if value is not None]
    return f"mean {_number(sum(known) / len(known) if known else None)} of {len(known)}"


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}".replace("-", "−")
