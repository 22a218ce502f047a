"""fluents annotate simulate"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fluents.cli.command import AsJson, show, show_json, step_progress
from fluents.errors import InputError


def simulate(
    gold: Annotated[
        str,
        typer.Argument(
            metavar="SOURCE",
            help="Gold traces, which the annotators know: a dataset split such as fluents:dev, or a file.",
        ),
    ],
    stages: Annotated[
        str | None,
        typer.Option(metavar="LIST", help="Stages in their order, separated by commas, as in `fluents annotate new`."),
    ] = None,
    design: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Read the stages and their settings from a JSON file instead of --stages."),
    ] = None,
    annotators: Annotated[int, typer.Option(min=1, max=1000, help="Number of simulated annotators.")] = 5,
    miss: Annotated[
        float, typer.Option(min=0, max=1, help="Share of the true changes that an annotator does not write.")
    ] = 0.3,
    invent: Annotated[
        float, typer.Option(min=0, max=1, help="Number of wrong changes that an annotator writes per true change.")
    ] = 0.05,
    flip: Annotated[
        float, typer.Option(min=0, max=1, help="Share of the questions to which an annotator gives a wrong answer.")
    ] = 0.1,
    table: Annotated[
        bool,
        typer.Option(
            "--table",
            help="Also simulate author, vet and the clean stages with 1 to 7 judges and error rates of 5 to 30 %.",
        ),
    ] = False,
    limit: Annotated[int | None, typer.Option(metavar="N", min=1, help="Use only the first N procedures.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the random numbers.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Simulate a project, to find out how many annotators it needs. Nothing is stored.

    The simulated annotators know the gold and make errors at the rates that you set. For each stage, the command prints
    how well they agree, and the precision and recall of what the stage keeps. Some stages remove wrong procedures,
    steps or changes. To test these, the command first adds wrong ones in the shares found in OpenPI: 15 % of the
    procedures, 7.4 % of the steps and 32 % of the changes. It adds no changes if annotators write them themselves.

    Example: `fluents annotate simulate fluents:dev --stages author,vet --annotators 5 --flip 0.2 --table`
    """
    from itertools import islice

    from fluents.annotation import ErrorRates, design_of, read_design
    from fluents.annotation import simulate as simulated
    from fluents.annotation.simulation import simulation_view
    from fluents.data.file_formats import read_traces

    if (stages is None) == (design is None):
        raise InputError("give either `stages` or `design`, not both", fix="for example: --stages author,vet")
    chosen = design_of("simulation", stages or "") if design is None else read_design(design)
    rates = [ErrorRates(miss=miss, invent=invent, flip=flip)] * annotators
    with step_progress("simulating", len(chosen.stages)) as progress:
        found = simulated(chosen, islice(read_traces(gold), limit), rates, seed=seed, table=table, progress=progress)
    if as_json:
        show_json(found.to_dict())
    else:
        show(simulation_view(found))
