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
from fluents.errors import InputError
from fluents.text.names import counted

STAGES = "segment,track,canonicalise,salience"


@dataclass(frozen=True)
class BatchTracker:
    """Who tracks. Each field is an option."""

    model: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="tiny, small, base, a GGUF file, or the name of a model at an endpoint."),
    ] = None
    base_url: Annotated[str | None, typer.Option(metavar="URL", help="Endpoint of the language model.")] = None
    adapter: Annotated[str | None, typer.Option(metavar="NAME", help="Adapter, by name or GGUF file.")] = None
    checkpoint: Annotated[str | None, typer.Option(metavar="FOLDER", help="Checkpoint of `fluents train neural`.")] = (
        None
    )
    replay: Annotated[
        str | None, typer.Option(metavar="FILE", help="Take the changes from the traces in FILE, instead of a model.")
    ] = None
    samples: Annotated[int | None, typer.Option(metavar="N", min=1, help="Answers to sample per step.")] = None
    max_changes: Annotated[int | None, typer.Option(metavar="N", min=1, help="Maximum changes per step.")] = None
    min_confidence: Annotated[
        float | None, typer.Option(metavar="X", min=0, max=1, help="Minimum confidence of a change.")
    ] = None
    at_once: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            max=256,
            help="Procedures at once, for an embedded model; requests at once, for an endpoint. Default: 8.",
        ),
    ] = None
    seed: Annotated[int | None, typer.Option(metavar="N", help="Random seed. Default: 1.")] = None

    def given(self) -> dict[str, Any]:
        """The options that were given."""
        return {name: value for name, value in asdict(self).items() if value is not None}


@dataclass(frozen=True)
class WorkerOptions:
    """Who works, and how much it may take. Each field is an option."""

    engine: Annotated[Literal["local", "ray"], typer.Option(help="Processes on this machine, or a Ray cluster.")] = (
        "local"
    )
    address: Annotated[str | None, typer.Option(help="Address of the Ray cluster. Default: one on this machine.")] = (
        None
    )
    workers: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Number of workers. Default: 1 for an embedded model, else all cores."),
    ] = None
    gpu_workers: Annotated[int, typer.Option(metavar="N", min=0, help="So many of them get a GPU each.")] = 0
    memory: Annotated[int | None, typer.Option(metavar="MB", min=1, help="Maximum memory of a worker.")] = None
    timeout: Annotated[
        float, typer.Option(metavar="X", min=0.1, help="Seconds without a sign of life until a worker is replaced.")
    ] = 600.0


@with_options
def batch(
    inputs: Annotated[
        list[str],
        typer.Argument(help="Files, folders, fsspec addresses or datasets: texts, JSONL, Parquet, compressed or not."),
    ],
    out: Annotated[str, typer.Option("--out", "-o", metavar="FOLDER", help="Write shards and a manifest to FOLDER.")],
    stages: Annotated[str, typer.Option(metavar="LIST", help="Stages, separated by commas.")] = STAGES,
    format: Annotated[Literal["parquet", "jsonl"], typer.Option(help="Format of the shards.")] = "parquet",
    shard_size: Annotated[int, typer.Option(metavar="N", min=1, help="Maximum procedures per shard.")] = 50,
    max_steps: Annotated[int, typer.Option(metavar="N", min=1, help="Procedures with more steps fail.")] = 1000,
    part: Annotated[
        str | None, typer.Option(metavar="K/N", help="Do every N-th shard, from the K-th on: for array jobs.")
    ] = None,
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Try failed procedures again.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print shards, time and cost; process and write nothing.")
    ] = False,
    price_in: Annotated[float | None, typer.Option(min=0, help="Dry run: price per million input tokens.")] = None,
    price_out: Annotated[float | None, typer.Option(min=0, help="Dry run: price per million output tokens.")] = None,
    as_json: AsJson = False,
    *,
    tracker: BatchTracker,
    work: WorkerOptions,
) -> None:
    """Run many procedures through the stages, on this machine or on a Ray cluster.

    Writes Parquet or JSONL shards and a manifest. Run the same command again to go on after an interruption: finished
    shards are skipped. A procedure that fails is a row with its error, and does not stop the run.

    Example: `fluents batch recipes.jsonl.gz --out results --model small`

    Example: `fluents batch s3://bucket/recipes/ -o /shared/results --engine ray --address auto --workers 64`
    """
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
        raise InputError("`price_in` and `price_out` are for `dry_run`", fix="leave them out, or add --dry-run")
    try:
        with _bar() as on_progress:
            report = run(
                inputs, out, on_progress=on_progress, on_notice=_notice, **chosen, **asdict(work), **tracker.given()
            )
    except BaseException:
        tell(f"finished shards are in {out}; run the same command again to go on")
        raise
    if as_json:
        show_json(asdict(report))
    if report.lost:
        tell(f"{counted(len(report.lost), 'worker')} lost and replaced, the last because it {report.lost[-1]}")
    before = f" ({counted(report.skipped, 'shard')} done before)" if report.skipped else ""
    tell(
        f"{counted(report.procedures, 'procedure')}, {counted(report.changes, 'change')} in "
        f"{counted(report.shards, 'shard')} in {out}{before}"
    )
    if report.failures:
        tell(
            f"{counted(report.failures, 'procedure')} failed: `fluents query {out} failures` shows why, --retry-failed"
        )
        raise typer.Exit(1)


def _part(text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    found = re.fullmatch(r"(\d{1,6})/(\d{1,6})", text)
    if not found:
        raise InputError(f"`part` is {text[:40]!r}", fix="give K/N, such as 3/100")
    return int(found[1]), int(found[2])


def _notice(text: str) -> None:
    tell(f"note: {text}", "yellow")


@contextmanager
def _bar() -> Iterator[Any]:
    """A progress bar with the rate and the time left."""
    import time

    from fluents.batches import BatchProgress
    from fluents.trackers import TimeLeft

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
    folder: Annotated[str, typer.Argument(help="Results of `fluents batch`.")],
    question: Annotated[str, typer.Argument(metavar="QUERY", help="A view, `becomes WORD`, or SQL.")] = "changes",
    limit: Annotated[int, typer.Option("-n", "--limit", metavar="N", min=1, help="Maximum rows to print.")] = 20,
    output: Annotated[
        str | None, typer.Option("--output", "-o", metavar="FILE", help="Write all rows to FILE: .parquet or .csv.")
    ] = None,
    plot: Annotated[str | None, typer.Option(metavar="FILE", help="Draw the first two columns as an SVG.")] = None,
    as_json: AsJson = False,
) -> None:
    """Query the results of a batch run, with DuckDB.

    Views: changes, entities, transitions, attributes, topics, procedures, failures. `becomes WORD` lists whatever ends
    in a state with this word. In SQL these are tables, and becomes('hot') is a table too.

    Example: `fluents query results "becomes hot"`

    Example: `fluents query results "SELECT entity, count(*) FROM changes GROUP BY 1 ORDER BY 2 DESC" --plot top.svg`
    """
    from fluents import jsonl
    from fluents.batches.query import plot_of, rows_of, write
    from fluents.batches.query import query as ask
    from fluents.report.terminal import table_of

    found = ask(folder, question)
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
            tell(f"the first {limit} rows; --limit shows more")


def _cell(value: object) -> str:
    if value is None:
        return "-"
    return f"{value:,}" if isinstance(value, int) else f"{value:.3g}" if isinstance(value, float) else str(value)
