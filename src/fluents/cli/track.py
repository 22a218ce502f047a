"""fluents track"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path
from typing import Annotated

import typer
from rich.console import RenderableType

from fluents import jsonl
from fluents.cli.output import download_progress, emit, messages, step_progress
from fluents.cli.segment import procedures, unique_ids
from fluents.cli.train import read_answers
from fluents.errors import InputError
from fluents.records import Procedure, Trace
from fluents.trackers import Tracker

SUFFIXES = (".txt", ".md", ".json", ".jsonl")
"""What of a folder is read."""


def track(
    files: Annotated[list[str], typer.Argument(help="Texts, JSON files, folders, datasets; - is standard input.")],
    goal: Annotated[str | None, typer.Option(help="The goal, instead of the title found.")] = None,
    output: Annotated[
        str | None, typer.Option("--output", "-o", help="Write JSONL here, a procedure as it ends.")
    ] = None,
    html: Annotated[str | None, typer.Option(help="Write a page here, readable offline.")] = None,
    fast: Annotated[bool, typer.Option("--fast", help="One pass: a second or two a step instead of several.")] = False,
    setting: Annotated[
        str, typer.Option(help="default, fast, openpi or openpi-c (the last two are for metrics).")
    ] = "default",
    max_changes: Annotated[
        int | None, typer.Option(min=1, help="At most so many changes a step: fewer are surer.")
    ] = None,
    samples: Annotated[
        int | None, typer.Option(min=1, help="Answers drawn and agreed on: more are better, slower.")
    ] = None,
    seed: Annotated[int, typer.Option(help="The same seed gives the same answer.")] = 1,
    resume: Annotated[bool, typer.Option("--resume", help="Keep what --output already holds and go on.")] = False,
    replay: Annotated[
        list[str] | None,
        typer.Option(help="Answers drawn by `fluents train sample`, one file for each adapter of the setting."),
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Only so many procedures.")] = None,
    as_json: Annotated[bool | None, typer.Option("--json/--table", help="JSONL or tables.")] = None,
) -> None:
    """Track what changes at every step, with the embedded model, offline.

    The model's weights are fetched on first use. Ctrl-C keeps the procedures that are done; `--resume` goes on.

    Example: `fluents track soup.md --html soup.html`
    """
    if resume and output is None:
        raise InputError("--resume needs --output", fix="name the file to go on with")
    tracker = local_tracker("fast" if fast else setting, samples, max_changes, seed, replay or [])
    wanted = islice(unique_ids(procedures(_expanded(files), goal)), limit)
    if output is None or output == "-":
        done = _tracked(wanted, tracker)
        traces = list(done) if html else done
        emit(traces, _view, output, as_json)
    else:
        traces = _into_file(wanted, tracker, Path(output), resume)
    if html:
        from fluents.report.page import page

        with jsonl.atomic_output(html) as stream:
            stream.write(page(list(traces)).encode())
        messages.print(f"wrote {html}", markup=False)


def local_tracker(setting: str, samples: int | None, most: int | None, seed: int, replay: list[str]) -> Tracker:
    """The embedded tracker in a named setting, with what the command line changes of it."""
    from fluents.errors import UnknownNameError
    from fluents.trackers.engine import Replay
    from fluents.trackers.local import SETTINGS, LocalTracker
    from fluents.weights import DEFAULT, ensure
    from fluents.weights.catalogue import find, is_here

    if setting not in SETTINGS:
        raise UnknownNameError(f"no setting {setting!r}", fix=f"one of: {', '.join(SETTINGS)}")
    chosen = replace(SETTINGS[setting], seed=seed)
    if samples is not None:
        chosen = replace(chosen, sampling=replace(chosen.sampling, samples=samples))
    if most is not None:
        chosen = replace(chosen, consensus=replace(chosen.consensus, most=most))
    if replay:
        if len(replay) != len(chosen.voters):
            raise InputError(
                f"{len(replay)} files of answers, but the setting {setting} has {len(chosen.voters)} adapters"
            )
        return LocalTracker(chosen, [Replay(dict(read_answers(file))) for file in replay])
    if not is_here(find(DEFAULT)):
        with download_progress("fetching the model's weights (98 MB, once)") as progress:
            ensure(DEFAULT, progress)
    return LocalTracker(chosen)


def _tracked(wanted: Iterator[Procedure], tracker: Tracker) -> Iterator[Trace]:
    for procedure in wanted:
        with step_progress(procedure.goal or procedure.id, len(procedure.steps)) as on_step:
            trace = tracker.track(procedure, on_step)
        yield trace


def _into_file(wanted: Iterator[Procedure], tracker: Tracker, path: Path, resume: bool) -> list[Trace]:
    """Append each trace as it is done, so that an interrupted run loses nothing that was finished."""
    kept = _kept(path) if resume and path.exists() else []
    have = {trace.id for trace in kept}
    left = (procedure for procedure in wanted if procedure.id not in have)
    first = list(islice(left, 1))  # before the file is opened: what cannot be read must not empty it
    with jsonl.open_output(path, append=resume) as stream:
        for trace in _tracked(chain(first, left), tracker):
            stream.write(jsonl.dumps(trace) + b"\n")
            stream.flush()
            kept.append(trace)
    messages.print(f"{len(kept)} procedure(s) in {path}", markup=False)
    return kept


def _kept(path: Path) -> list[Trace]:
    """The traces of an interrupted run; a last line that was cut off in the writing is taken away."""
    content = path.read_bytes()
    whole = content[: content.rfind(b"\n") + 1]
    if whole != content:
        with jsonl.atomic_output(path) as stream:
            stream.write(whole)
    return [record for record in jsonl.read(path) if isinstance(record, Trace)]


def _expanded(names: list[str]) -> list[str]:
    """The names, a folder standing for the texts and JSON files in it."""
    found: list[str] = []
    for name in names:
        if name != "-" and Path(name).is_dir():
            inside = sorted(str(file) for file in Path(name).iterdir() if file.suffix in SUFFIXES)
            if not inside:
                raise InputError(
                    "no text or JSON file in this folder", where=name, fix=f"looked for {' '.join(SUFFIXES)}"
                )
            found += inside
        else:
            found.append(name)
    return found


def _view(trace: Trace) -> RenderableType:
    from fluents.report.terminal import trace_view

    return trace_view(trace)
