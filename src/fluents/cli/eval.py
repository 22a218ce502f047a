"""fluents eval: a command for every metric, and compare"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fluents.cli.keeping import ScoredSalient
from fluents.cli.options import with_options
from fluents.cli.output import messages, show, show_json
from fluents.cli.scoring import STEPWISE, Task, run, scored, show_score, warn
from fluents.cli.sources import LABELS, RUNS, Source, clusterings
from fluents.errors import InputError
from fluents.report.terminal import plain

if TYPE_CHECKING:
    from fluents.records import Trace
    from fluents.scoring.score import Score
    from fluents.text.embedders import Embedder

app = typer.Typer(
    help="Score predictions against gold by the metrics of the papers, with error bars; compare two systems.",
    no_args_is_help=True,
)

Gold = Annotated[str, typer.Option("--gold", help="The gold: a dataset's split, such as openpi:test, or a file.")]
Pred = Annotated[str, typer.Option("--pred", help="The predictions: likewise.")]
ModeName = Annotated[
    str,
    typer.Option("--mode", help="compat: the published number, to the last digit. strict: the same idea done right."),
]
AsJson = Annotated[bool, typer.Option("--json", help="JSON for programs.")]
ByAny = Annotated[str | None, typer.Option("--by", help="topic, seen, position, mentioned or modality.")]
ByWhole = Annotated[str | None, typer.Option("--by", help="topic or seen.")]
BySteps = Annotated[str | None, typer.Option("--by", help="topic, seen or position.")]
Worst = Annotated[int, typer.Option("--worst", min=0, help="Show the N steps that cost most, gold beside prediction.")]


@dataclass(frozen=True)
class Sides:
    """What is scored, and how. Each field is an option."""

    gold: Gold
    pred: Pred
    mode: ModeName = "compat"

    def task(self, metric: str, salient: ScoredSalient | None = None, **more: Any) -> Task:
        """The scoring of these sides, or of what matters in them."""
        kept = salient or ScoredSalient()
        return Task(metric, kept.gold(self.gold), kept.pred(self.pred), self.mode, **more)


@dataclass(frozen=True)
class ClusteringSides(Sides):
    """Likewise, where the released clusters are scored unless others are named."""

    gold: Gold = LABELS
    pred: Pred = RUNS


@dataclass(frozen=True)
class EmbedderChoice:
    """What tells how alike two answers are. Each field is an option."""

    embedder: Annotated[
        str | None,
        typer.Option(help="wordllama-256, all-MiniLM-L6-v2, or any sentence-transformers model."),
    ] = None
    threshold: Annotated[
        float | None, typer.Option(help="Answers more alike than this are one; known embedders have their own.")
    ] = None

    def load(self) -> Embedder:
        """The one asked for, or the static default."""
        from fluents.text.embedders import STATIC, load_embedder

        return load_embedder(self.embedder or STATIC, self.threshold)


@app.command()
@with_options
def original(
    sides: Sides,
    matchers: Annotated[
        str, typer.Option(help="Some of exact, bleu, rouge, meteor-stem, or these with -states, between commas.")
    ] = "exact,bleu,rouge",
    by: ByAny = None,
    errors: Annotated[bool, typer.Option("--errors", help="What wrong predictions are wrong in.")] = False,
    worst: Worst = 0,
    as_json: AsJson = False,
    *,
    salient: ScoredSalient,
) -> None:
    """OpenPI (2020): every answer against the best match on the other side, step by step.

    Example: `fluents eval original --gold openpi:test --pred openpi:gpt2-test --by seen`
    """
    options = {"matchers": [name.strip() for name in matchers.split(",")]}
    shown = {"by": by, "kinds": STEPWISE, "worst": worst, "errors": errors, "as_json": as_json}
    run(sides.task("original", salient, options=options, **shown))


@app.command()
@with_options
def cluster(
    sides: Sides,
    embedder: EmbedderChoice,
    by: ByAny = None,
    worst: Worst = 0,
    as_json: AsJson = False,
    *,
    salient: ScoredSalient,
) -> None:
    """OpenPI-C (2023): answers that say the same are one cluster, and clusters are matched one to one.

    Example: `fluents eval cluster --gold openpi-c:test --pred mine.jsonl --mode strict`
    """
    with messages.status("loading the embedder"):
        options = {"embedder": embedder.load()}
    run(sides.task("cluster", salient, options=options, by=by, kinds=STEPWISE, worst=worst, as_json=as_json))


@app.command()
@with_options
def schemata(sides: Sides, by: ByWhole = None, as_json: AsJson = False, *, salient: ScoredSalient) -> None:
    """OpenPI2.0 (2024): which attributes of which entities change, in the procedure and in each step.

    Example: `fluents eval schemata --gold openpi2:dev --pred openpi2-outputs:davinci-schemata`
    """
    run(sides.task("schemata", salient, by=by, kinds=("topic", "seen"), as_json=as_json))


@app.command()
@with_options
def states(sides: Sides, by: BySteps = None, as_json: AsJson = False, *, salient: ScoredSalient) -> None:
    """OpenPI2.0: the states before and after, where entity and attribute are given.

    Example: `fluents eval states --gold openpi2:ranked-dev --pred openpi2-outputs:davinci-states`
    """
    run(sides.task("states", salient, by=by, kinds=STEPWISE[:3], as_json=as_json))


@app.command()
@with_options
def complete(sides: Sides, by: BySteps = None, as_json: AsJson = False, *, salient: ScoredSalient) -> None:
    """OpenPI2.0: whole answers, all four fields at once.

    Example: `fluents eval complete --gold openpi2:dev --pred openpi2-outputs:davinci-sentences`
    """
    run(sides.task("complete", salient, by=by, kinds=STEPWISE[:3], as_json=as_json))


@app.command()
@with_options
def clustering(
    sides: ClusteringSides,
    level: Annotated[str, typer.Option(help="entities or attributes: whose names are clustered.")] = "entities",
    as_json: AsJson = False,
) -> None:
    """OpenPI2.0: how well names were clustered: clusters found whole, and B-cubed.

    openpi2:labels are the clusters a person made of ten procedures, openpi2-outputs:clusters a language model's, and
    openpi2-outputs:votes what its runs agree on. offline is fluents' own method, cross-validated; same-words and single
    are what a method has to beat.

    Example: `fluents eval clustering --level attributes --pred offline`
    """
    from fluents.metrics.clustering import clustering as score_clusters

    if level not in ("entities", "attributes"):
        raise InputError(f"no level {level!r}", fix="entities or attributes")
    with messages.status(plain(f"clustering by {sides.pred}")):
        meant, runs = clusterings(sides.gold, sides.pred, level)  # type: ignore[arg-type]
    score = score_clusters(meant, *runs, mode=sides.mode, level=level)  # type: ignore[arg-type]
    show_score(sides.task("clustering", variant=level, as_json=as_json), score)


@app.command()
@with_options
def salience(
    sides: Sides,
    reference: Annotated[str, typer.Option(help="The rater in the gold to hold the other against.")] = "A1",
    rater: Annotated[str | None, typer.Option(help="The rater in the predictions, if there are several.")] = None,
    plot: Annotated[str | None, typer.Option(help="Draw each procedure's correlation here, as SVG.")] = None,
    as_json: AsJson = False,
) -> None:
    """OpenPI2.0: how well a rater's salience correlates with another's, beside all other raters and the votes.

    Example: `fluents eval salience --gold openpi2:dev --pred rated.jsonl --rater offline-1 --plot raters.svg`
    """
    from fluents.metrics.salience import others

    task = sides.task("salience", options={"reference": reference, "rater": rater}, as_json=as_json)
    with messages.status(plain(f"scoring {sides.pred}")):
        meant = list(task.gold.traces())
        score = task.function(meant, task.pred.traces())
        beside = others(meant, mode=sides.mode, reference=reference)  # type: ignore[arg-type]
        beside.pop(rater or "", None)
    show_score(task, score, beside)
    if plot is not None:
        _draw(plot, meant, {rater or sides.pred: score} | beside, reference)


def _draw(path: str, gold: list[Trace], scores: dict[str, Score], reference: str) -> None:
    from fluents.jsonl import atomic_output
    from fluents.metrics.salience import by_procedure
    from fluents.report.salience_plot import correlation_plot

    found = {name: by_procedure(score) for name, score in scores.items()}
    goals = {
        trace.id: trace.procedure.goal or trace.id for trace in gold if any(trace.id in one for one in found.values())
    }
    title = f"Correlation of global salience with {reference}, by procedure"
    with atomic_output(path) as stream:
        stream.write(correlation_plot(title, goals, found).encode("utf-8"))
    messages.print(f"wrote {path}", markup=False)


@app.command()
@with_options
def crepe(sides: Sides, as_json: AsJson = False) -> None:
    """CREPE (2023): after each step, is an event more likely, less likely, or as likely as before?

    Example: `fluents eval crepe --gold crepe:dev --pred crepe:codex-entities`
    """
    run(sides.task("crepe", as_json=as_json))


@app.command()
def consistency(pred: Pred, as_json: AsJson = False) -> None:
    """How often a state begins where an earlier step left it: predictions against themselves, without gold.

    Example: `fluents eval consistency --pred mine.jsonl`
    """
    from fluents.metrics.consistency import consistency as score_against_itself

    source = Source(pred)
    show_score(Task("consistency", source, source, "strict", as_json=as_json), score_against_itself(source.traces()))


@app.command()
@with_options
def compare(
    first: Annotated[str, typer.Argument(metavar="A", help="One system's predictions: a file or a dataset's split.")],
    second: Annotated[str, typer.Argument(metavar="B", help="The other's.")],
    gold: Gold,
    metric: Annotated[str, typer.Option(help="original, cluster, schemata, states, complete or crepe.")] = "original",
    mode: ModeName = "compat",
    *,
    embedder: EmbedderChoice,
    as_json: AsJson = False,
) -> None:
    """Test whether one system is better than another: paired bootstrap and approximate randomisation.

    Example: `fluents eval compare mine.jsonl openpi:gpt2-test --gold openpi:test`
    """
    from fluents.report.score_tables import comparison_table, finite_only, notes
    from fluents.scoring.bootstrap import compare as difference

    if metric not in COMPARED:
        raise InputError(f"no comparison by {metric!r}", fix=f"one of: {', '.join(COMPARED)}")
    options = {"embedder": embedder.load()} if metric == "cluster" else {}
    scores = []
    for name in (first, second):
        task = Task(metric, Source(gold), Source(name), mode, options)
        with messages.status(plain(f"scoring {name}")):
            scores.append(scored(task))
        warn(scores[-1].warnings, name)
    found = difference(scores[0], scores[1])
    if as_json:
        shown = {row: {column: asdict(one) for column, one in columns.items()} for row, columns in found.items()}
        sides = {name: score.rows for name, score in zip("ab", scores, strict=True)}
        names = {"names": {"a": first, "b": second}}
        show_json(finite_only({**names, **sides, "differences": shown, "signature": str(scores[0].signature)}))
        return
    show(comparison_table(scores[0], scores[1], found, (first, second)))
    show(notes(scores[0], {}))
    print(scores[0].signature)


COMPARED = ("original", "cluster", "schemata", "states", "complete", "crepe")
