"""fluents annotate simulate"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fluents.cli.command import AsJson, show, show_json, step_progress
from fluents.errors import InputError


def simulate(
    gold: Annotated[
        str, typer.Argument(metavar="SOURCE", help="Gold traces: a dataset split such as fluents:dev, or a file.")
    ],
    stages: Annotated[
        str | None, typer.Option(metavar="LIST", help="Stages in order, joined by commas, as in `annotate new`.")
    ] = None,
    design: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Read the stages and their settings from a JSON file instead of --stages."),
    ] = None,
    annotators: Annotated[int, typer.Option(min=1, max=1000, help="Number of annotators.")] = 5,
    miss: Annotated[
        float, typer.Option(min=0, max=1, help="Share of the changes that an annotator does not write down.")
    ] = 0.3,
    invent: Annotated[
        float, typer.Option(min=0, max=1, help="Wrong changes that an annotator writes, for each right one.")
    ] = 0.05,
    flip: Annotated[
        float, typer.Option(min=0, max=1, help="Share of the questions that an annotator answers wrongly.")
    ] = 0.1,
    table: Annotated[
        bool, typer.Option("--table", help="Also try each stage with 1 to 7 judges and error rates from 5 % to 30 %.")
    ] = False,
    limit: Annotated[int | None, typer.Option(metavar="N", min=1, help="Use only the first N procedures.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of everything that is random.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Run a project with scripted annotators who know the gold and make errors. Nothing is stored.

    For each stage, prints how far the annotators agree, and precision and recall of what the stage keeps. If a stage
    removes things, wrong ones are first added to the gold: as many as OpenPI-C found in OpenPI.

    Example: `fluents annotate simulate fluents:dev --stages author,vet --annotators 5 --flip 0.2 --table`
    """
    from itertools import islice

    from fluents.annotation import ErrorRates, design_of, read_design
    from fluents.annotation import simulate as simulated
    from fluents.annotation.simulation import simulation_view
    from fluents.data.file_formats import read_traces

    if (stages is None) == (design is None):
        raise InputError("give either `stages` or `design`", fix="for example: --stages author,vet")
    chosen = design_of("simulation", stages or "") if design is None else read_design(design)
    rates = [ErrorRates(miss=miss, invent=invent, flip=flip)] * annotators
    with step_progress("simulating", len(chosen.stages)) as progress:
        found = simulated(chosen, islice(read_traces(gold), limit), rates, seed=seed, table=table, progress=progress)
    if as_json:
        show_json(found.to_dict())
    else:
        show(simulation_view(found))
