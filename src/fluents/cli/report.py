"""fluents report"""

from __future__ import annotations

from typing import Annotated

import typer

from fluents.cli.command import ScoredSalient, messages, tell, with_options
from fluents.cli.scoring import EmbedderChoice, Gold, ModeOption, warn
from fluents.errors import InputError
from fluents.report.terminal import plain


@with_options
def report(
    gold: Gold,
    pred: Annotated[
        list[str],
        typer.Option(
            "--pred",
            metavar="SOURCE",
            help="Predictions of a system: a file or a dataset split. Repeat for more systems.",
        ),
    ],
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="NAME", help="Write the report to NAME.html and NAME.md.")
    ] = "report",
    mode: ModeOption = "compat",
    *,
    embedder: EmbedderChoice,
    examples: Annotated[
        int,
        typer.Option(min=0, help="Show the N best-predicted and the N worst-predicted steps of each system."),
    ] = 5,
    salient: ScoredSalient,
) -> None:
    """Write a report, as HTML and Markdown, that compares systems with each other and with published results.

    The systems are scored with the metrics of OpenPI (`fluents eval original`) and OpenPI-C (`fluents eval cluster`).

    Example: `fluents report --gold openpi:test --pred openpi:gpt2-test --pred mine.jsonl -o scores`
    """
    from fluents.evaluation import traces_of
    from fluents.jsonl import write_text
    from fluents.report.score_report import score_markdown, score_page, score_report

    if len(set(pred)) < len(pred) or [gold, *pred].count("-") > 1:
        raise InputError(
            "the same input is given twice", fix="give each file once; standard input (-) can be read only once"
        )
    keep = salient.keep
    of = f" (salience {keep})" if keep else ""
    with messages.status(plain(f"scoring {', '.join(pred)}")):
        meant, told = traces_of(gold, keep, is_gold=True)
        systems = {}
        for name in pred:
            systems[("standard input" if name == "-" else name) + of], warnings = traces_of(name, keep)
            told += warnings
        found = score_report(gold + of, meant, systems, mode=mode, embedder=embedder.load(), examples=examples)
    for name, warning in told:
        warn([warning], name)
    for system in found.systems:
        warn(system.warnings(), system.name)
    base = output.removesuffix(".html").removesuffix(".md")
    for path, text in ((f"{base}.html", score_page(found)), (f"{base}.md", score_markdown(found))):
        write_text(path, text)
        tell(f"wrote {path}")
