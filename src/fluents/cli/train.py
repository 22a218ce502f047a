"""fluents train adapter | refine | neural | sweep | sample"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from fluents.cli.command import step_progress, tell, with_options
from fluents.cli.train_neural import neural, sweep
from fluents.errors import UnknownNameError
from fluents.text.names import counted
from fluents.training.examples import PromptForm

app = typer.Typer(
    help="Train models, and sample their answers for whole datasets. Needs the extra `fluents[train]`.",
    no_args_is_help=True,
)
app.command()(neural)
app.command()(sweep)


def _renamed(old: str, new: str) -> None:
    """Make the command `old` an error that names the command `new`."""

    def refuse() -> None:
        raise UnknownNameError(f"`fluents train {old}` was renamed to `{new}`", fix=f"see {new} --help")

    anything = {"ignore_unknown_options": True, "allow_extra_args": True, "help_option_names": []}
    app.command(old, hidden=True, context_settings=anything)(refuse)


_renamed("local", "fluents train adapter")
_renamed("base", "fluents weights export")


@dataclass(frozen=True)
class AdapterOptions:
    """How an adapter is trained. Each field is an option and a parameter of `train_adapter`."""

    model: Annotated[
        str,
        typer.Option(metavar="NAME", help="Embedded model to train the adapter for: tiny, small, base or a GGUF file."),
    ] = "tiny"
    prompt: Annotated[
        PromptForm,
        typer.Option(help="Form of the training examples: transcript (one per procedure) or steps (one per step)."),
    ] = "transcript"
    epochs: Annotated[
        int | None,
        typer.Option(min=1, help="Number of passes over the data. Default: depends on --model and --prompt."),
    ] = None
    learning_rate: Annotated[
        float | None, typer.Option(min=0, help="Peak learning rate. Default: depends on --model and --prompt.")
    ] = None
    batch: Annotated[int | None, typer.Option(min=1, help="Batch size. Default: 8, or 32 with --prompt steps.")] = None
    rank: Annotated[
        int | None, typer.Option(min=1, help="Rank of the LoRA matrices. Default: 16, or 32 with --prompt steps.")
    ] = None
    dropout: Annotated[
        float | None, typer.Option(min=0, max=1, help="Dropout rate of the LoRA layers. Default: 0.")
    ] = None
    weight_decay: Annotated[float | None, typer.Option(min=0, help="Weight decay of AdamW. Default: 0.01.")] = None
    unknown_count: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=1,
            help="With --prompt steps: fraction of prompts that do not say how many changes to write. Default: 0.5.",
        ),
    ] = None
    one_pass: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=1,
            help="With --prompt steps: fraction of examples with sorted changes, to train for a single answer per "
            "step. Default: 0.3.",
        ),
    ] = None
    seed: Annotated[int, typer.Option(help="Random seed.")] = 1


@app.command()
@with_options
def adapter(
    out: Annotated[
        Path,
        typer.Option(
            metavar="FOLDER", help="Write the adapter, the dev loss of each epoch and the checkpoints to FOLDER."
        ),
    ],
    data: Annotated[
        list[str],
        typer.Option(
            metavar="SOURCE", help="Training data: a dataset, such as openpi, or a file of traces. Repeat for several."
        ),
    ] = [  # noqa: B006
        "fluents"
    ],
    dev: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SOURCE",
            help="More traces to validate on, besides the dev splits of the datasets in --data. Repeat for several.",
        ),
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Use only the first N examples.")] = None,
    *,
    options: AdapterOptions,
) -> None:
    """Train an adapter for an embedded model. `fluents track --adapter FILE` uses it.

    Trains on a GPU if there is one. To continue an interrupted run after its last complete epoch, start it again.

    Example: `fluents train adapter --model small --data fluents --data mine.jsonl --out runs/mine`
    """
    from fluents.training.adapter import train_adapter

    with step_progress(f"training {out.name}", 0) as progress:

        def report(event: dict[str, Any]) -> None:
            if "dev_loss" in event:
                tell(json.dumps(event))
            else:
                progress((event["epoch"] - 1) * event["steps"] + event["step"], event["steps"] * event["epochs"])

        path = train_adapter(data, out, dev=dev or (), limit=limit, report=report, **asdict(options))
    tell(f"wrote {path}")


@app.command()
def refine(
    adapter: Annotated[
        str, typer.Argument(help="Adapter to improve: a name from `fluents weights list`, or a GGUF file.")
    ],
    out: Annotated[
        Path, typer.Option(metavar="FOLDER", help="Write the adapter, the rewards and the checkpoints to FOLDER.")
    ],
    data: Annotated[
        list[str],
        typer.Option(
            metavar="SOURCE", help="Training data: a dataset, such as fluents, or a file of traces. Repeat for several."
        ),
    ] = [  # noqa: B006
        "fluents"
    ],
    judged: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Also train on the judged procedures in FILE or in fluents:judged. They are 60 % of each round.",
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="GGUF file of the model that the adapter was trained for. Not needed for tiny, small and base.",
        ),
    ] = None,
    rounds: Annotated[int, typer.Option(min=1, help="Number of rounds of sampling and training.")] = 6,
    procedures: Annotated[int, typer.Option(min=1, help="Number of procedures per round.")] = 128,
    samples: Annotated[int, typer.Option(min=2, help="Number of answers to sample per step.")] = 8,
    learning_rate: Annotated[
        float | None, typer.Option(min=0, help="Peak learning rate. Default: depends on the model.")
    ] = None,
    max_tokens: Annotated[int, typer.Option(min=1, help="Maximum number of tokens per answer.")] = 176,
    seed: Annotated[int, typer.Option(help="Random seed.")] = 1,
) -> None:
    """Improve a trained adapter by reinforcement learning: sample its answers, and reward the good ones.

    The reward of an answer is its similarity to the annotation (soft F1). For procedures from --judged, whose changes
    were judged true, plausible or false, the reward depends on these judgements instead. The weights of the new
    adapter are averaged over the second half of the rounds.

    Needs a GPU for more than a few procedures. To continue an interrupted run after its last complete round, start it
    again.

    Example: `fluents train refine runs/mine/adapter.gguf --data fluents --rounds 6 --out runs/better`
    """
    from fluents.training.refinement import refine_adapter

    with step_progress(f"refining {out.name}", 0) as progress:

        def report(event: dict[str, Any]) -> None:
            if "reward" in event:
                tell(json.dumps(event))
            else:
                progress(int(100 * (event["round"] - 1 + event["share"])), 100 * event["rounds"])

        path = refine_adapter(
            adapter,
            data,
            out,
            judged=judged,
            model=model,
            rounds=rounds,
            procedures=procedures,
            samples=samples,
            learning_rate=learning_rate,
            max_tokens=max_tokens,
            seed=seed,
            report=report,
        )
    tell(f"wrote {path}")


@app.command()
def sample(
    source: Annotated[str, typer.Argument(help="Dataset split, such as openpi:dev, or a file of traces.")],
    output: Annotated[str, typer.Option("--output", "-o", help="Write the answers to FILE.", metavar="FILE")],
    adapter: Annotated[
        str, typer.Option(metavar="NAME", help="Adapter: a name from `fluents weights list`, or a GGUF file.")
    ] = "both",
    style: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Answer style, if the adapter was trained on several: plain, clean, sorted or 'clean sorted'. "
            "Default: depends on the adapter and --temperature.",
        ),
    ] = None,
    samples: Annotated[int, typer.Option(min=1, help="Number of answers to sample per step.")] = 16,
    temperature: Annotated[float, typer.Option(min=0, help="Sampling temperature; 0 is greedy decoding.")] = 0.9,
    seed: Annotated[int, typer.Option(help="Random seed.")] = 1,
) -> None:
    """Sample answers of the embedded model for all steps of a dataset, and store them in a file.

    Example: `fluents train sample openpi:dev --adapter both --samples 32 -o both.jsonl`
    """
    from fluents.data.file_formats import read_traces
    from fluents.trackers.embedded import Sampling
    from fluents.training.batch_sampling import sample_answers

    sampling = Sampling(samples=samples, temperature=temperature)
    with step_progress(f"sampling {source}", 0) as progress:
        answers = sample_answers(read_traces(source), adapter, sampling, style=style, seed=seed, report=progress)
    answers.write(output)
    tell(f"wrote answers for {counted(len(answers.answers), 'prompt')} to {output}")
