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
        typer.Option(
            help="Form of the training examples: transcript (one example per procedure) or steps (one example per "
            "step)."
        ),
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
        int | None, typer.Option(min=1, help="Rank of the LoRA matrices. Default: depends on --model and --prompt.")
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
            help="With --prompt steps: share (0 to 1) of prompts that do not say how many changes to write. "
            "Default: 0.5.",
        ),
    ] = None
    one_pass: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=1,
            help="With --prompt steps: share (0 to 1) of examples whose changes are in alphabetical order. "
            "Such examples prepare the model for tracking with one answer per step instead of several. "
            "Default: depends on --model.",
        ),
    ] = None
    seed: Annotated[int, typer.Option(help="Random seed.")] = 1


@app.command()
@with_options
def adapter(
    out: Annotated[
        Path,
        typer.Option(
            metavar="FOLDER",
            help="Write the adapter (adapter.gguf), the dev loss of each epoch (train.json) and the checkpoints to "
            "FOLDER.",
        ),
    ],
    data: Annotated[
        list[str],
        typer.Option(
            metavar="SOURCE",
            help="Training data: a dataset such as openpi or fluents, or a file of traces. Repeat for several.",
        ),
    ] = [  # noqa: B006
        "fluents"
    ],
    dev: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SOURCE",
            help="More validation data, besides the dev splits of --data: a dataset split or a file of traces. "
            "Repeat for several.",
        ),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option(
            min=1, help="Use only the first N training examples and the first N validation examples. Default: all."
        ),
    ] = None,
    *,
    options: AdapterOptions,
) -> None:
    """Train an adapter for an embedded model. To use it, run `fluents track --adapter`.

    Needs the extra `fluents[train]`. Trains on a GPU if there is one.

    To continue an interrupted run, start it again: it skips the epochs that are complete.

    Example: `fluents train adapter --data mine.jsonl --out runs/mine`

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
        str,
        typer.Argument(
            help="Adapter to improve: transcript-tiny, transcript-small, transcript-base, or a file adapter.gguf from "
            "`fluents train adapter` or `fluents train refine`. An adapter trained with --prompt steps does not work."
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(
            metavar="FOLDER",
            help="Write the adapter (adapter.gguf), the rewards (train.json) and the checkpoints to FOLDER.",
        ),
    ],
    data: Annotated[
        list[str],
        typer.Option(
            metavar="SOURCE", help="Training data: a dataset such as fluents, or a file of traces. Repeat for several."
        ),
    ] = [  # noqa: B006
        "fluents"
    ],
    judged: Annotated[
        str | None,
        typer.Option(
            metavar="SOURCE",
            help="Also train on procedures with judged changes: a file, or the dataset split fluents:judged. In "
            "each round, 60 % of the procedures are from SOURCE.",
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Model that the adapter was trained for, as a GGUF file. Not needed for the embedded models tiny, "
            "small and base.",
        ),
    ] = None,
    rounds: Annotated[int, typer.Option(min=1, help="Number of rounds of sampling and training.")] = 6,
    procedures: Annotated[
        int, typer.Option(min=1, help="Number of procedures to sample answers for in each round.")
    ] = 128,
    samples: Annotated[int, typer.Option(min=2, help="Number of answers to sample per step.")] = 8,
    learning_rate: Annotated[
        float | None, typer.Option(min=0, help="Peak learning rate. Default: depends on the model.")
    ] = None,
    max_tokens: Annotated[int, typer.Option(min=1, help="Maximum number of tokens per answer.")] = 176,
    seed: Annotated[int, typer.Option(help="Random seed.")] = 1,
) -> None:
    """Improve a trained adapter by reinforcement learning: sample its answers, and reward the good ones.

    Training proceeds in rounds. Each round samples answers for some procedures, and then trains the adapter with the
    rewards of these answers. The reward of an answer is its similarity to the gold. The new adapter is the average of
    the adapters from the second half of the rounds.

    With --judged, some procedures come with changes that were judged beforehand as true, plausible or false. For these
    procedures, an answer is rewarded for changes that are similar to true ones, less for changes that are similar to
    plausible ones, and not for changes that are similar to false ones.

    Needs the extra `fluents[train]`, and a GPU for more than a few procedures.

    To continue an interrupted run, start it again: it skips the rounds that are complete.

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
    source: Annotated[str, typer.Argument(help="Dataset split such as openpi:dev, or a file of traces.")],
    output: Annotated[str, typer.Option("--output", "-o", help="Write the answers to FILE, as JSONL.", metavar="FILE")],
    adapter: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="LoRA adapter for the embedded model: openpi-base or both (see `fluents weights list`), or the "
            "GGUF file of an adapter from `fluents train adapter --prompt steps`. The adapter determines the model.",
        ),
    ] = "openpi-base",
    style: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Style of the answers, if the adapter was trained with several styles. plain: no special style. "
            "clean: like the annotations of OpenPI-C. complete: like those of our corpus. sorted: changes in "
            "alphabetical order, without repetition. 'clean sorted' and 'sorted complete': both at once. "
            "Default: depends on the adapter and --temperature.",
        ),
    ] = None,
    samples: Annotated[int, typer.Option(min=1, help="Number of answers to sample per step.")] = 24,
    temperature: Annotated[
        float, typer.Option(min=0, help="Sampling temperature, from 0 (always the most likely answer) upwards.")
    ] = 0.9,
    seed: Annotated[int, typer.Option(help="Random seed.")] = 1,
) -> None:
    """Sample answers from an embedded model for all steps of a dataset, and store the answers in a file.

    Needs the extra `fluents[train]`. To compute changes from the stored answers, give them to `fluents track --setting
    NAME --replay FILE`. The presets for OpenPI need answers with --style plain, and those for OpenPI-C answers with
    --style clean. For example, after the command below: `fluents track openpi:dev --setting openpi --replay dev.jsonl
    -o changes.jsonl`.

    Example: `fluents train sample openpi:dev --style plain -o dev.jsonl`
    """
    from fluents.data.file_formats import read_traces
    from fluents.trackers.embedded import Sampling
    from fluents.training.batch_sampling import sample_answers

    sampling = Sampling(samples=samples, temperature=temperature)
    with step_progress(f"sampling {source}", 0) as progress:
        answers = sample_answers(read_traces(source), adapter, sampling, style=style, seed=seed, report=progress)
    answers.write(output)
    tell(f"wrote answers for {counted(len(answers.answers), 'prompt')} to {output}")
