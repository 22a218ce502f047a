"""Each procedure's correlation with the reference, rater by rater, as a lone SVG file (OpenPI2.0, figure 3)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from markupsafe import Markup

from fluents.metrics.salience import by_procedure
from fluents.records import Trace
from fluents.report.plots import WIDTH, figure, letter, text
from fluents.report.trace_page import short, visible
from fluents.scoring.score import Score

Correlations = Mapping[str, float | None]
"""Procedure → correlation, None where it is not defined."""


def raters_plot(gold: Iterable[Trace], scores: Mapping[str, Score], reference: str) -> str:
    """The file's content for scores of the metric salience, rater by rater."""
    found = {name: by_procedure(score) for name, score in scores.items()}
    rated = {procedure for one in found.values() for procedure in one}
    goals = {trace.id: trace.procedure.goal or trace.id for trace in gold if trace.id in rated}
    return correlation_plot(f"Correlation of global salience with {reference}, by procedure", goals, found)


_LINE, _DOT, _COLOURS = 18, 8, 7
_LEFT, _RIGHT = 30, WIDTH - 14

_STYLE = Markup(
    "<style>svg{font:13px system-ui,sans-serif;background:#fff}text{fill:#1c2330}.tick{fill:#5a626d;font-size:11px}"
    ".middle{text-anchor:middle}.end{text-anchor:end}.grid{stroke:#d5dae1}.track{fill:#f1f3f6}"
    ".s0{fill:#0b6670}.s1{fill:#a3561b}.s2{fill:#5b4b9a}.s3{fill:#18713a}.s4{fill:#a32a55}.s5{fill:#5a626d}.s6{fill:#8a7a00}</style>"
)


def correlation_plot(title: str, goals: Mapping[str, str], raters: Mapping[str, Correlations]) -> str:
    """The file's content. `goals`: procedure → what to call it, in the order to show; the first rater is the system.

    Within a procedure the raters stand one under the other in the order of the legend, so that colour alone tells
    nobody apart; every dot and the description say the numbers.
    """
    parts = [_STYLE]
    y = _LINE
    parts.append(text(0, y - 4, short(title, 70)))
    for series, (rater, values) in enumerate(raters.items()):
        y += _LINE
        parts += _legend(y, series, f"{letter(series)} {short(rater, 40)}: {_mean(values.values())}")
    told = []
    for procedure, goal in goals.items():
        y += _LINE + 6
        parts.append(text(0, y, short(goal, 60)))
        found = [(rater, values.get(procedure)) for rater, values in raters.items()]
        parts += _band(y + 6, found)
        told.append(f"{goal}: " + ", ".join(f"{rater} {_number(value)}" for rater, value in found))
        y += 6 + _DOT * len(raters)
    parts += _axis(y + _LINE)
    drawn = figure("correlations", title, "; ".join(told), y + _LINE + 10, parts)
    return str(drawn.replace("<svg ", Markup('<svg xmlns="http://www.w3.org/2000/svg" '), 1)) + "\n"


def _legend(y: float, series: int, words: str) -> Iterable[Markup]:
    yield _dot(6, y - 5, series, words)
    yield text(18, y, words)


def _band(y: float, found: Sequence[tuple[str, float | None]]) -> Iterable[Markup]:
    """One procedure's dots on a strip from −1 to 1, with lines at every half."""
    height = _DOT * len(found)
    strip = Markup('<rect class="track" x="{}" y="{:.0f}" width="{}" height="{}"/>')
    yield strip.format(_LEFT, y, _RIGHT - _LEFT, height)
    for mark in _MARKS:
        line = Markup('<line class="grid" x1="{0:.1f}" y1="{1:.0f}" x2="{0:.1f}" y2="{2:.0f}"/>')
        yield line.format(_place(mark), y, y + height)
    for series, (rater, value) in enumerate(found):
        if value is not None:
            yield _dot(_place(value), y + _DOT * (series + 0.5), series, f"{rater}: {_number(value)}")


_MARKS = (-1.0, -0.5, 0.0, 0.5, 1.0)


def _axis(y: float) -> Iterable[Markup]:
    return [text(_place(mark), y, f"{mark:g}".replace("-", "−"), "tick middle") for mark in _MARKS]


def _place(value: float) -> float:
    return _LEFT + (value + 1) / 2 * (_RIGHT - _LEFT)


def _dot(x: float, y: float, series: int, told: str) -> Markup:
    circle = Markup('<circle class="s{}" cx="{:.1f}" cy="{:.1f}" r="3.5"><title>{}</title></circle>')
    return circle.format(series % _COLOURS, x, y, visible(told))


def _mean(values: Iterable[float | None]) -> str:
    known = [value for value in values if value is not None]
    return f"mean {_number(sum(known) / len(known) if known else None)} of {len(known)}"


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}".replace("-", "−")
