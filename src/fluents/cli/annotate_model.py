"""fluents annotate model, and the options of designs"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fluents import jsonl
from fluents.cli.command import AsJson, show_json, step_progress, tell, with_options
from fluents.cli.model_options import ModelOptions, open_model, report_parse_failures
from fluents.errors import InputError
from fluents.text.names import counted

if TYPE_CHECKING:
    from fluents.annotation.design import ProjectDesign
    from fluents.annotation.model_annotator import ModelAnnotator
    from fluents.annotation.remote_project import RemoteProject

StageList = Annotated[
    str | None,
    typer.Option(
        metavar="LIST",
        help="Stages in their order, separated by commas: select, author, audit, vet, clean-procedures, clean-steps, "
        "clean-changes, entities, attributes, expansions, salience, judge, hallucinations, correct. vet:3 asks three "
        "people about each item; without a number, a stage asks as many people as in the papers.",
    ),
]
DesignFile = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Read the stages and their settings from a JSON file instead of --stages."),
]
Seed = Annotated[
    int | None, typer.Option(min=0, help="Seed for shuffling and sampling. Default: the seed in the design, or 0.")
]


def project_design(
    name: str,
    stages: str | None,
    file: Path | None,
    guideline: Path | None = None,
    consent: Path | None = None,
    seed: int | None = None,
) -> ProjectDesign:
    """The design that the options describe."""
    from fluents.annotation.design import design_of, read_design

    if (stages is None) == (file is None):
        raise InputError("give either `stages` or `design`, not both", fix="for example: --stages author,vet")
    given: dict[str, Any] = {} if seed is None else {"seed": seed}
    for field, path in (("guideline", guideline), ("consent", consent)):
        if path is not None:
            with jsonl.open_input(path) as stream:
                given[field] = jsonl.decoded(stream.read(jsonl.MAX_LINE_BYTES), str(path))
    if file is None:
        return design_of(name, stages or "", **given)
    with jsonl.wrong_shape_is_input_error("not a valid design of an annotation project", str(file)):
        return read_design(file).replace(name=name, **given)


@with_options
def model(
    link: Annotated[
        str,
        typer.Argument(
            help="Link that `fluents annotate invite` printed. If the file of --token-file exists, the address of the "
            "server is enough."
        ),
    ],
    name: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Name under which the model joins. Default: the name of the model."),
    ] = None,
    agree: Annotated[
        bool, typer.Option("--agree", help="Agree to the terms of the project. Required if it has any.")
    ] = False,
    limit: Annotated[int | None, typer.Option(metavar="N", min=1, help="Stop after N items.")] = None,
    token_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Store the member's token in FILE. If FILE exists, sign in with its token instead of joining again.",
        ),
    ] = None,
    as_json: AsJson = False,
    *,
    options: ModelOptions,
) -> None:
    """Let a model work as an annotator of a project, until no item of the open stage is left for it.

    Without --base-url, an embedded model (tiny, small or base) writes changes, and offline methods group names, accept
    paraphrases and rate salience. A language model at --base-url can work in all stages. If an answer cannot be
    parsed, the item is left to other annotators. You can stop with Ctrl-C and continue later.

    Example: `fluents annotate model "http://127.0.0.1:8766/?join#CODE" --model small`

    Example: `fluents annotate model LINK --model NAME --base-url http://127.0.0.1:8080/v1`
    """
    from fluents.annotation.forms import is_blind_first
    from fluents.annotation.model_annotator import NoModelAnswerError

    decided = 0
    with (
        _annotator(options) as annotator,
        _joined(link, name or options.model or "embedded model", token_file) as project,
        report_parse_failures("these items are left to other annotators") as failures,
    ):
        total = _begin(project, agree, limit)
        left_out: list[str] = []
        with step_progress("annotating", total) as progress:
            while limit is None or decided < limit:
                item = project.next(left_out)
                if item is None:
                    break
                if item.id in left_out:  # only items that it cannot answer are left
                    project.release(item)
                    break
                began = time.monotonic()
                try:
                    with project.holding(item):
                        if is_blind_first(item) and "blind" not in item.payload:
                            item = project.write_blind_pass(item, annotator.blind_pass(item))
                        answer = annotator.answer(item)
                except NoModelAnswerError as error:
                    failures.append(error.what)
                    left_out.append(item.id)
                    project.release(item)
                    continue
                project.decide(item, answer, round(time.monotonic() - began, 3))
                decided += 1
                progress(decided, total)
    if as_json:
        show_json({"decided": decided, "left_out": len(failures)})
    else:
        tell(f"decided {counted(decided, 'item')}")


@contextmanager
def _annotator(options: ModelOptions) -> Iterator[ModelAnnotator]:
    from fluents.annotation.model_annotator import open_model_annotator
    from fluents.weights.base_weights import is_embedded

    if options.model is None or is_embedded(options.model):
        if options.base_url is not None and options.model is not None:
            raise InputError(
                f"`base_url` has no effect, because {options.model} is an embedded model",
                fix="set `model` to the name of a model at the endpoint",
            )
        with open_model_annotator(model=options.model) as annotator:
            yield annotator
    else:
        with open_model(options) as opened, open_model_annotator(opened) as annotator:
            yield annotator


@contextmanager
def _joined(link: str, name: str, token_file: Path | None) -> Iterator[RemoteProject]:
    from fluents.annotation.remote_project import RemoteProject

    if token_file is not None and token_file.exists():
        with jsonl.open_input(token_file) as stream:
            token = stream.read(1000).decode("ascii", "replace").strip()
        with RemoteProject(link, token) as project:
            yield project
        return
    with RemoteProject.join(link, name) as project:
        if token_file is not None:
            with open(token_file, "w", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
                file.write(project.token + "\n")
        yield project


def _begin(project: RemoteProject, agree: bool, limit: int | None) -> int:
    """How many items there are at most to decide; terms that nobody agreed to are an error."""
    me = project.me()
    if not me["consented"]:
        if not agree:
            terms = str(me["consent"])[:5000]
            raise InputError(
                f"annotators of this project must agree to these terms:\n\n{terms}\n", fix="if you agree, add --agree"
            )
        project.consent()
    number = me["stage"]["number"] if me["stage"] else None
    items = next((int(stage["items"]) for stage in me["stages"] if stage["number"] == number), 0)
    return items if limit is None else min(items, limit)
