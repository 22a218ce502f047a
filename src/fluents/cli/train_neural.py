"""fluents train neural | sweep"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from fluents.cli.command import messages, step_progress, tell, with_options
from fluents.errors import InputError
from fluents.neural.inputs import Style, SystemName
from fluents.text.names import counted
from fluents.training.neural_settings import DevMetric, Precision


def _option(panel: str, *names: str, **more: Any) -> Any:
    return typer.Option(*names, rich_help_panel=panel, **more)


_MODEL = partial(_option, "Model")
_TRAINING = partial(_option, "Training")
_PENALTIES = [0.2, 1.0, 2.0]


@dataclass(frozen=True)
class NeuralModelOptions:
    """What is trained. Each field is an option."""

    system: Annotated[
        SystemName,
        _MODEL(
            help="System to train: baseline, concat-states (with past changes in the input), emem (with an entity "
            "memory), econd (predicts one entity at a time), or emem+econd (both)."
        ),
    ] = "baseline"
    style: Annotated[Style, _MODEL(help="Input format: openpi (steps only) or openpi-c (steps and goal).")] = "openpi-c"
    arch: Annotated[
        str | None,
        _MODEL(
            metavar="NAME",
            help="Architecture of the model, such as bart. With --model: stop if the model has another architecture. "
            "With --download but without --model: download GPT-2 medium (gpt2), BART large (bart) or T5 base (t5).",
        ),
    ] = None
    model: Annotated[
        str | None,
        _MODEL(
            metavar="NAME",
            help="Transformers model to train: a folder or, with --download, a name on the Hugging Face hub.",
        ),
    ] = None
    from_scratch: Annotated[
        bool, _MODEL("--from-scratch", help="Start from random weights, instead of those of the model.")
    ] = False
    download: Annotated[bool, _MODEL("--download", help="Download the model from the Hugging Face hub.")] = False


@dataclass(frozen=True)
class TrainingOptions:
    """How it is trained: the fields of NeuralTrainingSettings, each an option."""

    epochs: Annotated[int, _TRAINING(min=1, help="Number of passes over the data.")] = 30
    learning_rate: Annotated[float, _TRAINING(min=0, help="Peak learning rate.")] = 5e-5
    warmup: Annotated[
        float, _TRAINING(min=0, max=0.9, help="Fraction of the updates in which the learning rate rises to its peak.")
    ] = 0.0
    weight_decay: Annotated[float, _TRAINING(min=0, help="Weight decay of AdamW.")] = 0.0
    lora: Annotated[int, _TRAINING(min=0, help="Rank of the LoRA matrices; 0 trains all weights.")] = 0
    batch: Annotated[int, _TRAINING(min=1, help="Batch size, counted over all processes.")] = 8
    accumulate: Annotated[
        int, _TRAINING(min=1, help="Number of parts in which a batch is computed (gradient accumulation).")
    ] = 1
    metric: Annotated[
        DevMetric,
        _TRAINING(
            help="Keep the epoch that is best on the dev data by this metric: loss, exact, bleu or rouge. Use last to "
            "keep the last epoch instead."
        ),
    ] = "loss"
    patience: Annotated[int, _TRAINING(min=0, help="Stop after N epochs without improvement; 0 never stops early.")] = 0
    save_every: Annotated[int, _TRAINING(min=1, help="Save the state of the run every N epochs.")] = 1
    precision: Annotated[
        Precision, _TRAINING(help="Floating-point precision: bf16, float32, or auto (bf16 if the GPU supports it).")
    ] = "auto"
    seed: Annotated[int, _TRAINING(help="Random seed.")] = 1


@with_options
def neural(
    out: Annotated[
        Path,
        typer.Option(metavar="FOLDER", help="Write the model, the learning curve and the state of the run to FOLDER."),
    ],
    data: Annotated[
        str, typer.Option(metavar="SOURCE", help="Training data: a dataset, such as openpi-c, or a file of traces.")
    ] = "openpi-c",
    dev: Annotated[
        str | None, typer.Option(metavar="SOURCE", help="Traces to validate on. Default: the dev split of --data.")
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Use only the first N procedures.")] = None,
    tensorboard: Annotated[
        bool, typer.Option("--tensorboard", help="Also write the learning curve in the format of TensorBoard.")
    ] = False,
    *,
    model: NeuralModelOptions,
    training: TrainingOptions,
) -> None:
    """Train one of the systems of the papers OpenPI (2020) and OpenPI-C (2023).

    Trains on a GPU if there is one. To use several GPUs, run `accelerate launch -m fluents train neural …`.

    To continue an interrupted run after its last saved epoch, start it again. The result is the same as without the
    interruption.

    Example: `fluents train neural --system emem --model models/bart --out runs/emem`
    """
    if not model.model and not (model.arch and model.download):  # before seconds are spent on loading libraries
        raise InputError(
            "no model to train", fix="give the folder of a transformers model as `model`, or both `arch` and `download`"
        )
    from fluents.training.neural import train_neural
    from fluents.training.neural_settings import NeuralTrainingSettings

    with step_progress(f"training {out.name}", 0) as progress:

        def report(event: dict[str, Any]) -> None:
            if "train_loss" in event:
                tell(json.dumps(event))
            else:
                progress((event["epoch"] - 1) * event["steps"] + event["step"], event["steps"] * training.epochs)

        train_neural(
            out,
            data=data,
            dev=dev,
            limit=limit,
            tensorboard=tensorboard,
            settings=NeuralTrainingSettings(**asdict(training)),
            report=report,
            **asdict(model),
        )
    tell(f"wrote the checkpoint to {out}")


def sweep(
    checkpoint: Annotated[str, typer.Argument(help="Folder of the model: the --out of `fluents train neural`.")],
    source: Annotated[str, typer.Argument(help="Gold traces: a dataset split, such as openpi-c:dev, or a file.")],
    out: Annotated[
        Path,
        typer.Option(metavar="FOLDER", help="Write the predictions and the curve (curve.csv and curve.svg) to FOLDER."),
    ],
    length_penalty: Annotated[
        list[float], typer.Option(help="Length penalty to try. Repeat for several.")
    ] = _PENALTIES,
    beams: Annotated[int, typer.Option(min=2, help="Beam size.")] = 4,
    first: Annotated[
        str | None,
        typer.Option(
            metavar="SOURCE",
            help="For the systems econd and emem+econd: take the entities of each step from this checkpoint, file or "
            "dataset.",
        ),
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Process at most N procedures.")] = None,
) -> None:
    """Track with several length penalties of beam search, and plot the precision and recall of each.

    A higher penalty gives more changes. `fluents eval` can score the predictions.

    Example: `fluents train sweep runs/bart openpi-c:dev --out runs/bart-sweep`
    """
    from fluents.data.file_formats import read_traces
    from fluents.neural.inputs import Decoding
    from fluents.trackers import ProgressBar
    from fluents.trackers.neural import NeuralSettings, open_checkpoint
    from fluents.training import neural_sweep

    gold = list(read_traces(source))[:limit]
    tracker = open_checkpoint(checkpoint, NeuralSettings(Decoding(beams)), first)
    title = f"{Path(checkpoint).name} on {source}, by length penalty"
    with ProgressBar(console=messages) as bar:
        found = neural_sweep.sweep(tracker, gold, out, length_penalty, title=title, listener=bar)
    tell(f"wrote curve.svg, curve.csv and {counted(len(found), 'prediction file')} to {out}")
