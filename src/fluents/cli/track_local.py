"""fluents track --tracker local: the embedded model's options, and the tracker they make."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fluents.cli.output import download_progress, step_progress
from fluents.cli.track_run import SamplingOptions
from fluents.errors import InputError, UnknownNameError
from fluents.records import Procedure, Trace

if TYPE_CHECKING:
    from fluents.trackers.local import LocalTracker

PANEL = "Embedded model (--tracker local)"


def _option(*names: str, **more: Any) -> Any:
    return typer.Option(*names, rich_help_panel=PANEL, **more)


@dataclass(frozen=True)
class LocalChoice:
    """Each field is an option."""

    fast: Annotated[bool, _option("--fast", help="One pass: a second or two a step instead of several.")] = False
    setting: Annotated[
        str, _option(help="default or fast; for metrics: openpi, openpi-c, openpi-clusters, openpi-c-clusters.")
    ] = "default"
    replay: Annotated[
        list[str] | None,
        _option(help="Answers drawn by `fluents train sample`, one file for each adapter of the setting."),
    ] = None

    @property
    def named(self) -> str:
        """The setting's name."""
        if not self.fast:
            return self.setting
        if self.setting not in ("default", "fast"):
            raise InputError("--fast is a setting itself", fix=f"--fast, or --setting {self.setting}")
        return "fast"


def local_tracker(choice: LocalChoice, drawing: SamplingOptions) -> LocalTracker:
    """The embedded tracker in a named setting, with what the command line changes of it."""
    from fluents.trackers.llama_engine import Replay
    from fluents.trackers.local import SETTINGS, LocalTracker
    from fluents.weights import DEFAULT, ensure
    from fluents.weights.base_weights import find, is_here

    setting, replay = choice.named, choice.replay or []
    if setting not in SETTINGS:
        raise UnknownNameError(f"no setting {setting!r}", fix=f"one of: {', '.join(SETTINGS)}")
    chosen = replace(SETTINGS[setting], seed=drawing.seed)
    if drawing.samples is not None:
        if drawing.samples > 1 and chosen.sampling.temperature == 0:
            raise InputError(
                f"the setting {setting} takes the likeliest answer, which is always the same",
                fix="leave out --fast, or --samples",
            )
        chosen = replace(chosen, sampling=replace(chosen.sampling, samples=drawing.samples))
    if drawing.max_changes is not None:
        chosen = replace(chosen, consensus=replace(chosen.consensus, most=drawing.max_changes))
    if replay:
        if len(replay) != len(chosen.voters):
            raise InputError(
                f"{len(replay)} files of answers, but the setting {setting} has {len(chosen.voters)} adapters"
            )
        return LocalTracker(chosen, [Replay.read(file) for file in replay])
    if not is_here(find(DEFAULT)):
        with download_progress("fetching the model's weights (98 MB, once)") as progress:
            ensure(DEFAULT, progress)
    return LocalTracker(chosen)


def drafting(tracker: LocalTracker, wanted: Iterable[Procedure]) -> Iterator[Trace]:
    """Procedures one by one; beside the progress stands what the model has just drafted, long before it has agreed."""
    for procedure in wanted:
        with step_progress(procedure.goal or procedure.id, len(procedure.steps)) as on_step:
            tracker.on_draft = on_step.say
            trace = tracker.track(procedure, on_step)
        yield trace
