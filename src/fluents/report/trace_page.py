"""Traces as one self-contained HTML page: a pure string function.

Every text in a trace is hostile. The template escapes by default and passes each text through `visible` first, so
nothing has to be remembered where a text is used; the page's content security policy allows its own style and script
by their hashes, and nothing else.
"""

from __future__ import annotations

import hashlib
import json
import re
from base64 import b64encode
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from html import escape
from importlib import resources
from math import ceil

from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup

from fluents.errors import InputError
from fluents.records import LEAST_SURE, Provenance, Trace
from fluents.report.lifelines import lifelines_of
from fluents.report.trace_layout import Matrix, finite, matrix_of
from fluents.text.names import counted

_UNSEEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")
"""Control characters, those that reorder the text around them, and what cannot be written as UTF-8."""

SIDES = ("predicted", "gold")


def to_html(
    traces: Trace | Sequence[Trace],
    gold: Trace | Sequence[Trace] | None = None,
    title: str | None = None,
    sides: tuple[str, str] = SIDES,
) -> str:
    """Traces as one self-contained page with three views: steps, lifelines of entities, entities by steps.

    Gold is matched by id and stands beside the predictions; gold procedures without a prediction are named. An id that
    comes twice in gold is an InputError. `sides` is what the page calls the two.

    >>> Path("soup.html").write_text(fl.to_html(trace))
    """
    traces, gold = [traces] if isinstance(traces, Trace) else traces, [gold] if isinstance(gold, Trace) else gold
    expected = {trace.id: trace for trace in gold or ()}
    if len(expected) < len(gold or ()):
        repeated, _ = Counter(trace.id for trace in gold or ()).most_common(1)[0]
        raise InputError(f"two gold procedures have the same id, {repeated}", fix="give every procedure a unique id")
    matrices = [matrix_of(trace, expected.get(trace.id)) for trace in traces]
    if title is None:
        title = matrices[0].goal if len(matrices) == 1 else "What changes, step by step"
    css, js = asset("page.css") + asset("trace.css"), asset("trace.js") + Markup("follow(document);\n")
    unpredicted = [trace for trace in expected.values() if trace.id not in {matrix.trace.id for matrix in matrices}]
    shown = _shown(title, matrices, unpredicted, gold is not None, sides)
    return template("page.html").render(shown, css=css, js=js, policy=policy(css, js))


def trace_fragment(trace: Trace) -> str:
    """What the page of one trace has under its title, for pages that have our style and script already."""
    matrix = matrix_of(trace)
    return template("traces.html").render(_shown(matrix.goal, [matrix]))


def _shown(
    title: str,
    matrices: Sequence[Matrix],
    unpredicted: Sequence[Trace] = (),
    has_gold: bool = False,
    sides: tuple[str, str] = SIDES,
) -> dict[str, object]:
    return {
        "title": title,
        "matrices": matrices,
        "unpredicted": unpredicted,
        "has_gold": has_gold,
        "sides": sides,
        "sliders": _sliders(matrices),
        "least_sure": LEAST_SURE,
    }


def notebook_html(trace: Trace) -> str:
    """What a notebook shows: the page in a frame of its own, and a table for viewers that remove frames."""
    lines = ["<table><tr><th>step</th><th>entity</th><th>attribute</th><th>before</th><th>after</th></tr>"]
    for step, text, changes in trace.by_step():
        lines.append(f'<tr><td>{step}</td><td colspan="4"><i>{_escaped(text)}</i></td></tr>')
        for change in changes:
            cells = (change.entity, change.attribute, change.before, change.after)
            lines.append("<tr><td></td>" + "".join(f"<td>{_escaped(cell)}</td>" for cell in cells) + "</tr>")
    height = min(14 + 3 * len(trace.procedure.steps) + 2 * len(trace.changes), 44)
    return (
        f'<iframe title="{_escaped(trace.procedure.goal or trace.id)}" sandbox="allow-scripts" width="100%" '
        f'style="border:0;height:{height}rem;resize:vertical" srcdoc="{escape(to_html(trace))}"></iframe>\n'
        + "\n".join(("<details><summary>Table</summary>", *lines, "</table></details>"))
    )


def _escaped(text: str) -> str:
    return escape(str(visible(text)))


def _sliders(matrices: Sequence[Matrix]) -> list[tuple[str, float, float]]:
    """(what, most, stride) of every number that changes can be filtered by."""
    known = set().union(*(matrix.explained for matrix in matrices))
    found: list[tuple[str, float, float]] = [(kind, 1.0, 0.05) for kind in ("confidence", "support") if kind in known]
    if "salience" in known:
        most = max((matrix.most_salient or 0.0 for matrix in matrices), default=0.0)
        found.append(("salience", ceil(most * 2) / 2, 0.5))
    return found


def visible(value: object) -> object:
    """A text with every character that would act unseen replaced by one that can be seen. Markup is ours, and kept."""
    if isinstance(value, str) and not isinstance(value, Markup) and not value.isprintable():
        return _UNSEEN.sub("�", value.replace("\r\n", "\n").replace("\r", "\n"))
    return value


def short(text: str, limit: int | None) -> str:
    """A text cut to `limit` characters, for places where the page repeats it; the whole stands elsewhere."""
    return text if limit is None or len(text) <= limit else text[: limit - 1].rstrip() + "…"


def provenance_parts(provenance: Provenance) -> list[tuple[str, str]]:
    """(label, words) of what is known about the making of a trace."""
    decoding = ", ".join(f"{key} {_plain(value)}" for key, value in provenance.decoding.items())
    known: Mapping[str, object] = {
        "data": provenance.dataset,
        "tracker": provenance.tracker,
        "model": provenance.model,
        "prompt": provenance.prompt,
        "decoding": decoding or None,
        "seed": provenance.seed,
        "fluents": provenance.version,
    }
    return [(label, str(value)) for label, value in known.items() if value is not None]


def _plain(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


@cache
def template(name: str) -> Template:
    """A template of the package, in the environment that makes every text visible and escapes it."""
    environment = Environment(
        loader=PackageLoader("fluents.report", "assets"),
        autoescape=True,
        finalize=visible,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "short": short,
        "counted": counted,
        "finite": finite,
        "lifelines": lifelines_of,
        "provenance": provenance_parts,
    }
    return environment.get_template(name)


@cache
def asset(name: str) -> Markup:
    """A file of the package, trusted as it stands."""
    return Markup(resources.files("fluents.report").joinpath("assets", name).read_text(encoding="utf-8"))


def policy(style: str, script: str | None = None) -> str:
    """The content security policy of a page that has this style, this script if any, and nothing else."""
    scripts = "" if script is None else f"script-src {_source(script)}; "
    return f"default-src 'none'; style-src {_source(style)}; {scripts}base-uri 'none'; form-action 'none'"


def _source(content: str) -> str:
    return f"'sha256-{b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"
