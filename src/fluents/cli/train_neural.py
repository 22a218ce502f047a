"""fluents train neural | sweep"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fluents.cli.options import with_options
from fluents.cli.output import messages, step_progress
from fluents.errors import InputError, UnknownNameError

if TYPE_CHECKING:
    from fluents.neural.inputs import Style
    from fluents.records import Trace
    from fluents.training.neural import Report

HUB = {"gpt2": "openai-community/gpt2-medium", "bart": "facebook/bart-large", "t5": "google-t5/t5-base"}
"""The model of an architecture, where none is named."""


def _option(panel: str, *names: str, **more: Any) -> Any:
    return typer.Option(*names, rich_help_panel=panel, **more)


_MODEL = partial(_option, "Model")
_TRAINING = partial(_option, "Training")


@dataclass(frozen=True)
class Start:
    """What is trained. Each field is an option."""

    system: Annotated[str, _MODEL(help="baseline, concat-states, emem, econd or emem+econd.")] = "baseline"
    style: Annotated[str, _MODEL(help="How a step is asked about: openpi-c, or openpi (no goal).")] = "openpi-c"
    arch: Annotated[str | None, _MODEL(help="gpt2, bart, t5, marian …: what --model must be.")] = None
    model: Annotated[str | None, _MODEL(help="A folder with a transformers model, or its name.")] = None
    from_scratch: Annotated[bool, _MODEL("--from-scratch", help="New weights in the model's shape.")] = False
    download: Annotated[bool, _MODEL("--download", help="Ask the hub for a model by name.")] = False


@dataclass(frozen=True)
class TrainingOptions:
    """How it is trained: the fields of the loop's own settings, each an option."""

    epochs: Annotated[int, _TRAINING(min=1, help="Times through the data.")] = 30
    learning_rate: Annotated[float, _TRAINING(min=0, help="At its highest; it falls to nothing.")] = 5e-5
    warmup: Annotated[float, _TRAINING(min=0, max=0.9, help="Share of the run over which it rises.")] = 0.0
    weight_decay: Annotated[float, _TRAINING(min=0, help="Of AdamW.")] = 0.0
    lora: Annotated[int, _TRAINING(min=0, help="Rank of LoRA's matrices; 0: every weight learns.")] = 0
    batch: Annotated[int, _TRAINING(min=1, help="Examples an update, over all processes.")] = 8
    accumulate: Annotated[int, _TRAINING(min=1, help="Parts to run a batch in, if it is too large.")] = 1
    metric: Annotated[
        str, _TRAINING(help="What the kept epoch is best in on dev: loss, exact, bleu, rouge; or last.")
    ] = "loss"
    patience: Annotated[int, _TRAINING(min=0, help="End after so many epochs without a better one; 0: never.")] = 0
    save_every: Annotated[int, _TRAINING(min=1, help="Epochs between states a broken run can go on from.")] = 1
    precision: Annotated[str, _TRAINING(help="bf16, float32, or auto: bf16 where the GPU has it.")] = "auto"
    seed: Annotated[int, _TRAINING(help="The same seed draws the same.")] = 1


@with_options
def neural(
    out: Annotated[Path, typer.Option(help="The folder for the checkpoint, the curve and the state of the run.")],
    data: Annotated[str, typer.Option(help="A dataset, such as openpi-c, or a file of traces.")] = "openpi-c",
    dev: Annotated[str | None, typer.Option(help="Traces to measure on; a dataset has its own.")] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Only so many procedures, to try things out.")] = None,
    tensorboard: Annotated[bool, typer.Option("--tensorboard", help="Write the curve for TensorBoard too.")] = False,
    *,
    start: Start,
    knobs: TrainingOptions,
) -> None:
    """Train one of the papers' systems; on the GPU if there is one, on several by `accelerate launch`.

    A run that was interrupted goes on after its last whole epoch when started again, with the same result.

    Example: `fluents train neural --system emem --model models/bart --out runs/emem`
    """
    source, style = _source(start), _style(start.style)  # before seconds are spent on loading libraries
    from fluents.neural.checkpoint import begin
    from fluents.training.neural import train
    from fluents.training.neural_settings import NeuralTrainingSettings

    trained = begin(
        source,
        start.system,
        style,
        arch=start.arch,
        from_scratch=start.from_scratch,
        seed=knobs.seed,
        download=start.download,
    )
    gold, measured = _traces(data, dev, limit)
    with step_progress(f"training {out.name}", 0) as progress:

        def report(event: dict[str, Any]) -> None:
            if "train_loss" in event:
                messages.print(json.dumps(event), markup=False, soft_wrap=True)
            else:
                progress((event["epoch"] - 1) * event["steps"] + event["step"], event["steps"] * knobs.epochs)

        train(trained, gold, measured, out, NeuralTrainingSettings(**asdict(knobs)), _report(report, out, tensorboard))
    messages.print(f"the checkpoint is in {out}", markup=False)


def _report(report: Report, out: Path, tensorboard: bool) -> Report:
    """What is told of a run, for TensorBoard too if that is asked for."""
    if not tensorboard:
        return report
    from fluents.training.tensorboard import TensorBoardReport

    return TensorBoardReport(out / "tensorboard", report)


def _source(start: Start) -> str:
    """Where the model to train comes from."""
    source = start.model or (HUB.get(start.arch or "") if start.download else None)
    if source is None:
        raise InputError("no model to begin with", fix="--model FOLDER, or --arch bart --download")
    return source


def sweep(
    checkpoint: Annotated[str, typer.Argument(help="Folder that `fluents train neural` wrote.")],
    source: Annotated[str, typer.Argument(help="Gold traces: a split of a dataset, such as openpi-c:dev, or a file.")],
    out: Annotated[Path, typer.Option(help="Folder for the predictions, curve.csv and curve.svg.")],
    length_penalty: Annotated[list[float], typer.Option(help="Length penalty of beam search. Repeat for several.")] = [  # noqa: B006
        0.2,
        1.0,
        2.0,
    ],
    beams: Annotated[int, typer.Option(min=2, help="Beam size.")] = 4,
    first: Annotated[
        str | None, typer.Option(help="Checkpoint, file or dataset that names the entities, for econd systems.")
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Maximum number of procedures.")] = None,
) -> None:
    """Track with several length penalties and plot precision over recall.

    A higher penalty gives more changes. The predictions can be scored by `fluents eval`.

    Example: `fluents train sweep runs/bart openpi-c:dev --out runs/bart-sweep`
    """
    from fluents.data.file_formats import read_traces
    from fluents.neural.decoding_options import Decoding
    from fluents.trackers.neural import NeuralSettings, open_checkpoint
    from fluents.trackers.progress import ProgressBar
    from fluents.training import neural_sweep

    gold = list(read_traces(source))[:limit]
    tracker = open_checkpoint(checkpoint, NeuralSettings(Decoding(beams)), first)
    title = f"{Path(checkpoint).name} on {source}, by length penalty"
    with ProgressBar(console=messages) as bar:
        found = neural_sweep.sweep(tracker, gold, out, length_penalty, title=title, listener=bar)
    messages.print(f"wrote curve.svg, curve.csv and {len(found)} files of predictions to {out}", markup=False)


def _style(name: str) -> Style:
    from fluents.neural.inputs import STYLES

    for style in STYLES:
        if style == name:
            return style
    raise UnknownNameError(f"no style {name!r}", fix=f"one of: {', '.join(STYLES)}")


def _traces(data: str, dev: str | None, limit: int | None) -> tuple[list[Trace], list[Trace]]:
    """What is learnt, and what is measured on."""
    from fluents.data.datasets import DATASETS
    from fluents.data.file_formats import read_traces

    if data in DATASETS and not Path(data).exists():
        data, dev = f"{data}:train", dev or f"{data}:dev"
    measured = list(read_traces(dev))[:limit] if dev else []
    return list(read_traces(data))[:limit], measured
