"""fluents track"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import IO, Annotated, Any

import typer

from fluents import jsonl
from fluents.cli.command import (
    OutputOptions,
    Salient,
    messages,
    report_skipped,
    resumable_output,
    show,
    tell,
    with_options,
)
from fluents.cli.model_options import BASE_URL_HELP, ModelOptions
from fluents.errors import FluentsError, InputError
from fluents.records import Procedure, Trace
from fluents.report.terminal import trace_view
from fluents.resumable import is_regular
from fluents.text.names import counted
from fluents.trackers import (
    ProgressBar,
    TraceSink,
    Tracker,
    open_tracker,
    refuse_old_setting,
    settings_of,
    track_into,
    unanswered,
)


@dataclass(frozen=True)
class InputOptions:
    """What is tracked. Each field is an option."""

    files: Annotated[
        list[str],
        typer.Argument(
            help="Texts, web pages (HTML files), JSON files, folders, or dataset splits such as openpi:dev. Use - for "
            "standard input."
        ),
    ]
    goal: Annotated[str | None, typer.Option(metavar="TEXT", help="Goal of the procedure. Default: its title.")] = None
    limit: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Use only the first N procedures. Default: all.")
    ] = None
    strict: Annotated[
        bool, typer.Option("--strict", help="Stop at the first file that cannot be read, instead of skipping it.")
    ] = False

    def read(self, *outputs: str | None) -> tuple[list[Procedure], list[FluentsError]]:
        """The procedures, and why files were skipped: all at once, so that a bad file is told before the work."""
        from fluents.data.inputs import procedures

        skipped: list[FluentsError] = []
        found = procedures(self.files, goal=self.goal, outputs=outputs, skipped=None if self.strict else skipped)
        return list(islice(found, self.limit)), skipped


@dataclass(frozen=True)
class TraceOptions(OutputOptions):
    """Where traces go, and what is shown. Each field is an option."""

    html: Annotated[str | None, typer.Option(metavar="FILE", help="Also write the results to FILE, as a web page.")] = (
        None
    )
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print only results and errors.")] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.html and self.output and jsonl.output_path(self.html) == jsonl.output_path(self.output):
            raise InputError("`output` and `html` are the same file", where=self.html, fix="give two different files")
        messages.quiet = self.quiet

    def print(self, trace: Trace) -> None:
        """Show a trace on standard output: JSONL in a pipe, tables for people, nothing there that a file has."""
        in_file = self.output not in (None, "-")
        if self.as_json or self.output == "-" or (self.as_json is None and not in_file and not sys.stdout.isatty()):
            sys.stdout.buffer.write(jsonl.dumps(trace) + b"\n")
            sys.stdout.buffer.flush()
        elif self.as_json is False or not in_file or (sys.stdout.isatty() and not self.quiet):
            show(trace_view(trace))
            show("")

    def print_unfinished(self, traces: Iterable[Trace]) -> None:
        """Show people the finished steps of procedures that were interrupted, where no file keeps them."""
        if self.output is None and (self.as_json is False or (self.as_json is None and sys.stdout.isatty())):
            for trace in traces:
                self.print(trace)


@dataclass(frozen=True)
class SamplingOptions:
    """How answers are drawn. Each field is an option."""

    samples: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="Sample N answers per step, and keep the changes on which the answers agree. Default: 1.",
        ),
    ] = None
    max_changes: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Keep at most N changes per step. Default: depends on --samples."),
    ] = None
    seed: Annotated[int, typer.Option(metavar="N", help="Random seed. Default: 1.", show_default=False)] = 1


@dataclass(frozen=True)
class EmbeddedSamplingOptions(SamplingOptions):
    """Likewise, where an embedded model may answer."""

    samples: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="Sample N answers per step, and keep the changes on which the answers agree. Default: 1, but more "
            "with --setting and with some adapters.",
        ),
    ] = None
    max_changes: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=1, help="Keep at most N changes per step. Default: depends on the model and --samples."
        ),
    ] = None


@with_options
def track(
    inputs: InputOptions,
    model: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Embedded model (tiny, small, base or a GGUF file), or the name of a language model at --base-url. "
            "Default: the model of --adapter if given, otherwise $FLUENTS_MODEL if set, otherwise base.",
        ),
    ] = None,
    base_url: Annotated[str | None, typer.Option(metavar="URL", help=BASE_URL_HELP)] = None,
    adapter: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="LoRA adapter for the embedded model: a name from `fluents weights list`, or a GGUF file. "
            "Default: the adapter made for --model.",
        ),
    ] = None,
    setting: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Preset for the metrics of OpenPI and OpenPI-C: openpi or openpi-c, alone or followed by -clusters or "
            "-distinct. Uses the model base, with 24 answers per step. Not for output that people read.",
        ),
    ] = None,
    min_confidence: Annotated[
        float | None,
        typer.Option(
            metavar="X",
            min=0,
            max=1,
            help="With an embedded model: drop changes whose confidence (0 to 1) is below X. Default: depends on the "
            "model and --samples.",
        ),
    ] = None,
    replay: Annotated[
        list[str] | None,
        typer.Option(hidden=True, help="Answers from `fluents train sample`, one file for each adapter."),
    ] = None,
    fast: Annotated[bool, typer.Option("--fast", hidden=True)] = False,
    tracker: Annotated[str | None, typer.Option(hidden=True)] = None,
    *,
    sampling: EmbeddedSamplingOptions,
    salient: Salient,
    to: TraceOptions,
) -> None:
    """Track what changes at every step of a procedure.

    By default, an embedded model finds the changes. It is downloaded once and then runs offline. It comes in three
    sizes: tiny (98 MB), small (491 MB) and base (1.1 GB, the default).

    For a language model on a server, give --model and --base-url, or see `fluents track-llm`. For a model that you
    trained with `fluents train neural`, see `fluents track-neural`.

    Example: `fluents track soup.md`

    Example: `fluents track recipes/ -o recipes.jsonl --html recipes.html`

    Example: `fluents track soup.md --model NAME --base-url URL`
    """
    from fluents.weights.base_weights import is_embedded

    _refuse_old_spelling(tracker, fast)
    refuse_old_setting(setting)
    embedded: dict[str, Any] = {"adapter": adapter, "setting": setting, "replay": replay}
    embedded["min_confidence"] = min_confidence
    given = [name for name, value in embedded.items() if value is not None]
    if model is not None and not is_embedded(model):
        if given:
            raise InputError(
                f"`{given[0]}` works only with an embedded model, but {model} is a language model at an endpoint",
                fix=f"leave out `model` or `{given[0]}`",
            )
        from fluents.cli.track_llm import LlmOptions, track_with_llm
        from fluents.trackers.llm.tracker import naming_embedded_models

        with naming_embedded_models():
            track_with_llm(LlmOptions(), ModelOptions(model=model, base_url=base_url), sampling, inputs, salient, to)
        return
    wanted, skipped = inputs.read(to.output, to.html)
    chosen: dict[str, Any] = {"setting": setting, "adapter": adapter}
    chosen |= {"samples": sampling.samples, "max_changes": sampling.max_changes, "seed": sampling.seed}
    if replay:
        for name, value in (("model", model), ("min_confidence", min_confidence)):
            if value is not None:
                raise InputError(f"`{name}` has no effect with `replay`", fix=f"leave out `{name}` or `replay`")
        ready = _replaying(replay, chosen)
    else:
        ready = open_tracker(model=model, base_url=base_url, min_confidence=min_confidence, **chosen)
    with ready:
        if not replay:
            fetch_weights(model, adapter, setting)
        track_all(ready, wanted, skipped, salient, to)


def _refuse_old_spelling(tracker: str | None, fast: bool) -> None:
    if fast:
        raise InputError("--fast was removed", fix="leave out --fast; --model tiny is the fastest model")
    if tracker is None:
        return
    now = {"llm": "fluents track-llm", "neural": "fluents track-neural"}.get(tracker)
    raise InputError(
        f"--tracker {tracker} was replaced by `{now}`" if now else "unknown option --tracker",
        fix=f"{now} FILES …" if now else "leave out --tracker: the embedded model is the default",
    )


def _replaying(files: list[str], chosen: dict[str, Any]) -> Tracker:
    from fluents.trackers.local import LocalTracker, local_settings
    from fluents.trackers.replay import Replay

    settings = local_settings(**chosen)
    if len(files) != len(settings.voters):
        raise InputError(
            f"`replay` is given {counted(len(files), 'time')}, but these settings need "
            f"{counted(len(settings.voters), 'file')} of answers",
            fix="give `replay` once for each file of sampled answers",
        )
    return LocalTracker(settings, [Replay.read(file) for file in files])


def fetch_weights(model: str | None = None, adapter: str | None = None, setting: str | None = None) -> None:
    """Before the progress bar of tracking: fetching has its own."""
    from fluents.weights.adapters import open_embedded
    from fluents.weights.base_weights import default_model

    if setting is not None:
        from fluents.trackers.local import SETTINGS

        adapter = next(one.voters[0].adapter for name, one in SETTINGS.items() if name == setting)
    open_embedded(model or (None if adapter else default_model()), adapter).base_path(messages)


def track_all(
    tracker: Tracker,
    wanted: Sequence[Procedure],
    skipped: Sequence[FluentsError],
    salient: Salient,
    to: TraceOptions,
    on_trace: Callable[[Trace], None] | None = None,
) -> None:
    """Track procedures into a file, a page and the terminal. Steps without an answer and skipped files end in status 1.

    An interrupted run keeps its finished steps, in the file and on the page.
    """
    missing = 0
    with _page(to.html) as shown, _opened(tracker, salient, to) as output, _bar(wanted, output) as bar:
        try:
            for trace in track_into(output, tracker, wanted, bar):
                missing += unanswered(tracker, trace)
                if on_trace:
                    on_trace(trace)
                with bar.hidden():
                    to.print(salient.only(trace, report=True))
        except BaseException:
            if isinstance(output, _Unkept):
                with bar.hidden():
                    to.print_unfinished(output.unfinished())
            raise
        finally:
            if to.html:
                shown += output.traces()
    in_file = not isinstance(output, _Unkept)
    if in_file:
        tell(f"wrote {counted(output.count, 'procedure')} to {to.output}")
    messages.quiet = to.quiet and not missing and not skipped
    if missing:
        fix = "; to ask for these steps again, run the command with --resume" if in_file else ""
        tell(f"the model gave no answer for {counted(missing, 'step')}{fix}")
    report_skipped(skipped)
    if missing:
        raise typer.Exit(1)


class _Unkept:
    """Stands in for an output file where there is none, or one that cannot be read again."""

    def __init__(self, finish: Callable[[Trace], Trace], stream: IO[bytes] | None, collect: bool) -> None:
        self._finish, self._stream, self._collect = finish, stream, collect
        self._finished: list[Trace] = []
        self._unfinished: dict[str, Trace] = {}

    def kept(self, wanted: Procedure) -> None:  # noqa: ARG002
        return None

    def keep_steps(self, trace: Trace) -> None:
        self._unfinished[trace.id] = trace

    def add(self, trace: Trace) -> None:
        self._unfinished.pop(trace.id, None)
        if self._stream:
            self._stream.write(jsonl.dumps(self._finish(trace)) + b"\n")
            self._stream.flush()
        if self._collect:
            self._finished.append(self._finish(trace))

    def unfinished(self) -> list[Trace]:
        return [self._finish(trace) for trace in self._unfinished.values()]

    def traces(self) -> list[Trace]:
        return self._finished + self.unfinished()


@contextmanager
def _opened(tracker: Tracker, salient: Salient, to: TraceOptions) -> Iterator[Any]:
    """Where the traces go: a ResumableOutput where that can be."""
    if to.output is not None and is_regular(to.output):
        kept = {} if salient.keep is None else {"salience": str(salient.keep)}
        settings = settings_of(tracker.provenance) | kept
        made = partial(_settings_of_trace, kept=kept)
        with resumable_output(to.output, settings, resume=to.resume, settings_of=made, finish=salient.only) as output:
            yield output
    elif to.output in (None, "-"):
        yield _Unkept(salient.only, None, to.html is not None)
    else:
        with jsonl.atomic_output(to.output) as stream:
            yield _Unkept(salient.only, stream, to.html is not None)


def _settings_of_trace(trace: Trace, kept: dict[str, str]) -> dict[str, Any]:
    note = trace.provenance.decoding.get("salience")
    if not isinstance(note, str):  # nothing was left out of a trace without changes
        return settings_of(trace.provenance) | ({} if trace.changes else kept)
    return settings_of(trace.provenance) | {"salience": note.partition(" by ")[0]}


def _bar(wanted: Sequence[Procedure], output: TraceSink) -> ProgressBar:
    done = [trace for procedure in wanted if (trace := output.kept(procedure))]
    steps = sum(len(procedure.steps) for procedure in wanted) - sum(len(trace.covered_steps) for trace in done)
    return ProgressBar(steps, messages)


@contextmanager
def _page(html: str | None) -> Iterator[list[Trace]]:
    """A list of traces that becomes a page when the block ends, even if it ends early."""
    traces: list[Trace] = []
    if html is None:
        yield traces
        return
    early: BaseException | None = None
    with jsonl.atomic_output(html) as stream:  # at once: a place that cannot be written to is told before the work
        try:
            yield traces
        except BaseException as error:
            if not traces:
                raise
            early = error
        from fluents.report.trace_page import to_html

        stream.write(to_html(traces).encode())
    tell(f"wrote {html}")
    if early:
        raise early
