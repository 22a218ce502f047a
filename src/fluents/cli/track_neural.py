"""fluents track --tracker neural: a checkpoint of `fluents train neural`, and how its answers are drawn."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fluents.cli.output import step_progress
from fluents.cli.track_run import Run, SamplingOptions
from fluents.errors import InputError
from fluents.records import Procedure, Trace

if TYPE_CHECKING:
    from fluents.trackers.neural import NeuralSettings, NeuralTracker

PANEL = "Trained checkpoint (--tracker neural)"


def _option(*names: str, **more: Any) -> Any:
    return typer.Option(*names, rich_help_panel=PANEL, **more)


@dataclass(frozen=True)
class NeuralChoice:
    """Each field is an option."""

    checkpoint: Annotated[str | None, _option(help="The folder that `fluents train neural` wrote.")] = None
    first: Annotated[
        str | None,
        _option(help="For econd: where the entities come from. A checkpoint, or traces: a file or a dataset."),
    ] = None
    beams: Annotated[int, _option(min=1, help="Of beam search; 1 is greedy.")] = 4
    length_penalty: Annotated[float, _option(help="Of beam search: a higher one gives more changes.")] = 1.0
    top_k: Annotated[int | None, _option(min=1, help="Sample among so many likeliest tokens.")] = None
    top_p: Annotated[float | None, _option(min=0, max=1, help="Sample among the likeliest tokens of this mass.")] = None
    rows: Annotated[int, _option(min=1, help="Questions answered together: fewer need less memory.")] = 64


def open_neural(choice: NeuralChoice, drawing: SamplingOptions) -> Run:
    """The tracker the options make, with many procedures at once."""
    if drawing.samples is not None or drawing.max_changes is not None:
        raise InputError("--samples and --max-changes are no options of the tracker neural", fix="leave them out")
    from fluents.neural.predict import nobody_named_them
    from fluents.trackers.neural import NeuralTracker

    tracker = neural_tracker(choice, drawing.seed)
    # What is wrong with a checkpoint must not cost a file that --output would write over.
    if tracker.load().system.entity and tracker.first is None:
        raise nobody_named_them()
    if isinstance(tracker.first, NeuralTracker):
        tracker.first.load()
    return partial(_together, tracker)


def neural_tracker(choice: NeuralChoice, seed: int) -> NeuralTracker:
    """The tracker the options make."""
    from fluents.neural.decoding_options import Decoding
    from fluents.trackers.neural import NeuralSettings, NeuralTracker

    decoding = Decoding(choice.beams, choice.top_k, choice.top_p, choice.length_penalty)
    settings = NeuralSettings(decoding, choice.rows, seed)
    return NeuralTracker(choice.checkpoint, settings, _first(choice.first, settings))


def _first(source: str | None, settings: NeuralSettings) -> Any:
    """The first stage: a checkpoint's folder, else traces by id."""
    from fluents.data.file_formats import read_traces
    from fluents.neural.inputs import CARD
    from fluents.trackers.neural import NeuralTracker

    if source is None:
        return None
    if (Path(source) / CARD).is_file():
        return NeuralTracker(source, settings)
    return {trace.id: trace for trace in read_traces(source)}


def _together(tracker: NeuralTracker, wanted: Iterable[Procedure]) -> Iterator[Trace]:
    """Procedures in batches: what has been read is answered before more is read."""
    left = iter(wanted)
    while part := list(islice(left, tracker.at_once)):
        steps = sum(len(procedure.steps) for procedure in part)
        with step_progress(f"{len(part)} procedures", steps) as on_step:
            traces = tracker.track_many(part, on_step)
        yield from traces
