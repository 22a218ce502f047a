"""fluents report"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fluents.cli.eval import EmbedderChoice, Gold, ModeName
from fluents.cli.keeping import ScoredSalient
from fluents.cli.options import with_options
from fluents.cli.output import messages
from fluents.cli.scoring import warn
from fluents.errors import InputError
from fluents.report.terminal import plain


@with_options
def report(
    gold: Gold,
    pred: Annotated[
        list[str], typer.Option("--pred", help="Predictions: a file or a dataset's split; may come again.")
    ],
    output: Annotated[
        str, typer.Option("--output", "-o", help="Where to: this name with .html and with .md.")
    ] = "report",
    mode: ModeName = "compat",
    *,
    embedder: EmbedderChoice,
    examples: Annotated[int, typer.Option(min=0, help="How many of the worst and of the best steps to show.")] = 5,
    salient: ScoredSalient,
) -> None:
    """Write one HTML page and one Markdown file on how systems score, beside all that is published on the data.

    Example: `fluents report --gold openpi:test --pred openpi:gpt2-test --pred mine.jsonl -o scores`
    """
    from fluents.jsonl import atomic_output
    from fluents.report.score_markdown import score_markdown
    from fluents.report.score_page import score_page
    from fluents.report.score_report import score_report

    if len(set(pred)) < len(pred):
        raise InputError("the same predictions are given twice")
    if mode not in ("compat", "strict"):
        raise InputError(f"unknown mode {mode!r}", fix="compat or strict")
    of = f" (salience {salient.keep})" if salient.keep else ""
    sources = [salient.gold(gold), *map(salient.pred, pred)]
    with messages.status(plain(f"scoring {', '.join(pred)}")):
        meant, *predicted = (list(source.traces()) for source in sources)
        found = score_report(
            gold + of,
            meant,
            {_called(name) + of: traces for name, traces in zip(pred, predicted, strict=True)},
            mode="strict" if mode == "strict" else "compat",
            embedder=embedder.load(),
            examples=examples,
        )
    for source in sources:
        warn(source.warnings(), source.name)
    for system in found.systems:
        warn(system.warnings(), system.name)
    base = output.removesuffix(".html").removesuffix(".md")
    for path, text in ((f"{base}.html", score_page(found)), (f"{base}.md", score_markdown(found))):
        with atomic_output(Path(path)) as stream:
            stream.write(text.encode("utf-8"))
        messages.print(f"wrote {path}", markup=False, soft_wrap=True)


def _called(name: str) -> str:
    return "standard input" if name == "-" else name
