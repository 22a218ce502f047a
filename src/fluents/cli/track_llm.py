"""fluents track-llm"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import typer

from fluents.cli.model_options import ModelOptions, open_model
from fluents.cli.options import with_options
from fluents.cli.output import messages
from fluents.cli.parse_failures import ParseFailures
from fluents.cli.salience_options import Salient
from fluents.cli.track import InputOptions, SamplingOptions, TraceOptions, track_all
from fluents.errors import InputError
from fluents.records import Procedure, Trace
from fluents.text.plurals import counted

if TYPE_CHECKING:
    from fluents.llm import LanguageModel, Question
    from fluents.trackers.llm.tracker import LlmTracker


def _option(*names: str, **more: Any) -> Any:
    return typer.Option(*names, rich_help_panel="Questions", **more)


@dataclass(frozen=True)
class LlmOptions:
    """How a language model is asked. Each field is an option."""

    form: Annotated[
        Literal["schemata", "states", "complete", "whole"],
        _option(
            help="What to ask. schemata: entities and attributes. states: these, then their states. complete: "
            "sentences, one question per step. whole: one question per procedure."
        ),
    ] = "states"
    pairs: Annotated[
        str | None,
        _option(metavar="FILE", help="Ask for the states of the entities and attributes in this file or dataset."),
    ] = None
    shots: Annotated[int, _option(min=0, help="Number of examples in each prompt.")] = 0
    examples: Annotated[str | None, _option(metavar="FILE", help="File or dataset to draw examples from.")] = None
    verify: Annotated[
        bool, _option("--verify", help="Ask again about each change, and drop those that are not confirmed.")
    ] = False
    econd: Annotated[bool, _option("--econd", help="Ask one question per entity instead of per attribute.")] = False
    memory: Annotated[bool, _option("--memory", help="Include the states that earlier steps left in the prompt.")] = (
        False
    )
    past: Annotated[bool, _option("--past/--no-past", help="Include the earlier steps in the prompt.")] = True
    temperature: Annotated[
        float | None, _option(min=0, max=2, help="Sampling temperature. Default: 0, or 0.7 with several samples.")
    ] = None
    dry_run: Annotated[bool, _option("--dry-run", help="Print the prompts without asking.")] = False


@with_options
def track_llm(
    inputs: InputOptions,
    *,
    llm: LlmOptions,
    model: ModelOptions,
    sampling: SamplingOptions,
    salient: Salient,
    to: TraceOptions,
) -> None:
    """Track with a language model behind any OpenAI-compatible endpoint, with all options.

    `fluents track --model NAME --base-url URL` is the same with the defaults.

    Example: `fluents track-llm soup.md --model NAME --base-url http://127.0.0.1:8080/v1 --form whole`
    """
    if llm.dry_run:
        wanted, _ = inputs.read(to.output, to.html)
        dry_run(wanted, llm, sampling, to.as_json)
    else:
        track_with_llm(llm, model, sampling, inputs, salient, to)


def track_with_llm(
    llm: LlmOptions,
    model: ModelOptions,
    sampling: SamplingOptions,
    inputs: InputOptions,
    salient: Salient,
    to: TraceOptions,
) -> None:
    """Track, and report at the end what was not answered and what was used."""
    make = _maker(llm, sampling)  # before the model: what is wrong with the options costs nothing
    wanted, skipped = inputs.read(to.output, to.html)
    tally = Tally()
    with open_model(model) as opened:
        try:
            track_all(make(opened), wanted, skipped, salient, to, tally.add)
        finally:
            tally.tell(verify=llm.verify)


Maker: TypeAlias = "Callable[[LanguageModel], LlmTracker]"


def _maker(llm: LlmOptions, sampling: SamplingOptions) -> Maker:
    from fluents.data.file_formats import read_traces
    from fluents.trackers.llm.examples import Shots
    from fluents.trackers.llm.settings import LlmSettings
    from fluents.trackers.llm.tracker import GivenPairs, LlmTracker

    if llm.examples and not llm.shots:
        raise InputError("`examples` without `shots`", fix="say how many `shots` to show")
    if llm.pairs and llm.form != "states":
        raise InputError("`pairs` are asked for their states", fix="leave out `pairs`, or use the form states")
    settings = LlmSettings(
        form=llm.form,
        samples=sampling.samples or 1,
        temperature=llm.temperature,
        verify=llm.verify,
        econd=llm.econd,
        memory=llm.memory,
        past=llm.past,
        shots=llm.shots,
        most=sampling.max_changes,
        seed=sampling.seed,
    )
    shots = Shots(read_traces(llm.examples), llm.shots, sampling.seed, llm.examples) if llm.examples else None
    pairs = GivenPairs(read_traces(llm.pairs), llm.pairs) if llm.pairs else None

    def make(model: LanguageModel) -> LlmTracker:
        return LlmTracker(model, settings, shots=shots, pairs=pairs)

    return make


class Tally:
    """Counts what is reported at the end of a run."""

    def __init__(self) -> None:
        self._removed = 0
        self._unread = ParseFailures()

    def add(self, trace: Trace) -> None:
        from fluents.trackers.llm.pipeline import NOT_VERIFIED

        unread = [reject.reason for reject in trace.rejects if reject.reason != NOT_VERIFIED]
        self._unread.add(unread)
        self._removed += len(trace.rejects) - len(unread)

    def tell(self, *, verify: bool) -> None:
        if verify:
            text = f"verification removed {counted(self._removed, 'pair')} (see the rejects)"
            messages.print(text, markup=False, soft_wrap=True)
        self._unread.tell()


def dry_run(wanted: Sequence[Procedure], llm: LlmOptions, sampling: SamplingOptions, as_json: bool | None) -> None:
    """Print all questions that do not depend on answers, and one of each kind that does for each step; ask nothing."""
    from fluents.llm import LanguageModel
    from fluents.trackers.llm.dry_run import BYTES_PER_TOKEN, STAND_IN, DryRun, about_tokens

    make = _maker(llm, sampling)
    count = tokens = 0
    for procedure in wanted:
        rehearsal = DryRun(procedure)
        make(LanguageModel(rehearsal, "", workers=1)).track(procedure)
        for question in rehearsal.asked:
            count, tokens = count + 1, tokens + about_tokens(question)
            _print_question(procedure, question, about_tokens(question), as_json)
    text = f"{counted(count, 'question')}, about {tokens} input tokens ({BYTES_PER_TOKEN} bytes each); nothing was sent"
    messages.print(text, markup=False, soft_wrap=True)
    if llm.memory or llm.verify or (llm.form == "states" and not llm.pairs):
        messages.print(
            f"questions that depend on answers are shown as if {STAND_IN.attribute} of {STAND_IN.entity} were the only "
            "change in each step: a real model finds more or fewer",
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
