"""fluents track-neural"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from fluents.cli.command import Salient, with_options
from fluents.cli.track import InputOptions, TraceOptions, track_all


@dataclass(frozen=True)
class DecodingOptions:
    """How a checkpoint answers. Each field is an option."""

    first: Annotated[
        str | None,
        typer.Option(
            metavar="SOURCE",
            help="Source of the entities of each step: the folder of another trained model, a file of traces, or a "
            "dataset split. Required if the model was trained with --system econd or emem+econd, because "
            "such a model cannot find entities itself.",
        ),
    ] = None
    beams: Annotated[int, typer.Option(min=1, help="Number of beams in beam search; 1 means greedy decoding.")] = 4
    length_penalty: Annotated[
        float, typer.Option(help="Length penalty of beam search. A higher value gives more changes.")
    ] = 1.0
    top_k: Annotated[
        int | None,
        typer.Option(metavar="K", min=1, help="Sample from the K most likely tokens, instead of using beam search."),
    ] = None
    top_p: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=1,
            help="Sample from the most likely tokens whose probabilities add up to X, instead of using beam search.",
        ),
    ] = None
    rows: Annotated[
        int,
        typer.Option(
            min=1, help="Number of inputs that the model processes at the same time. Lower it to save memory."
        ),
    ] = 64
    seed: Annotated[int, typer.Option(help="Random seed.")] = 1


@with_options
def track_neural(
    inputs: InputOptions,
    checkpoint: Annotated[
        str,
        typer.Option(metavar="FOLDER", help="Folder of the trained model, as given to `fluents train neural --out`."),
    ],
    *,
    decoding: DecodingOptions,
    salient: Salient,
    to: TraceOptions,
) -> None:
    """Track what changes at every step, with a model from `fluents train neural`.

    Needs the extra `fluents[train]`.

    Example: `fluents track-neural soup.md --checkpoint runs/emem`

    Example: `fluents track-neural openpi-c:dev --checkpoint runs/emem -o emem.jsonl`
    """
    from fluents.neural.inputs import Decoding
    from fluents.trackers.neural import NeuralSettings, open_checkpoint

    drawn = Decoding(decoding.beams, decoding.top_k, decoding.top_p, decoding.length_penalty)
    wanted, skipped = inputs.read(to.output, to.html)
    tracker = open_checkpoint(checkpoint, NeuralSettings(drawn, decoding.rows, decoding.seed), decoding.first)
    tracker.load()  # what is wrong with a checkpoint is told before the work
    track_all(tracker, wanted, skipped, salient, to)
