"""fluents train local | neural | sweep | base | sample"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from fluents import jsonl
from fluents.cli.output import messages, step_progress
from fluents.cli.train_neural import base, neural, sweep

app = typer.Typer(
    help="Teach models, and draw answers from them for whole datasets. Needs: pip install 'fluents\\[train]'",
    no_args_is_help=True,
)
app.command()(neural)
app.command()(sweep)
app.command()(base)


@app.command()
def local(
    out: Annotated[Path, typer.Option(help="The folder for adapter, dev curve and checkpoints.")],
    data: Annotated[list[str], typer.Option(help="Datasets, such as openpi; several teach both styles.")] = ["openpi"],  # noqa: B006
    epochs: Annotated[int, typer.Option(min=1, help="Times through the data.")] = 3,
    learning_rate: Annotated[float, typer.Option(help="At its highest, after the warm-up.")] = 7e-4,
    batch: Annotated[int, typer.Option(min=1, help="Examples a step.")] = 32,
    rank: Annotated[int, typer.Option(min=1, help="Of the LoRA matrices.")] = 32,
    dropout: Annotated[float, typer.Option(min=0, max=1, help="On the LoRA path.")] = 0.0,
    weight_decay: Annotated[float, typer.Option(min=0, help="Of AdamW.")] = 0.01,
    unknown_count: Annotated[float, typer.Option(min=0, max=1, help="Share of prompts without the count.")] = 0.5,
    one_pass: Annotated[float, typer.Option(min=0, max=1, help="Share of examples with sorted answers.")] = 0.3,
    seed: Annotated[int, typer.Option(help="The same seed draws the same.")] = 1,
    limit: Annotated[int | None, typer.Option(min=1, help="Only so many examples, to try things out.")] = None,
) -> None:
    """Train an adapter for the embedded model on the train split of datasets; on a GPU if there is one.

    A run that was interrupted goes on after its last whole epoch when started again.

    Example: `fluents train local --data openpi --data openpi-c --out runs/both`
    """
    from fluents.data.datasets import load_traces
    from fluents.training.adapter import AdapterSettings, train
    from fluents.training.examples import TrainingExample, examples, style_of
    from fluents.weights import ensure

    settings = AdapterSettings(
        epochs=epochs,
        learning_rate=learning_rate,
        weight_decay=weight_decay,
        batch=batch,
        rank=rank,
        dropout=dropout,
        unknown_count=unknown_count,
        one_pass=one_pass,
        seed=seed,
    )

    def taught(split: str) -> list[TrainingExample]:
        # With one dataset there is one style, and it needs no name.
        found = [
            example
            for name in data
            for example in examples(load_traces(f"{name}:{split}"), style_of(name) if len(data) > 1 else "")
        ]
        return found[:limit]

    with step_progress(f"training {out.name}", 0) as progress:

        def report(event: dict[str, Any]) -> None:
            if "dev_loss" in event:
                messages.print(json.dumps(event), markup=False)
            else:
                total = event["steps"] * epochs
                progress((event["epoch"] - 1) * event["steps"] + event["step"], total)

        adapter = train(ensure(), taught("train"), taught("dev"), out, settings, report)
    messages.print(f"wrote {adapter}", markup=False)


@app.command()
def sample(
    source: Annotated[str, typer.Argument(help="A dataset's split, such as openpi:dev, or a file.")],
    output: Annotated[str, typer.Option("--output", "-o", help="The file for the answers.")],
    adapter: Annotated[str, typer.Option(help="A shipped adapter's name, or a GGUF file.")] = "both",
    style: Annotated[str, typer.Option(help="As the adapter was taught: '', 'Clean ', 'Sorted ' or both.")] = "",
    samples: Annotated[int, typer.Option(min=1, help="Answers for each step.")] = 16,
    temperature: Annotated[float, typer.Option(min=0, help="0 gives the likeliest answer.")] = 0.9,
    seed: Annotated[int, typer.Option(help="The same seed draws the same.")] = 1,
) -> None:
    """Draw the embedded model's answers for a whole dataset at once, with transformers, for `fluents track --replay`.

    Example: `fluents train sample openpi:dev --adapter both --samples 32 -o both.jsonl`
    """
    from fluents.data.file_formats import read_traces
    from fluents.decoding.sampling import Sampling
    from fluents.prompts.local import prompt
    from fluents.training.batch_sampling import sample as draw
    from fluents.weights import ensure
    from fluents.weights.adapters import ADAPTERS, adapter_path

    path = adapter_path(adapter) if adapter in ADAPTERS else Path(adapter)
    prompts = [
        prompt(trace.procedure, step, style=style) for trace in read_traces(source) for step, _, _ in trace.by_step()
    ]
    sampling = Sampling(samples=samples, temperature=temperature)
    with step_progress(f"sampling {source}", len(prompts) * samples) as progress:
        answers = draw(ensure(), path, prompts, sampling, seed, progress)
    with jsonl.atomic_output(output) as stream:
        for text, drawn in zip(prompts, answers, strict=True):
            stream.write(json.dumps({"prompt": text, "answers": drawn}).encode() + b"\n")
    messages.print(f"wrote the answers to {len(prompts)} prompts to {output}", markup=False)


def read_answers(path: str) -> Iterator[tuple[str, list[str]]]:
    """(prompt, answers) of a file that `fluents train sample` wrote."""
    for where, line in jsonl.read_lines(path):
        with jsonl.wrong_shape_is_input_error('not {"prompt": …, "answers": […]}', where):
            value = jsonl.parse_json(line, where)
            pair = str(value["prompt"]), [str(answer) for answer in value["answers"]]
        yield pair
