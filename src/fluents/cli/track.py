"""fluents track"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import IO, Annotated

import typer
from rich.console import RenderableType

from fluents import jsonl
from fluents.cli.models import ModelChoice
from fluents.cli.options import changed, with_options
from fluents.cli.output import emit, messages
from fluents.cli.resuming import whole_traces
from fluents.cli.salience_options import Salient
from fluents.cli.track_llm import LlmChoice, open_llm, rehearse
from fluents.cli.track_local import LocalChoice, drafting, local_tracker
from fluents.cli.track_neural import NeuralChoice, open_neural
from fluents.cli.track_run import Run, SamplingOptions
from fluents.data.inputs import procedures
from fluents.errors import InputError
from fluents.records import Procedure, Trace
from fluents.report.terminal import counted


@with_options
def track(
    files: Annotated[list[str], typer.Argument(help="Texts, JSON files, folders, datasets; - is standard input.")],
    tracker: Annotated[
        str,
        typer.Option(
            help="local: the embedded model, offline. llm: any OpenAI-compatible language model. neural: a model you "
            "trained."
        ),
    ] = "local",
    goal: Annotated[str | None, typer.Option(help="The goal, instead of the title found.")] = None,
    output: Annotated[
        str | None, typer.Option("--output", "-o", help="Write JSONL here, a procedure as it ends.")
    ] = None,
    html: Annotated[str | None, typer.Option(help="Write a page here, readable offline.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Keep what --output already holds and go on.")] = False,
    limit: Annotated[int | None, typer.Option(min=1, help="Only so many procedures.")] = None,
    as_json: Annotated[bool | None, typer.Option("--json/--table", help="JSONL or tables.")] = None,
    *,
    salient: Salient,
    drawing: SamplingOptions,
    local: LocalChoice,
    llm: LlmChoice,
    model: ModelChoice,
    neural: NeuralChoice,
) -> None:
    """Track what changes at every step: with the embedded model, offline, or with a language model of your choice.

    The embedded model is fetched on first use. Ctrl-C keeps the procedures that are done; `--resume` goes on.

    Example: `fluents track soup.md --html soup.html`

    Example: `fluents track soup.md --tracker llm --base-url http://127.0.0.1:8080/v1 --model NAME`
    """
    if resume and output in (None, "-"):
        raise InputError("--resume needs --output", fix="name the file to go on with")
    if html and output and Path(html).resolve() == Path(output).resolve():
        raise InputError("--output and --html name the same file", where=html, fix="name two")
    choices = TrackerOptions(drawing, local, llm, model, neural)
    choices.refuse_foreign(tracker)
    found = procedures(files, goal=goal, outputs=[output, html])
    wanted = iter(list(islice(found, limit)))  # all at once: a bad file is told before the work
    if llm.dry_run and tracker == "llm":
        rehearse(wanted, llm, drawing, as_json)
        return
    # The page is opened first: a place that cannot be written to is told before the work, not after it.
    with jsonl.atomic_output(html) if html else nullcontext() as shown, choices.opened(tracker) as track_all:
        run = salient.after(track_all)
        traces: list[Trace] = []
        if output is None or output == "-":
            emit(_kept(run(wanted), traces) if html else run(wanted), _view, output, as_json)
        else:
            traces = _into_file(wanted, run, Path(output), resume)
        if shown:
            from fluents.report.trace_page import page

            shown.write(page(traces).encode())
    if html:
        messages.print(f"wrote {html}", markup=False)


@dataclass(frozen=True)
class TrackerOptions:
    """All that was chosen on the command line, for whichever tracker."""

    drawing: SamplingOptions
    local: LocalChoice
    llm: LlmChoice
    model: ModelChoice
    neural: NeuralChoice

    def opened(self, tracker: str) -> AbstractContextManager[Run]:
        """The tracker of this name, ready to run."""
        if tracker == "llm":
            return open_llm(self.llm, self.model, self.drawing)
        if tracker == "neural":
            return nullcontext(open_neural(self.neural, self.drawing))
        return nullcontext(partial(drafting, local_tracker(self.local, self.drawing)))

    def refuse_foreign(self, tracker: str) -> None:
        """Options of other trackers are refused, not ignored."""
        from fluents.trackers import load

        load(tracker)  # says which there are
        groups = {"local": (self.local,), "llm": (self.llm, self.model), "neural": (self.neural,)}
        for other, choices in groups.items():
            if other != tracker:
                self._refuse(tracker, other, *choices)

    def _refuse(self, tracker: str, other: str, *choices: object) -> None:
        foreign = [option for choice in choices for option in changed(choice) if option != "--base-url"]
        if foreign:
            raise InputError(
                f"{foreign[0]} is no option of the tracker {tracker}", fix=f"--tracker {other}, or leave it out"
            )


def _kept(traces: Iterator[Trace], kept: list[Trace]) -> Iterator[Trace]:
    """The traces as they come, kept for the page."""
    for trace in traces:
        kept.append(trace)
        yield trace


def _into_file(wanted: Iterator[Procedure], run: Run, path: Path, resume: bool) -> list[Trace]:
    """Append each trace as it is done, so that an interrupted run loses nothing that was finished."""
    kept = whole_traces(path) if resume and path.exists() else []
    left = _left(wanted, {trace.id: trace for trace in kept}, path)
    first = list(islice(left, 1))  # before the file is opened: what cannot be read must not empty it
    with jsonl.open_output(path, append=True) as stream:
        traces = run(chain(first, left))
        if not resume:
            traces = _emptied_once_one_is_done(traces, stream, path)
        try:
            for trace in _warned_of_other_settings(traces, kept):
                stream.write(jsonl.dumps(trace) + b"\n")
                stream.flush()
                kept.append(trace)
        except KeyboardInterrupt:
            if kept:
                messages.print(f"what is done is in {path}; --resume goes on", markup=False, soft_wrap=True)
            raise
    messages.print(f"{counted(len(kept), 'procedure')} in {path}", markup=False, soft_wrap=True)
    return kept


def _left(wanted: Iterator[Procedure], done: dict[str, Trace], path: Path) -> Iterator[Procedure]:
    """What is still to do. A procedure that has another text by now is not done, though its id is there."""
    for procedure in wanted:
        if procedure.id not in done:
            yield procedure
            continue
        before = done[procedure.id].procedure
        if (before.goal, before.steps) != (procedure.goal, procedure.steps):
            raise InputError(
                f"{procedure.id} is there with another text",
                where=path,
                fix="leave --resume out to track everything again, or name another --output",
            )


def _warned_of_other_settings(traces: Iterator[Trace], kept: list[Trace]) -> Iterator[Trace]:
    before = kept[-1:]
    for trace in traces:
        if before and _settings(trace) != _settings(before.pop()):
            messages.print("the traces that were there were made with other settings", style="yellow")
        yield trace


def _settings(trace: Trace) -> tuple[object, ...]:
    made = trace.provenance
    drawn = {name: value for name, value in made.decoding.items() if name != "removed"}  # a count, not a setting
    return made.tracker, made.model, made.seed, drawn


def _emptied_once_one_is_done(traces: Iterator[Trace], stream: IO[bytes], path: Path) -> Iterator[Trace]:
    """The traces; what the file held goes when the first is done, so that an error before it costs nothing.

    It also goes on Ctrl-C, after which --resume must not find the traces of another run.
    """
    try:
        done = list(islice(traces, 1))
    except KeyboardInterrupt:
        _empty(stream, path)
        raise
    _empty(stream, path)
    yield from chain(done, traces)


def _empty(stream: IO[bytes], path: Path) -> None:
    if path.is_file():  # not a pipe or a device
        stream.truncate(0)


def _view(trace: Trace) -> RenderableType:
    from fluents.report.terminal import trace_view

    return trace_view(trace)
