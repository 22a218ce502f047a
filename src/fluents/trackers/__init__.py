"""Trackers: a procedure in, a trace out. `open_tracker` makes one from plain parameters."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Protocol, Self, TypeAlias, TypedDict, Unpack

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from fluents.errors import InputError
from fluents.records import Procedure, Provenance, Trace
from fluents.report.terminal import TimeLeft, plain

if TYPE_CHECKING:
    from fluents.llm import LanguageModel

Setting: TypeAlias = Literal[
    "openpi", "openpi-c", "openpi-clusters", "openpi-c-clusters", "openpi-distinct", "openpi-c-distinct"
]
"""Settings for the published metrics. They are not for readers."""


class Listener:
    """Learns what a tracker does while it works. Override what you want to know.

    Everything but `on_draft` is called in the thread that called the tracker.
    """

    def on_start(self, procedure: Procedure, done: int = 0) -> None:
        """A procedure is begun; `done` of its steps were finished before."""

    def on_step(self, trace: Trace) -> None:
        """Steps are finished: `trace` holds all finished steps of its procedure so far."""

    def on_progress(self, procedure: Procedure, steps: float) -> None:
        """So many steps are done; one that is half done counts half."""

    def on_draft(self, line: str) -> None:
        """A model has written a line, which may or may not become a change. Called from another thread."""


class Tracker(ABC):
    """What every tracker can do. Close it, or use it in a `with` block, to free what it holds."""

    @property
    @abstractmethod
    def provenance(self) -> Provenance:
        """What its traces say of how they were made, as far as it is known beforehand."""

    @abstractmethod
    def track(self, procedure: Procedure, listener: Listener | None = None, done: Trace | None = None) -> Trace:
        """The changes of every step. Steps that `done`, an unfinished trace of the same tracker, covers are kept.

        Steps that got no answer are left out of the trace's `covered`.
        """

    def track_many(
        self, procedures: Iterable[Procedure], listener: Listener | None = None, done: Mapping[str, Trace] | None = None
    ) -> Iterator[Trace]:
        """The traces of several procedures, in order and as they are done; `done` by procedure id."""
        for procedure in procedures:
            yield self.track(procedure, listener, (done or {}).get(procedure.id))

    def steps_of(self, procedure: Procedure) -> tuple[int, ...]:
        """The steps it answers, mostly all; those of them that a trace does not cover got no answer."""
        return tuple(range(1, len(procedure.steps) + 1))

    def close(self) -> None:  # noqa: B027 - most hold nothing
        """Free what the tracker holds."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class TrackerOptions(TypedDict, total=False):
    """What a tracker can be opened with: see `open_tracker`."""

    model: str | Path | LanguageModel | None
    base_url: str | None
    adapter: str | Path | None
    checkpoint: str | Path | None
    replay: str | Path | None
    setting: Setting | None
    samples: int | None
    max_changes: int | None
    min_confidence: float | None
    at_once: int | None
    seed: int


def open_tracker(
    *,
    model: str | Path | LanguageModel | None = None,
    base_url: str | None = None,
    adapter: str | Path | None = None,
    checkpoint: str | Path | None = None,
    replay: str | Path | None = None,
    setting: Setting | None = None,
    samples: int | None = None,
    max_changes: int | None = None,
    min_confidence: float | None = None,
    at_once: int | None = None,
    seed: int = 1,
) -> Tracker:
    """A tracker, ready to use.

    The `model` tiny, small or base, or a GGUF file, is embedded: it runs here, with the `adapter` that ships for it or
    with another, a name or a GGUF file. The default is FLUENTS_MODEL, or base. Any other `model` is a language model at
    `base_url`, at OPENAI_BASE_URL or at OpenAI; one that `llm.open_model` opened has all options. With `checkpoint` it
    is a folder that `fluents train neural` wrote; with `replay` a file of traces answers instead of a model. Engines of
    embedded models stay loaded for the next tracker.

    `at_once` is how many procedures an embedded model takes side by side in `track_many`: faster, but where two answers
    are all but equally likely, it may give the other one. Of an endpoint it is how many questions are asked at a time.

    >>> with open_tracker(model="small") as tracker:
    ...     traces = list(tracker.track_many(procedures))
    """
    refuse_old_setting(setting)
    for name, number in (("samples", samples), ("max_changes", max_changes), ("at_once", at_once)):
        if number is not None and number < 1:
            raise InputError(
                f"`{name}` must be at least 1, not {number}", fix=f"give a positive number, or leave out `{name}`"
            )
    if replay is not None:
        _refuse("replay", model=model, base_url=base_url, adapter=adapter, checkpoint=checkpoint, setting=setting)
        _refuse("replay", samples=samples, max_changes=max_changes, min_confidence=min_confidence, at_once=at_once)
        from fluents.trackers.replay import ReplayTracker

        return ReplayTracker.read(replay)
    if checkpoint is not None:
        _refuse("checkpoint", model=model, base_url=base_url, adapter=adapter, setting=setting, at_once=at_once)
        _refuse("checkpoint", samples=samples, max_changes=max_changes, min_confidence=min_confidence)
        from fluents.trackers.neural import NeuralSettings, NeuralTracker

        return NeuralTracker(checkpoint, NeuralSettings(seed=seed))
    from fluents.weights.adapters import open_embedded
    from fluents.weights.base_weights import default_model, is_embedded

    if isinstance(model, Path):
        model = str(model)
    if model is not None and not (isinstance(model, str) and is_embedded(model)):
        for name, value in (("adapter", adapter), ("setting", setting), ("min_confidence", min_confidence)):
            if value is not None:
                raise InputError(
                    f"`{name}` works only with an embedded model, but {getattr(model, 'name', model)} is a "
                    "language model at an endpoint",
                    fix=f"leave out `model` or `{name}`",
                )
        from fluents.trackers.llm.tracker import open_endpoint_tracker

        return open_endpoint_tracker(
            model, base_url, samples=samples, max_changes=max_changes, seed=seed, at_once=at_once
        )
    if base_url is not None:
        what = (
            "`base_url` has no effect without `model`"
            if model is None
            else f"`base_url` has no effect, because {model} is an embedded model"
        )
        raise InputError(what, fix="leave out `base_url`, or set `model` to the name of a model at this URL")
    if model is None and adapter is None and setting is None:
        model = default_model()
    if model is not None or adapter is not None:
        from fluents.prompts.transcript import VERSION

        embedded = open_embedded(model, adapter)
        if embedded.adapter.facts.prompt == VERSION or embedded.file is not None:
            _refuse("model" if adapter is None else "adapter", setting=setting)
            from fluents.trackers.transcript import TranscriptSettings, TranscriptTracker

            return TranscriptTracker(
                TranscriptSettings(
                    adapter if adapter is None else str(adapter),
                    model,
                    samples=1 if samples is None else samples,
                    max_changes=max_changes,
                    min_confidence=min_confidence,
                    at_once=at_once or 1,
                    seed=seed,
                )
            )
    _refuse("setting" if adapter is None else "adapter", min_confidence=min_confidence, at_once=at_once)
    from fluents.trackers.local import LocalTracker, local_settings

    return LocalTracker(local_settings(setting, adapter=adapter, samples=samples, max_changes=max_changes, seed=seed))


def refuse_old_setting(setting: str | None) -> None:
    """What was a setting once is the default now."""
    if setting in ("default", "fast"):
        raise InputError(
            f"`setting` {setting} was removed",
            fix="leave out `setting`; for better but slower answers, raise `samples`",
        )


def _refuse(chosen: str, **others: object) -> None:
    """No parameter is silently ignored."""
    for name, value in others.items():
        if value is not None:
            raise InputError(f"`{name}` has no effect with `{chosen}`", fix=f"leave out `{name}` or `{chosen}`")


def track(procedure: Procedure | str | Path, **options: Unpack[TrackerOptions]) -> Trace:
    """Track what changes at every step of a procedure, a text (str) or a file (Path).

    With the embedded model, offline once its weights are fetched; it stays loaded between calls. `options` are those of
    `open_tracker`: an `adapter` that you trained, or a `model` at a `base_url`.

    >>> trace = fl.track("Heat the oil in a pan. Crack two eggs into it.")
    >>> trace = fl.track(Path("soup.md"), adapter="runs/mine/adapter.gguf")
    >>> trace = fl.track(procedure, model="NAME", base_url="http://127.0.0.1:8080/v1")
    """
    if not isinstance(procedure, Procedure):
        from fluents.segmentation import segment

        procedure = segment(procedure)
    with open_tracker(**options) as tracker:
        return tracker.track(procedure)


def track_many(
    procedures: Iterable[Procedure], *, progress: bool = False, **options: Unpack[TrackerOptions]
) -> Iterator[Trace]:
    """Track several procedures with one tracker; traces come in order, as they are done.

    `progress` shows a progress bar on standard error. `options` are those of `open_tracker`.

    >>> for trace in fl.track_many(procedures, progress=True):
    ...     print(trace.id, len(trace.changes))
    """
    with open_tracker(**options) as tracker:
        if not progress:
            yield from tracker.track_many(procedures)
            return
        wanted = list(procedures)
        with ProgressBar(sum(len(procedure.steps) for procedure in wanted)) as bar:
            yield from tracker.track_many(wanted, bar)


def settings_of(provenance: Provenance) -> dict[str, Any]:
    """The part of a provenance that must be equal in all traces of a run."""
    decoding = {_NAMES.get(name, name): value for name, value in provenance.decoding.items() if name not in _RESULTS}
    return {"tracker": provenance.tracker, "model": provenance.model, "seed": provenance.seed, **decoding}


_RESULTS = ("removed", "salience", "min_support")
"""What is noted among the decoding and is no setting of the tracker."""
_NAMES = {"most": "max_changes", "consensus_most": "max_changes"}
"""What parameters are called there."""


class TraceSink(Protocol):
    """Where traces are kept: what of a `fluents.resumable.ResumableOutput` tracking needs."""

    def kept(self, wanted: Procedure, /) -> Trace | None: ...
    def keep_steps(self, trace: Trace, /) -> None: ...
    def add(self, trace: Trace, /) -> None: ...


def track_into(
    output: TraceSink, tracker: Tracker, procedures: Iterable[Procedure], listener: Listener | None = None
) -> Iterator[Trace]:
    """Track procedures into an output, and go on from what it holds: unanswered steps alone are asked.

    Gives every trace as it is done. Finished steps are kept at once.
    """
    wanted = list(procedures)
    kept = {procedure.id: trace for procedure in wanted if (trace := output.kept(procedure))}
    whole = {name for name, trace in kept.items() if not unanswered(tracker, trace)}
    # Of a trace that was filtered, what the next steps would build on is gone.
    done = {name: trace for name, trace in kept.items() if "salience" not in trace.provenance.decoding}
    left = [procedure for procedure in wanted if procedure.id not in whole]
    asked = tracker.track_many(left, _Keeper(output, listener), done)
    for procedure in wanted:
        trace = kept[procedure.id] if procedure.id in whole else next(asked)
        output.add(trace)
        yield trace


def unanswered(tracker: Tracker, trace: Trace) -> int:
    """How many steps got no answer."""
    return len(set(tracker.steps_of(trace.procedure)) - set(trace.covered_steps))


class _Keeper(Listener):
    """Keeps finished steps, and passes everything on."""

    def __init__(self, output: TraceSink, listener: Listener | None) -> None:
        self._output, self._listener = output, listener or Listener()

    def on_start(self, procedure: Procedure, done: int = 0) -> None:
        self._listener.on_start(procedure, done)

    def on_step(self, trace: Trace) -> None:
        self._output.keep_steps(trace)
        self._listener.on_step(trace)

    def on_progress(self, procedure: Procedure, steps: float) -> None:
        self._listener.on_progress(procedure, steps)

    def on_draft(self, line: str) -> None:
        self._listener.on_draft(line)


# Progress on standard error: how many steps are tracked, what the model drafts, and how long it will take

MAX_GOAL, MAX_DRAFT = 40, 60
"""Characters shown of a goal and of a draft."""


class ProgressBar(Listener):
    """Shows progress over all procedures; `steps` is how many steps there are to track, if that is known."""

    def __init__(self, steps: int | None = None, console: Console | None = None) -> None:
        console = console or Console(stderr=True, highlight=False)
        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=20),
            TextColumn("{task.fields[steps]}", markup=False),
            TimeLeft(),
        )
        self._progress = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
        self._total = steps
        self._task = self._progress.add_task("", total=steps, steps="")
        self._goal = ""
        self._before: dict[str, int] = {}
        self._done: dict[str, float] = {}

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    @contextmanager
    def hidden(self) -> Iterator[None]:
        """Make room to print something."""
        self._progress.stop()
        yield
        self._progress.start()

    def on_start(self, procedure: Procedure, done: int = 0) -> None:
        self._goal = (procedure.goal or procedure.id)[:MAX_GOAL]
        self._before[procedure.id] = done
        self._show(self._goal)

    def on_step(self, trace: Trace) -> None:
        self._count(trace.id, len(trace.covered_steps))

    def on_progress(self, procedure: Procedure, steps: float) -> None:
        self._count(procedure.id, steps)

    def on_draft(self, line: str) -> None:
        self._show(f"{self._goal}  {line[:MAX_DRAFT]}")

    def _count(self, name: str, steps: float) -> None:
        self._done[name] = steps - self._before.get(name, 0)
        done = sum(self._done.values())
        total = "" if self._total is None else f"/{self._total}"
        self._progress.update(self._task, completed=done, steps=f"{int(done)}{total} steps")

    def _show(self, text: str) -> None:
        self._progress.update(self._task, description=plain(text).plain)
