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
            help="System to train. baseline: a model without additions. concat-states: the input also contains the "
            "changes of earlier steps. emem: an entity memory stores the changes of earlier steps. econd: the model "
            "predicts the changes of one entity at a time. emem+econd: emem and econd combined."
        ),
    ] = "baseline"
    style: Annotated[
        Style,
        _MODEL(
            help="Input of the model. openpi: only the steps, as in OpenPI. openpi-c: the goal and the steps, as "
            "in OpenPI-C."
        ),
    ] = "openpi-c"
    arch: Annotated[
        str | None,
        _MODEL(
            metavar="NAME",
            help="Architecture of the model, such as bart. With --download and without --model, the command "
            "downloads GPT-2 medium (gpt2), BART large (bart) or T5 base (t5). With --model, the command stops if the "
            "model has another architecture.",
        ),
    ] = None
    model: Annotated[
        str | None,
        _MODEL(
            metavar="NAME",
            help="Model to start from, in the format of the transformers library: a folder or, with --download, a name "
            "on the Hugging Face hub. Required unless --arch and --download are given.",
        ),
    ] = None
    from_scratch: Annotated[
        bool, _MODEL("--from-scratch", help="Start from random weights, instead of the weights of the model.")
    ] = False
    download: Annotated[bool, _MODEL("--download", help="Download the model from the Hugging Face hub.")] = False


@dataclass(frozen=True)
class TrainingOptions:
    """How it is trained: the fields of NeuralTrainingSettings, each an option."""

    epochs: Annotated[int, _TRAINING(min=1, help="Number of passes over the data.")] = 30
    learning_rate: Annotated[float, _TRAINING(min=0, help="Peak learning rate.")] = 5e-5
    warmup: Annotated[
        float,
        _TRAINING(
            min=0,
            max=0.9,
            help="Share (0 to 0.9) of the training during which the learning rate rises to its peak.",
        ),
    ] = 0.0
    weight_decay: Annotated[float, _TRAINING(min=0, help="Weight decay of AdamW.")] = 0.0
    lora: Annotated[int, _TRAINING(min=0, help="Train only LoRA matrices of rank N; 0 trains all weights.")] = 0
    batch: Annotated[int, _TRAINING(min=1, help="Batch size, summed over all GPUs.")] = 8
    accumulate: Annotated[
        int, _TRAINING(min=1, help="Compute each batch in N parts, to save memory (gradient accumulation).")
    ] = 1
    metric: Annotated[
        DevMetric,
        _TRAINING(
            help="Which epoch to keep. loss, exact, bleu, rouge: the epoch with the best value of this metric on "
            "the validation data. last: the last epoch."
        ),
    ] = "loss"
    patience: Annotated[
        int, _TRAINING(min=0, help="Stop after N epochs without improvement in --metric; 0 means never.")
    ] = 0
    save_every: Annotated[
        int,
        _TRAINING(
            min=1, help="Save a checkpoint every N epochs. An interrupted run continues from its last checkpoint."
        ),
    ] = 1
    precision: Annotated[
        Precision, _TRAINING(help="Floating-point precision: bf16, float32, or auto (bf16 if the GPU supports it).")
    ] = "auto"
    seed: Annotated[int, _TRAINING(help="Random seed.")] = 1


@with_options
def neural(
    out: Annotated[
        Path,
        typer.Option(metavar="FOLDER", help="Write the model, the learning curve and the checkpoints to FOLDER."),
    ],
    data: Annotated[
        str, typer.Option(metavar="SOURCE", help="Training data: a dataset such as openpi-c, or a file of traces.")
    ] = "openpi-c",
    dev: Annotated[
        str | None,
        typer.Option(
            metavar="SOURCE",
            help="Validation data: a dataset split or a file of traces. Default: the dev split, if --data is a "
            "dataset. Without validation data, the last epoch is kept.",
        ),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option(
            min=1, help="Use only the first N training procedures and the first N validation procedures. Default: all."
        ),
    ] = None,
    tensorboard: Annotated[
        bool,
        typer.Option(
            "--tensorboard",
            help="Also write the learning curve in the format of TensorBoard. Needs the package tensorboard.",
        ),
    ] = False,
    *,
    model: NeuralModelOptions,
    training: TrainingOptions,
) -> None:
    """Train a system from the papers OpenPI (2020) and OpenPI-C (2023), to use with `fluents track-neural`.

    Needs the extra `fluents[train]`. Trains on a GPU if there is one. To use several GPUs, run `accelerate launch -m
    fluents train neural` with the same options.

    To continue an interrupted run, start it again: it skips the epochs that are saved. The result is the same as
    without the interruption.

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
    checkpoint: Annotated[
        str, typer.Argument(help="Folder of the trained model, as given to `fluents train neural --out`.")
    ],
    source: Annotated[str, typer.Argument(help="Gold traces: a dataset split such as openpi-c:dev, or a file.")],
    out: Annotated[
        Path,
        typer.Option(
            metavar="FOLDER",
            help="Write the predictions to FOLDER, and also the precision and recall (curve.csv and curve.svg).",
        ),
    ],
    length_penalty: Annotated[
        list[float], typer.Option(help="Length penalty to try. Repeat for several.")
    ] = _PENALTIES,
    beams: Annotated[int, typer.Option(min=2, help="Number of beams in beam search.")] = 4,
    first: Annotated[
        str | None,
        typer.Option(
            metavar="SOURCE",
            help="Source of the entities of each step: the folder of another trained model, a file of traces, or a "
            "dataset split. Required if the model was trained with --system econd or emem+econd, because "
            "such a model cannot find entities itself.",
        ),
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Use only the first N procedures. Default: all.")] = None,
) -> None:
    """Try several length penalties of beam search, and plot the precision and recall of each.

    A higher length penalty gives more changes, so it raises the recall. Precision and recall are those of `fluents eval
    original`. To score the predictions with other metrics, use `fluents eval`. Needs the extra `fluents[train]`.

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
