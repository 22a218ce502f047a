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
            help="Gold traces, which contain the right answers: a dataset split such as fluents:dev, or a file.",
        ),
    ],
    stages: Annotated[
        str | None,
        typer.Option(
            metavar="LIST",
            help="Stages of the project in order, separated by commas, such as author,vet:3. The number after a "
            "colon says how many people answer each question. `fluents annotate new --help` lists all stages.",
        ),
    ] = None,
    design: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="JSON file with the stages and all their settings, to use instead of --stages."
        ),
    ] = None,
    annotators: Annotated[int, typer.Option(min=1, max=1000, help="Number of simulated annotators.")] = 5,
    miss: Annotated[
        float,
        typer.Option(min=0, max=1, help="Share (0 to 1) of the gold changes that an annotator does not write."),
    ] = 0.3,
    invent: Annotated[
        float,
        typer.Option(min=0, max=1, help="Number (0 to 1) of wrong changes that an annotator writes per gold change."),
    ] = 0.05,
    flip: Annotated[
        float,
        typer.Option(
            min=0,
            max=1,
            help="Share (0 to 1) of the questions, such as whether a change is right, that an annotator answers "
            "wrongly.",
        ),
    ] = 0.1,
    table: Annotated[
        bool,
        typer.Option(
            "--table",
            help="Also print a table for each of these stages of the project: author, vet, clean-procedures, "
            "clean-steps and clean-changes. Each table shows the precision and recall for 1 to 7 people per question, "
            "if each person makes errors in 5, 10, 20 or 30 % of the cases.",
        ),
    ] = False,
    limit: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Use only the first N procedures. Default: all.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Random seed.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Simulate a project, to find out how many people it needs. Nothing is stored.

    The simulated annotators know the right answers, but make errors: --miss, --invent and --flip say how often. For
    each stage, the command prints how well the annotators agree. For stages that add or remove changes, steps or
    procedures, it also prints the precision and recall of what is left after the stage.

    Some stages remove wrong procedures, steps or changes. To test these stages, the command first adds wrong ones, in
    the same proportions as in OpenPI: 15 % of the procedures, 7.4 % of the steps and 32 % of the changes. If the
    annotators write the changes themselves (stage author), the command adds no wrong changes.

    Example: `fluents annotate simulate fluents:dev --stages author,vet --annotators 5 --flip 0.2 --table`
    """
    from itertools import islice

    from fluents.annotation import ErrorRates, design_of, read_design
    from fluents.annotation import simulate as simulated
    from fluents.annotation.simulation_view import simulation_view
    from fluents.data.file_formats import read_traces

    if (stages is None) == (design is None):
        raise InputError("exactly one of `stages` and `design` is required", fix="for example: --stages author,vet")
    name = "simulation"
    chosen = design_of(name, stages or "") if design is None else read_design(design, name=name)
    rates = [ErrorRates(miss=miss, invent=invent, flip=flip)] * annotators
    with step_progress("simulating", len(chosen.stages)) as progress:
        found = simulated(chosen, islice(read_traces(gold), limit), rates, seed=seed, table=table, progress=progress)
    if as_json:
        show_json(found.to_dict())
    else:
        show(simulation_view(found))
