"""Precision over recall as one setting changes, as a lone SVG file (OpenPI-C, figure 6)."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from fluents.report.svg import Point, precision_recall

_STYLE = Markup(
    "<style>svg{font:13px system-ui,sans-serif;background:#fff}text{fill:#1c2330}.tick{fill:#5a626d;font-size:11px}"
    ".middle{text-anchor:middle}.end{text-anchor:end}.grid{stroke:#d5dae1}"
    ".curve{fill:none;stroke:#d5dae1;stroke-dasharray:4 3}.other{fill:none;stroke:#5a626d}"
    ".s0{fill:#0b6670}.s1{fill:#a3561b}.s2{fill:#5b4b9a}.s3{fill:#18713a}.s4{fill:#a32a55}.s5{fill:#5a626d}</style>"
)


def curve_file(title: str, points: Sequence[Point]) -> str:
    """The file's content: every point with its label, and all numbers in the description."""
    drawn = precision_recall("curve", title, points)
    head = Markup('<svg xmlns="http://www.w3.org/2000/svg" ')
    return str(drawn.replace("<svg ", head, 1).replace("</desc>", Markup("</desc>") + _STYLE, 1)) + "\n"
