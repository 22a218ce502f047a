"""fluents annotate model, and the options of designs"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fluents import jsonl
from fluents.cli.command import AsJson, show_json, step_progress, tell, with_options
from fluents.cli.model_options import PANEL, ModelOptions, open_model, report_parse_failures
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
        help="Stages of the project in order, separated by commas, such as author,vet. A number after a stage "
        "says how many people answer each question: vet:3 asks three people. By default, 1, 2 or 3 people answer, "
        "depending on the stage, as in the OpenPI papers.",
    ),
]
DesignFile = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="JSON file with the stages and all their settings, to use instead of --stages."),
]
Seed = Annotated[
    int | None,
    typer.Option(
        min=0,
        help="Random seed for shuffling and sampling questions. Default: the seed in the --design file if it "
        "has one, otherwise 0.",
    ),
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
        raise InputError("exactly one of `stages` and `design` is required", fix="for example: --stages author,vet")
    given: dict[str, Any] = {} if seed is None else {"seed": seed}
    for field, path in (("guideline", guideline), ("consent", consent)):
        if path is not None:
            with jsonl.open_input(path) as stream:
                given[field] = jsonl.decoded(stream.read(jsonl.MAX_LINE_BYTES), str(path))
    if file is None:
        return design_of(name, stages or "", **given)
    return read_design(file, name=name, **given)


@dataclass(frozen=True)
class AnnotatorModelOptions(ModelOptions):
    """The model that annotates: unlike in other commands, an embedded one too."""

    model: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Model to use: an embedded model (tiny, small or base), or the name of a language model at "
            "--base-url. Default: $FLUENTS_MODEL if set, otherwise base.",
            rich_help_panel=PANEL,
        ),
    ] = None


@with_options
def model(
    link: Annotated[
        str,
        typer.Argument(
            help="Link that `fluents annotate invite` printed. If the model has joined before with --token-file, the "
            "address of the server is enough, such as http://127.0.0.1:8766."
        ),
    ],
    name: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Name under which the model joins the project. Default: the value of --model if given, otherwise "
            '"embedded model".',
        ),
    ] = None,
    agree: Annotated[
        bool, typer.Option("--agree", help="Agree to the terms of the project. Required if the project has terms.")
    ] = False,
    limit: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Stop after N answers. Default: no limit.")
    ] = None,
    token_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="File that stores the model's sign-in token between runs. If FILE exists, the model signs in with "
            "the token in FILE. Otherwise, the model joins with LINK, and the command writes the token to "
            "FILE.",
        ),
    ] = None,
    as_json: AsJson = False,
    *,
    options: AnnotatorModelOptions,
) -> None:
    """Let a model join a project and answer questions like a human annotator.

    The model answers the questions of the current stage until none is left for it. Questions that it fails to answer
    are left to other annotators.

    An embedded model can work in the stages author, audit, correct, entities, attributes, expansions and salience. A
    language model at --base-url can work in all stages. `fluents annotate new --help` explains the stages.

    You can stop with Ctrl-C. To be able to continue later, use --token-file.

    Example: `fluents annotate model "http://127.0.0.1:8766/?join#CODE" --model small --token-file token.txt`

    Example: `fluents annotate model LINK --model NAME --base-url http://127.0.0.1:8080/v1`
    """
    from fluents.annotation.forms import is_blind_first
    from fluents.annotation.model_annotator import NoModelAnswerError

    decided = 0
    with (
        _annotator(options) as annotator,
        _joined(link, name or options.model or "embedded model", token_file) as project,
        report_parse_failures("left to other annotators") as failures,
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
        tell(f"the model answered {counted(decided, 'question')}")


@contextmanager
def _annotator(options: ModelOptions) -> Iterator[ModelAnnotator]:
    from fluents.annotation.model_annotator import open_model_annotator
    from fluents.weights.base_weights import is_embedded

    if options.model is None or is_embedded(options.model):
        if options.base_url is not None and options.model is not None:
            raise InputError(
                f"`base_url` has no effect, because {options.model} is an embedded model",
                fix="leave out `base_url`, or set `model` to the name of a model at this URL",
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
                f"all annotators of this project must agree to its terms:\n\n{terms}\n", fix="if you agree, add --agree"
            )
        project.consent()
    number = me["stage"]["number"] if me["stage"] else None
    items = next((int(stage["items"]) for stage in me["stages"] if stage["number"] == number), 0)
    return items if limit is None else min(items, limit)
