"""What the commands of `fluents eval` share: options, and how a score is shown."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from fluents.cli.command import ScoredSalient, messages, show, show_json, tell
from fluents.metrics import Metric
from fluents.report.terminal import plain
from fluents.scoring import Mode

if TYPE_CHECKING:
    from fluents.evaluation import Evaluation
    from fluents.text.embedders import Embedder

Gold = Annotated[
    str,
    typer.Option("--gold", metavar="SOURCE", help="Gold to score against: a dataset split or a file."),
]
Pred = Annotated[
    str,
    typer.Option(
        "--pred", metavar="SOURCE", help="Predictions to score: a dataset split, a file, or - for standard input."
    ),
]
ModeOption = Annotated[
    Mode,
    typer.Option(
        "--mode",
        help="compat: compute metrics as the published code does, including its errors, so that you can compare "
        "the scores with those in papers. strict: correct these errors.",
    ),
]
_TOPIC = (
    "Also score parts of the data separately. topic: each topic. seen: topics that are in the training set of OpenPI, "
    "and topics that are not."
)
_POSITION = f"{_TOPIC} position: first steps, second steps, and so on."
_ANY = (
    f"{_POSITION} mentioned: changes of entities that the text mentions up to the current step, and changes of other "
    "entities. modality: score the predictions against the gold of annotators who saw an image of the step, then "
    "against the gold of annotators who did not."
)
ByAny = Annotated[Literal["topic", "seen", "position", "mentioned", "modality"] | None, typer.Option("--by", help=_ANY)]
ByStep = Annotated[Literal["topic", "seen", "position"] | None, typer.Option("--by", help=_POSITION)]
ByTopic = Annotated[Literal["topic", "seen"] | None, typer.Option("--by", help=_TOPIC)]
Worst = Annotated[int, typer.Option("--worst", metavar="N", min=0, help="Also show the N steps with the lowest F1.")]


@dataclass(frozen=True)
class Sides:
    """What is scored, and how. Each field is an option."""

    gold: Gold
    pred: Pred
    mode: ModeOption = "compat"


@dataclass(frozen=True)
class EmbedderChoice:
    """What tells how similar two answers are. Each field is an option."""

    embedder: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Model that measures how similar changes are, so that similar changes form clusters: wordllama-256, "
            "or a sentence-transformers model such as all-MiniLM-L6-v2.",
        ),
    ] = "wordllama-256"
    threshold: Annotated[
        float | None,
        typer.Option(
            metavar="X",
            help="Put changes into one cluster if their similarity is above X. Default: 0.65 for wordllama-256, "
            "0.75 for all-MiniLM-L6-v2, 0.7 for stsb-distilroberta-base-v2. Required for other models.",
        ),
    ] = None

    def load(self) -> Embedder:
        from fluents.text.embedders import load_embedder

        return load_embedder(self.embedder, self.threshold)


def run(
    metric: Metric, sides: Sides, as_json: bool, salient: ScoredSalient | None = None, **options: Any
) -> Evaluation:
    """Score and show."""
    from fluents.evaluation import evaluate

    keep = salient.keep if salient else None
    with messages.status(plain(f"scoring {sides.pred}")):
        found = evaluate(metric, sides.gold, sides.pred, mode=sides.mode, keep=keep, **options)
    show_evaluation(found, as_json)
    return found


def show_evaluation(found: Evaluation, as_json: bool) -> None:
    """The score with its intervals, beside the published ones, and what else was asked for."""
    from fluents.report import score_tables as tables

    warn(found.score.warnings, found.name)
    if as_json:
        show_json(found.to_dict())
        return
    show(tables.score_table(found.score, found.intervals))
    show(tables.notes(found.score, with_intervals=found.intervals is not None))
    print(found.score.signature)  # on one line, however long: it is there to be copied
    more = []
    if found.published:
        more.append(tables.published_table(found.score, found.published, found.name))
    if found.raters:
        more.append(tables.raters_table(found.raters))
    if found.by:
        more.append(tables.parts_table(found.parts, found.part_intervals, found.by))
    if found.errors:
        more.append(tables.errors_table(found.errors))
    for table in more:
        show("")
        show(table)
    if found.worst:
        show(tables.cases_view(found.worst))


def warn(warnings: Iterable[str], name: str) -> None:
    """Tell people, not the next program in the pipe."""
    for warning in warnings:
        tell(f"warning: {'standard input' if name == '-' else name}: {warning}", "yellow")
