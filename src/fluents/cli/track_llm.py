"""fluents track-llm"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from fluents.cli.command import Salient, report_skipped, tell, with_options
from fluents.cli.model_options import ModelOptions, open_model, report_parse_failures
from fluents.cli.track import InputOptions, SamplingOptions, TraceOptions, track_all
from fluents.records import Procedure, Trace
from fluents.text.names import counted

if TYPE_CHECKING:
    from fluents.llm import LanguageModel, Question
    from fluents.trackers.llm.tracker import LlmTracker


def _option(*names: str, **more: Any) -> Any:
    return typer.Option(*names, rich_help_panel="Prompts", **more)


@dataclass(frozen=True)
class LlmOptions:
    """How a language model is asked. Each field is an option."""

    form: Annotated[
        Literal["schemata", "states", "complete", "whole"],
        _option(
            help="What the prompts ask for. schemata: the entities and attributes that change in a step, without "
            "their states. states: first the entities and attributes, then the states of each attribute in a separate "
            "prompt. "
            "complete: all changes of a step, as sentences. whole: all changes of all steps, in a single prompt."
        ),
    ] = "states"
    pairs: Annotated[
        str | None,
        _option(
            metavar="SOURCE",
            help="With --form states: take the entities and attributes from SOURCE (a file of traces or a dataset "
            "split), and ask the model only for their states.",
        ),
    ] = None
    shots: Annotated[int, _option(min=0, help="Number of few-shot examples in each prompt; requires --examples.")] = 0
    examples: Annotated[
        str | None,
        _option(
            metavar="SOURCE",
            help="Take the few-shot examples from SOURCE: a file of traces, or a dataset split such as "
            "openpi:train. Requires --shots.",
        ),
    ] = None
    verify: Annotated[
        bool,
        _option(
            "--verify",
            help="For each change, ask the model again whether the attribute changes. If the answer is no, drop "
            "the change.",
        ),
    ] = False
    econd: Annotated[
        bool,
        _option(
            "--econd",
            help="With --form states: ask for the states of all attributes of an entity in one prompt, instead of one "
            "prompt per attribute.",
        ),
    ] = False
    memory: Annotated[
        bool,
        _option(
            "--memory",
            help="With --form states or complete: include the last known states of the entities in the prompt.",
        ),
    ] = False
    past: Annotated[
        bool, _option("--past/--no-past", help="Include the earlier steps in the prompt, or leave them out.")
    ] = True
    temperature: Annotated[
        float | None,
        _option(
            min=0,
            max=2,
            help="Sampling temperature, from 0 (always the most likely answer) to 2 (the most varied answers). "
            "Default: 0, or 0.7 if --samples is more than 1.",
        ),
    ] = None
    dry_run: Annotated[bool, _option("--dry-run", help="Print the prompts, and send nothing.")] = False

    def tracker(self, model: LanguageModel, sampling: SamplingOptions) -> LlmTracker:
        """The tracker that asks a model in this way."""
        from fluents.trackers.llm.settings import LlmSettings
        from fluents.trackers.llm.tracker import llm_tracker

        settings = LlmSettings(
            form=self.form,
            samples=sampling.samples or 1,
            temperature=self.temperature,
            verify=self.verify,
            econd=self.econd,
            memory=self.memory,
            past=self.past,
            shots=self.shots,
            most=sampling.max_changes,
            seed=sampling.seed,
        )
        return llm_tracker(model, settings, examples=self.examples, pairs=self.pairs)


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
    """Track what changes at every step, with a language model at any OpenAI-compatible endpoint.

    Such endpoints include OpenAI, vLLM, Ollama, llama.cpp and `fluents serve-model`. If you do not need the options
    below, use `fluents track --model NAME --base-url URL`.

    Example: `fluents track-llm soup.md --model NAME --base-url http://127.0.0.1:8080/v1`

    Example: `fluents track-llm soup.md --form whole --dry-run`
    """
    if llm.dry_run:
        wanted, skipped = inputs.read(to.output, to.html)
        print_questions(wanted, llm, sampling, to.as_json)
        report_skipped(skipped)
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
    """Track, and report at the end what could not be parsed and what was used."""
    from fluents.trackers.llm.pipeline import NOT_VERIFIED

    wanted, skipped = inputs.read(to.output, to.html)
    with open_model(model) as opened, report_parse_failures() as failures:
        removed = 0

        def count(trace: Trace) -> None:
            nonlocal removed
            removed += sum(reject.reason == NOT_VERIFIED for reject in trace.rejects)
            failures.extend(reject.reason for reject in trace.rejects if reject.reason != NOT_VERIFIED)

        try:
            track_all(llm.tracker(opened, sampling), wanted, skipped, salient, to, count)
        finally:
            if llm.verify:
                tell(f"verification dropped {counted(removed, 'attribute')} (see `rejects` in the output)")


def print_questions(
    wanted: Sequence[Procedure], llm: LlmOptions, sampling: SamplingOptions, as_json: bool | None
) -> None:
    """Print what would be asked, and ask nothing."""
    from fluents.llm import LanguageModel
    from fluents.trackers.llm.dry_run import BYTES_PER_TOKEN, STAND_IN, DryRun, about_tokens, questions

    nobody = LanguageModel(DryRun(Procedure(id="none", steps=())), "")
    count = tokens = 0
    for procedure, question in questions(llm.tracker(nobody, sampling), wanted):
        count, tokens = count + 1, tokens + about_tokens(question)
        _print_question(procedure, question, about_tokens(question), as_json)
    tell(
        f"{counted(count, 'prompt')}, about {tokens} input tokens (at {BYTES_PER_TOKEN} bytes per token); "
        "nothing was sent"
    )
    if llm.memory or llm.verify or (llm.form == "states" and not llm.pairs):
        tell(
            "some prompts depend on earlier answers; they are shown as if each step had one change, "
            f"{STAND_IN.attribute} of {STAND_IN.entity}. A real run may send more or fewer prompts"
        )


def _print_question(procedure: Procedure, question: Question, tokens: int, as_json: bool | None) -> None:
    if as_json:
        shown = {"procedure": procedure.id, "name": question.name, "seed": question.seed, "tokens": tokens}
        print(json.dumps(shown | {"system": question.system, "prompt": question.prompt}, ensure_ascii=False))
    else:
        head = f"{procedure.id}: {question.name}, seed {question.seed}, about {tokens} tokens"
        print(f"--- {head} ---\n{question.system}\n\n{question.prompt}\n")
