"""fluents track --tracker llm: how a language model is asked, the tracker that makes, and the rehearsal of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import typer

from fluents.cli.models import ModelChoice, open_model
from fluents.cli.output import messages
from fluents.cli.parse_failures import ParseFailures
from fluents.cli.track_run import Run, SamplingOptions, at_once, one_by_one
from fluents.errors import InputError
from fluents.records import Procedure, Trace
from fluents.text.plurals import counted

if TYPE_CHECKING:
    from fluents.llm import LanguageModel, Question
    from fluents.trackers.llm.tracker import LlmTracker

PANEL = "Questions (--tracker llm)"


def _option(*names: str, **more: Any) -> Any:
    return typer.Option(*names, rich_help_panel=PANEL, **more)


@dataclass(frozen=True)
class LlmChoice:
    """Each field is an option."""

    form: Annotated[
        Literal["schemata", "states", "complete", "whole"],
        _option(
            help="schemata: what changes. states: that, then from what to what. complete: sentences, a question a "
            "step. whole: one question for the procedure."
        ),
    ] = "states"
    pairs: Annotated[
        str | None, _option(help="Ask for the states of this file's or dataset's entities and attributes.")
    ] = None
    shots: Annotated[int, _option(min=0, help="Examples shown with each question.")] = 0
    examples: Annotated[str | None, _option(help="The file or dataset they are drawn from, with the seed.")] = None
    verify: Annotated[bool, _option("--verify", help="Ask again about each pair found; drop what does not change.")] = (
        False
    )
    econd: Annotated[bool, _option("--econd", help="One question for each entity instead of each attribute.")] = False
    memory: Annotated[
        bool, _option("--memory", help="Tell each step the states that earlier ones left; steps follow one another.")
    ] = False
    past: Annotated[bool, _option("--past/--no-past", help="Whether a question tells the earlier steps.")] = True
    temperature: Annotated[float | None, _option(min=0, max=2, help="0, or 0.7 where several samples are drawn.")] = (
        None
    )
    dry_run: Annotated[bool, _option("--dry-run", help="Print what would be asked, and ask nothing.")] = False


@contextmanager
def open_llm(choice: LlmChoice, model: ModelChoice, drawing: SamplingOptions) -> Iterator[Run]:
    """The tracker with its model; what was used, and what was not answered, is told at the end."""
    make = _maker(choice, drawing)  # before the model: what is wrong with the options costs nothing
    tally = Tally()
    with open_model(model) as opened:
        # Where a procedure has one question at a time, procedures are asked about side by side instead.
        if choice.memory or choice.form == "whole":
            run = partial(at_once, make(replace(opened, workers=1)), opened.workers)
        else:
            run = partial(one_by_one, make(opened))
        try:
            yield lambda wanted: tally.counted(run(wanted))
        finally:
            tally.tell(verify=choice.verify)


Maker: TypeAlias = "Callable[[LanguageModel], LlmTracker]"


def _maker(choice: LlmChoice, drawing: SamplingOptions) -> Maker:
    from fluents.data.file_formats import read_traces
    from fluents.trackers.llm.examples import Shots
    from fluents.trackers.llm.settings import LlmSettings
    from fluents.trackers.llm.tracker import GivenPairs, LlmTracker

    if choice.examples and not choice.shots:
        raise InputError("--examples without --shots", fix="--shots 1 shows one of them with each question")
    if choice.pairs and choice.form != "states":
        raise InputError("--pairs gives entities and attributes to --form states", fix="leave one of them out")
    settings = LlmSettings(
        form=choice.form,
        samples=drawing.samples or 1,
        temperature=choice.temperature,
        verify=choice.verify,
        econd=choice.econd,
        memory=choice.memory,
        past=choice.past,
        shots=choice.shots,
        most=drawing.max_changes,
        seed=drawing.seed,
    )
    shots = (
        Shots(read_traces(choice.examples), choice.shots, drawing.seed, choice.examples) if choice.examples else None
    )
    pairs = GivenPairs(read_traces(choice.pairs), choice.pairs) if choice.pairs else None

    def make(model: LanguageModel) -> LlmTracker:
        return LlmTracker(model, settings, shots=shots, pairs=pairs)

    return make


class Tally:
    """Counts what is worth telling at the end of a run."""

    def __init__(self) -> None:
        self._removed = self._unanswered = 0
        self._unread = ParseFailures()

    def counted(self, traces: Iterable[Trace]) -> Iterator[Trace]:
        from fluents.trackers.llm.pipeline import NOT_VERIFIED

        for trace in traces:
            unread = [reject.reason for reject in trace.rejects if reject.reason != NOT_VERIFIED]
            self._unread.add(unread)
            self._removed += len(trace.rejects) - len(unread)
            self._unanswered += len(trace.procedure.steps) - len(trace.covered_steps)
            yield trace

    def tell(self, *, verify: bool) -> None:
        if verify:
            messages.print(
                f"verification removed {counted(self._removed, 'pair')} (see the rejects)", markup=False, soft_wrap=True
            )
        self._unread.tell()
        if self._unanswered:
            messages.print(f"{counted(self._unanswered, 'step')} without an answer", markup=False)


def rehearse(wanted: Iterable[Procedure], choice: LlmChoice, drawing: SamplingOptions, as_json: bool | None) -> None:
    """Print all questions that do not depend on answers, and one of each kind that does for each step; ask nothing."""
    from fluents.llm import LanguageModel
    from fluents.trackers.llm.dry_run import BYTES_PER_TOKEN, STAND_IN, DryRun, about_tokens

    make = _maker(choice, drawing)
    count = tokens = 0
    for procedure in wanted:
        rehearsal = DryRun(procedure)
        make(LanguageModel(rehearsal, "", workers=1)).track(procedure)
        for question in rehearsal.asked:
            count, tokens = count + 1, tokens + about_tokens(question)
            _print_question(procedure, question, about_tokens(question), as_json)
    messages.print(
        f"{counted(count, 'question')}, about {tokens} input tokens ({BYTES_PER_TOKEN} bytes each); nothing was sent",
        markup=False,
        soft_wrap=True,
    )
    if choice.memory or choice.verify or (choice.form == "states" and not choice.pairs):
        messages.print(
            f"questions that follow from answers are shown as if {STAND_IN.attribute} of {STAND_IN.entity} were all "
            "that changes in each step: a model finds more or less",
            markup=False,
            soft_wrap=True,
        )


def _print_question(procedure: Procedure, question: Question, tokens: int, as_json: bool | None) -> None:
    if as_json:
        shown = {"procedure": procedure.id, "name": question.name, "seed": question.seed, "tokens": tokens}
        print(json.dumps(shown | {"system": question.system, "prompt": question.prompt}, ensure_ascii=False))
    else:
        head = f"{procedure.id}: {question.name}, seed {question.seed}, about {tokens} tokens"
        print(f"--- {head} ---\n{question.system}\n\n{question.prompt}\n")
