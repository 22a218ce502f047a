"""fluents batch | query"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Annotated, Any, Literal

import typer
from rich.progress import BarColumn, Progress, TextColumn

from fluents.cli.command import AsJson, messages, show, show_json, tell, with_options
from fluents.cli.model_options import BASE_URL_HELP
from fluents.errors import InputError
from fluents.text.names import counted

STAGES = "segment,track,canonicalise,salience"


@dataclass(frozen=True)
class BatchTracker:
    """Who tracks. Each field is an option."""

    model: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Model to use: an embedded model (tiny, small, base or a GGUF file), or the name of a language "
            "model at --base-url. Default: the model of --adapter if given, otherwise $FLUENTS_MODEL if set, otherwise "
            "base.",
        ),
    ] = None
    base_url: Annotated[str | None, typer.Option(metavar="URL", help=BASE_URL_HELP)] = None
    adapter: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="LoRA adapter for the embedded model: a name from `fluents weights list`, or a GGUF file. "
            "Default: the adapter made for --model.",
        ),
    ] = None
    checkpoint: Annotated[
        str | None,
        typer.Option(
            metavar="FOLDER",
            help="Track with a model that you trained, instead of --model. FOLDER is the folder given to `fluents "
            "train neural --out`.",
        ),
    ] = None
    replay: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Take the changes from the traces in FILE, instead of tracking with a model. A procedure with a step "
            "that FILE does not contain is recorded as failed.",
        ),
    ] = None
    samples: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="Sample N answers per step, and keep the changes on which the answers agree. Default: 1, but more "
            "with some adapters.",
        ),
    ] = None
    max_changes: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=1, help="Keep at most N changes per step. Default: depends on the model and --samples."
        ),
    ] = None
    min_confidence: Annotated[
        float | None,
        typer.Option(
            metavar="X",
            min=0,
            max=1,
            help="With an embedded model: drop changes whose confidence (0 to 1) is below X. Default: depends on the "
            "model and --samples.",
        ),
    ] = None
    at_once: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            max=256,
            help="With an embedded model: number of procedures that each worker tracks at the same time. With an "
            "endpoint: number of requests that each worker sends at the same time. Default: 1 if an embedded model "
            "samples several answers per step, otherwise 16 for the model base and 8 for all other models.",
        ),
    ] = None
    seed: Annotated[int | None, typer.Option(metavar="N", help="Random seed. Default: 1.")] = None

    def given(self) -> dict[str, Any]:
        """The options that were given."""
        return {name: value for name, value in asdict(self).items() if value is not None}


@dataclass(frozen=True)
class WorkerOptions:
    """Who works, and how much it may take. Each field is an option."""

    engine: Annotated[
        Literal["local", "ray"],
        typer.Option(help="Where the workers run: local (processes on this machine) or ray (a cluster that runs Ray)."),
    ] = "local"
    address: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="With --engine ray: address of the cluster, or auto for the cluster to which this machine "
            "belongs. Default: start Ray on this machine only.",
        ),
    ] = None
    workers: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="Number of workers. Default: one per core. But if --engine is local and the model is embedded or a "
            "--checkpoint, the default is the value of --gpu-workers, and at least 1.",
        ),
    ] = None
    gpu_workers: Annotated[
        int, typer.Option(metavar="N", min=0, help="How many of the workers use a GPU. Each of them needs its own GPU.")
    ] = 0
    memory: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Memory limit of each worker, in MiB. Default: no limit.")
    ] = None
    timeout: Annotated[
        float, typer.Option(metavar="X", min=0.1, help="Replace a worker that makes no progress for X seconds.")
    ] = 600.0


@with_options
def batch(
    inputs: Annotated[
        list[str],
        typer.Argument(
            help="Files, folders, dataset splits, or URLs such as s3://bucket/folder. Files can be texts, web pages, "
            "JSONL or Parquet, compressed or not."
        ),
    ],
    out: Annotated[
        str,
        typer.Option("--out", "-o", metavar="FOLDER", help="Write the results to FOLDER: the shards and a manifest."),
    ],
    stages: Annotated[
        str,
        typer.Option(
            metavar="LIST",
            help="Stages to run, separated by commas. segment: find the steps. track: find the changes. "
            "canonicalise: find names that mean the same entity or attribute. salience: rate how much "
            "entities matter.",
        ),
    ] = STAGES,
    format: Annotated[
        Literal["parquet", "jsonl"], typer.Option(help="Format of the shards: parquet or jsonl.")
    ] = "parquet",
    shard_size: Annotated[int, typer.Option(metavar="N", min=1, help="Maximum number of procedures per shard.")] = 50,
    max_steps: Annotated[
        int,
        typer.Option(
            metavar="N",
            min=1,
            help="Maximum number of steps in a procedure. A procedure with more steps is recorded as failed.",
        ),
    ] = 1000,
    part: Annotated[
        str | None,
        typer.Option(
            metavar="K/N",
            help="Divide the input into N parts, and process only part K: 3/100 is the third of 100 parts.",
        ),
    ] = None,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Retry the procedures that failed in an earlier run.")
    ] = False,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="Print the number of shards, and estimate the time or, with an endpoint, the cost. Write no results.",
        ),
    ] = False,
    price_in: Annotated[
        float | None,
        typer.Option(
            min=0, help="With --dry-run: price of a million input tokens, in any currency, to estimate the cost."
        ),
    ] = None,
    price_out: Annotated[
        float | None,
        typer.Option(
            min=0, help="With --dry-run: price of a million output tokens, in any currency, to estimate the cost."
        ),
    ] = None,
    as_json: AsJson = False,
    *,
    tracker: BatchTracker,
    work: WorkerOptions,
) -> None:
    """Track many procedures, on this machine or on a cluster.

    Needs the extra `fluents[batch]`, or `fluents[ray]` for a cluster that runs Ray.

    Writes the results as several files, called shards, and a manifest that lists the shards. After an interruption, run
    the same command again: it skips finished shards. If a procedure fails, the run goes on, and the results contain the
    error.

    Example: `fluents batch recipes.jsonl.gz --out results --model small`

    Example: `fluents batch s3://bucket/recipes/ --out /shared/results --engine ray --address auto --workers 64`
    """
    from fluents.batches import BatchProgress
    from fluents.batches import batch as run
    from fluents.batches.estimate import estimate

    chosen: dict[str, Any] = {
        "stages": [stage.strip() for stage in stages.split(",")],
        "format": format,
        "shard_size": shard_size,
        "max_steps": max_steps,
        "part": _part(part),
        "retry_failed": retry_failed,
    }
    if dry_run:
        with messages.status("reading the input and timing the first procedures"):
            found = estimate(
                inputs, out, workers=work.workers, prices=(price_in, price_out), tracker=tracker.given(), **chosen
            )
        show_json(found.as_dict()) if as_json else show("\n".join(found.lines()))
        return
    if price_in is not None or price_out is not None:
        raise InputError(
            "`price_in` and `price_out` have no effect without `dry_run`", fix="add `dry_run`, or leave out the prices"
        )
    begun = False
    try:
        with _bar() as show_progress:

            def on_progress(now: BatchProgress) -> None:
                nonlocal begun
                begun = True
                show_progress(now)

            report = run(
                inputs, out, on_progress=on_progress, on_notice=_notice, **chosen, **asdict(work), **tracker.given()
            )
    except BaseException:
        if begun:
            tell(f"finished shards are in {out}; run the same command again to continue")
        raise
    if as_json:
        show_json(asdict(report))
    if report.lost:
        which = "It" if len(report.lost) == 1 else "The last one"
        tell(f"replaced {counted(len(report.lost), 'failed worker')}. {which} {report.lost[-1]}")
    many = "all" if report.skipped == report.shards else f"{report.skipped:,}"
    before = f", {many} from an earlier run" if report.skipped else ""
    tell(
        f"{out} contains {counted(report.procedures, 'procedure')} with {counted(report.changes, 'change')} "
        f"({counted(report.shards, 'shard')}{before})"
    )
    if report.failures:
        tell(
            f"{counted(report.failures, 'procedure')} failed: `fluents query {out} failures` shows why; "
            "--retry-failed tries them again"
        )
        raise typer.Exit(1)


def _part(text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    found = re.fullmatch(r"(\d{1,6})/(\d{1,6})", text)
    if not found:
        raise InputError(
            f"`part` must be K/N, not {text[:40]!r}", fix="give, for example, 3/100 for the third of 100 parts"
        )
    return int(found[1]), int(found[2])


def _notice(text: str) -> None:
    tell(f"note: {text}", "yellow")


@contextmanager
def _bar() -> Iterator[Any]:
    """A progress bar with the rate and the time left."""
    import time

    from fluents.batches import BatchProgress
    from fluents.report.terminal import TimeLeft

    columns = (BarColumn(bar_width=20), TextColumn("{task.description}", markup=False), TimeLeft())
    with Progress(*columns, console=messages, transient=True, disable=not messages.is_terminal) as progress:
        task = progress.add_task("reading the input", total=None)
        started: float | None = None

        def update(now: BatchProgress) -> None:
            nonlocal started
            if started is None:
                started = time.monotonic()
                progress.reset(task, total=now.total - now.before)
            passed = max(time.monotonic() - started, 1e-9)
            failed = f", {now.failures:,} failed" if now.failures else ""
            rate = f"{now.steps / passed:.1f} steps/s" if passed > 1 else "- steps/s"
            said = f"{now.procedures:,}/{now.total:,} procedures{failed}, {rate}"
            progress.update(task, completed=now.procedures - now.before, description=said)

        yield update


def query(
    folder: Annotated[str, typer.Argument(help="Output folder of `fluents batch`.")],
    question: Annotated[
        str, typer.Argument(metavar="QUERY", help="View, `becomes WORDS`, or SQL query, as described above.")
    ] = "changes",
    limit: Annotated[
        int, typer.Option("-n", "--limit", metavar="N", min=1, help="Maximum number of rows to print.")
    ] = 20,
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Write all rows to FILE, instead of printing them. FILE must end in .parquet or .csv.",
        ),
    ] = None,
    plot: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="Write a bar chart of the first 20 rows to FILE, as SVG, instead of printing the rows."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Query the results of `fluents batch`: show a table, or run SQL.

    Needs the extra `fluents[batch]`.

    QUERY is one of:

    - a view, which is a table of results: changes, procedures, failures, entities, attributes, transitions (pairs of
      old and new states) or topics (the ten attributes that change most often in each topic)
    - `becomes WORDS`, for the changes whose new state contains WORDS, such as `hot` or `boiling hot`
    - an SQL query that reads from these views, or from becomes('WORDS')

    Example: `fluents query results entities`

    Example: `fluents query results "becomes hot"`

    Example: `fluents query results "SELECT entity, count(*) FROM changes GROUP BY 1 ORDER BY 2 DESC" --plot top.svg`
    """
    from fluents import jsonl
    from fluents.batches.query import plot_of, rows_of, write
    from fluents.batches.query import query as ask
    from fluents.report.terminal import table_of

    found = ask(folder, question, _notice)
    if output is not None:
        write(found, output)
        tell(f"wrote {output}")
    if plot is not None:
        jsonl.write_text(plot, plot_of(found, question))
        tell(f"wrote {plot}")
    if output is None and plot is None:
        columns, rows = rows_of(found, limit + 1)
        if as_json:
            show_json([dict(zip(columns, row, strict=True)) for row in rows[:limit]])
            return
        show(table_of(columns, ([_cell(value) for value in row] for row in rows[:limit]), words=len(columns)))
        if len(rows) > limit:
            tell(f"only the first {limit} rows are shown; raise --limit to see more")


def _cell(value: object) -> str:
    if value is None:
        return "-"
    return f"{value:,}" if isinstance(value, int) else f"{value:.3g}" if isinstance(value, float) else str(value)
