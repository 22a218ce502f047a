"""fluents train neural | sweep"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fluents import jsonl
from fluents.cli.output import messages, step_progress
from fluents.errors import InputError

if TYPE_CHECKING:
    from fluents.records import Trace
    from fluents.report.svg import Point

HUB = {"gpt2": "openai-community/gpt2-medium", "bart": "facebook/bart-large", "t5": "google-t5/t5-base"}
"""The model of an architecture, where none is named."""


def neural(
    out: Annotated[Path, typer.Option(help="The folder for the checkpoint, the curve and the state of the run.")],
    data: Annotated[str, typer.Option(help="A dataset, such as openpi-c, or a file of traces.")] = "openpi-c",
    dev: Annotated[str | None, typer.Option(help="Traces to measure on; a dataset has its own.")] = None,
    system: Annotated[str, typer.Option(help="baseline, concat-states, emem, econd or emem+econd.")] = "baseline",
    style: Annotated[str, typer.Option(help="How a step is asked about: openpi-c, or openpi (no goal).")] = "openpi-c",
    arch: Annotated[str | None, typer.Option(help="gpt2, bart, t5, marian …: what --model must be.")] = None,
    model: Annotated[str | None, typer.Option(help="A folder with a transformers model, or its name.")] = None,
    from_scratch: Annotated[bool, typer.Option("--from-scratch", help="New weights in the model's shape.")] = False,
    download: Annotated[bool, typer.Option("--download", help="Ask the hub for a model by name.")] = False,
    epochs: Annotated[int, typer.Option(min=1, help="Times through the data.")] = 30,
    learning_rate: Annotated[float, typer.Option(min=0, help="At its highest; it falls to nothing.")] = 5e-5,
    warmup: Annotated[float, typer.Option(min=0, max=0.9, help="Share of the run over which it rises.")] = 0.0,
    batch: Annotated[int, typer.Option(min=1, help="Examples an update, over all processes.")] = 8,
    accumulate: Annotated[int, typer.Option(min=1, help="Parts to run a batch in, if it is too large.")] = 1,
    metric: Annotated[
        str, typer.Option(help="What the kept epoch is best in on dev: loss, exact, bleu, rouge; or last.")
    ] = "loss",
    patience: Annotated[int, typer.Option(min=0, help="End after so many epochs without a better one; 0: never.")] = 0,
    precision: Annotated[str, typer.Option(help="bf16, float32, or auto: bf16 where the GPU has it.")] = "auto",
    seed: Annotated[int, typer.Option(help="The same seed draws the same.")] = 1,
    limit: Annotated[int | None, typer.Option(min=1, help="Only so many procedures, to try things out.")] = None,
) -> None:
    """Train one of the papers' systems; on the GPU if there is one, on several by `accelerate launch`.

    A run that was interrupted goes on after its last whole epoch when started again, with the same result.

    Example: `fluents train neural --system emem --model models/bart --out runs/emem`
    """
    from fluents.neural.checkpoint import begin
    from fluents.training.neural import Settings, train

    source = model or (HUB.get(arch or "") if download else None)
    if source is None:
        raise InputError("no model to begin with", fix="--model FOLDER, or --arch bart --download")
    gold, measured = _traces(data, dev, limit)
    settings = Settings(
        epochs=epochs,
        learning_rate=learning_rate,
        warmup=warmup,
        batch=batch,
        accumulate=accumulate,
        metric=metric,
        patience=patience,
        precision=precision,
        seed=seed,
    )
    trained = begin(source, system, _style(style), arch=arch, from_scratch=from_scratch, seed=seed, download=download)
    with step_progress(f"training {out.name}", 0) as progress:

        def report(event: dict[str, Any]) -> None:
            if "train_loss" in event:
                messages.print(json.dumps(event), markup=False, soft_wrap=True)
            else:
                progress((event["epoch"] - 1) * event["steps"] + event["step"], event["steps"] * epochs)

        train(trained, gold, measured, out, settings, report)
    messages.print(f"the checkpoint is in {out}", markup=False)


def sweep(
    checkpoint: Annotated[str, typer.Argument(help="The folder that `fluents train neural` wrote.")],
    source: Annotated[str, typer.Argument(help="Gold traces: a dataset's split, such as openpi-c:dev, or a file.")],
    out: Annotated[Path, typer.Option(help="The folder for the predictions, curve.csv and curve.svg.")],
    length_penalty: Annotated[list[float], typer.Option(help="Of beam search; name several.")] = [0.2, 1.0, 2.0],  # noqa: B006
    beams: Annotated[int, typer.Option(min=2, help="Of beam search.")] = 4,
    first: Annotated[str | None, typer.Option(help="For econd: a checkpoint or traces with the entities.")] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Only so many procedures.")] = None,
) -> None:
    """Predict under several length penalties and draw precision over recall: more penalty, more changes.

    The predictions can be scored by `fluents eval` as any others.

    Example: `fluents train sweep runs/bart openpi-c:dev --out runs/bart-sweep`
    """
    from fluents.cli.track_neural import NeuralChoice, neural_tracker
    from fluents.data.shapes import read_traces
    from fluents.metrics.original import original
    from fluents.report.curve import curve_file

    gold = list(read_traces(source))[:limit]
    tracker = neural_tracker(NeuralChoice(checkpoint=checkpoint, first=first, beams=beams), seed=1)
    tracker.load()
    out.mkdir(parents=True, exist_ok=True)
    found: list[tuple[float, dict[str, dict[str, float]]]] = []
    for penalty in length_penalty:
        decoding = replace(tracker.settings.decoding, length_penalty=penalty)
        tracker.settings = replace(tracker.settings, decoding=decoding)
        with step_progress(f"length penalty {penalty:g}", 0) as progress:
            said = tracker.track_many([trace.procedure for trace in gold], progress)
        jsonl.write(said, out / f"penalty-{penalty:g}.jsonl")
        found.append((penalty, original(gold, said).rows))
    with jsonl.atomic_output(out / "curve.csv") as stream:
        stream.write(_curve_csv(found).encode())
    with jsonl.atomic_output(out / "curve.svg") as stream:
        stream.write(curve_file(f"{Path(checkpoint).name} on {source}, by length penalty", _points(found)).encode())
    messages.print(f"wrote {out}/curve.svg, curve.csv and {len(found)} files of predictions", markup=False)


def _curve_csv(found: list[tuple[float, dict[str, dict[str, float]]]]) -> str:
    lines = ["length_penalty,matcher,precision,recall,f1"]
    for penalty, rows in found:
        for matcher, row in rows.items():
            lines.append(f"{penalty:g},{matcher},{row['precision']:.2f},{row['recall']:.2f},{row['f1']:.2f}")
    return "\n".join(lines) + "\n"


def _points(found: list[tuple[float, dict[str, dict[str, float]]]]) -> list[Point]:
    from fluents.report.svg import Point

    return [
        Point(f"{matcher} {penalty:g}", row["recall"], row["precision"], series)
        for penalty, rows in found
        for series, (matcher, row) in enumerate(rows.items())
    ]


def _style(name: str) -> Any:
    from fluents.errors import UnknownNameError
    from fluents.neural.inputs import STYLES

    if name not in STYLES:
        raise UnknownNameError(f"no style {name!r}", fix=f"one of: {', '.join(STYLES)}")
    return name


def _traces(data: str, dev: str | None, limit: int | None) -> tuple[list[Trace], list[Trace]]:
    """What is learnt, and what is measured on."""
    from fluents.data.datasets import DATASETS
    from fluents.data.shapes import read_traces

    if data in DATASETS and not Path(data).exists():
        data, dev = f"{data}:train", dev or f"{data}:dev"
    measured = list(read_traces(dev))[:limit] if dev else []
    return list(read_traces(data))[:limit], measured
