"""Procedures that a model in training has answered several times, and each sample as tokens with their advantages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

from fluents.data.corpus import JudgedClaim
from fluents.errors import InputError, needs_extra
from fluents.metrics.readers import soft_f1
from fluents.prompts.transcript import Transcript
from fluents.records import Trace
from fluents.trackers.embedded import Sampling
from fluents.training.adapter import AdapterRun, TaughtTokens
from fluents.training.advantages import (
    Reward,
    RewardedAnswer,
    answer_advantages,
    judged_reward,
    rewarded,
    token_advantages,
    usual_gain,
)
from fluents.training.base_model import encode
from fluents.training.batch_sampling import GROUPED, SampledTokens, generate
from fluents.training.examples import TranscriptExample

with needs_extra("train"):
    import torch

_ROWS = 512
"""Answers that are written side by side."""


class RewardedProcedure(NamedTuple):
    """A procedure with its annotation and, if claims were judged, with those of each step."""

    trace: Trace
    claims: tuple[tuple[JudgedClaim, ...], ...] | None = None

    @property
    def example(self) -> TranscriptExample:
        return TranscriptExample(self.trace)

    def reward(self, step: int) -> Reward:
        """How answers to a step are rewarded."""
        if self.claims is None:
            return partial(soft_f1, self.trace.at(step))
        return partial(judged_reward, self.claims[step - 1])


class SampledStep(NamedTuple):
    """An answer to a step: what the model had read, what it wrote, and how good that is."""

    prompt: list[int]
    written: SampledTokens
    answer: RewardedAnswer


def sample_procedures(
    run: AdapterRun,
    procedures: Sequence[RewardedProcedure],
    tell: Callable[[float], None],
    *,
    samples: int,
    max_tokens: int,
    context: int,
) -> list[list[list[SampledStep]]]:
    """For each procedure the samples, each with its steps, as far as there is room for the transcript.

    A prompt and an answer of `max_tokens` have at most `context` tokens.
    """
    rows = [one for one in procedures for _ in range(samples)]
    transcripts = [Transcript(one.trace.procedure) for one in rows]
    found: list[list[SampledStep]] = [[] for _ in rows]
    longest = max(len(one.trace.procedure.steps) for one in rows)
    for step in range(1, longest + 1):
        prompts = {
            row: encode(run.tokenizer, transcripts[row].prompt)
            for row, one in enumerate(rows)
            if len(found[row]) == step - 1 < len(one.trace.procedure.steps)
        }
        prompts = {row: ids for row, ids in prompts.items() if len(ids) + max_tokens <= context}
        for (row, prompt), written in zip(prompts.items(), _answers(run, prompts.values(), max_tokens), strict=True):
            text = run.tokenizer.decode(written.ids[: len(written.ids) - written.ended], skip_special_tokens=False)
            answer = rewarded(text, step, rows[row].reward(step), ended=written.ended)
            transcripts[row].answer(answer.changes)
            found[row].append(SampledStep(prompt, written, answer))
        tell(step / longest)
    if not any(found):
        raise InputError(
            f"all procedures are too long: no prompt leaves room for an answer of {max_tokens} tokens",
            fix="lower `max_tokens`, or give shorter procedures",
        )
    return [found[start : start + samples] for start in range(0, len(found), samples)]


def _answers(run: AdapterRun, prompts: Iterable[list[int]], max_tokens: int) -> list[SampledTokens]:
    """At temperature 1 and from the whole vocabulary: the probabilities are those that are trained."""
    sampling = Sampling(samples=1, temperature=1.0, top_k=0, top_p=1.0, max_tokens=max_tokens)
    model = run.model.get_base_model()
    model.set_attn_implementation(GROUPED)
    try:
        with torch.autocast(run.device, dtype=torch.bfloat16, enabled=run.device == "cuda"):
            return generate(model, list(prompts), sampling, run.end, rows=_ROWS)
    finally:
        model.set_attn_implementation("eager")


@dataclass(frozen=True)
class WeighedTokens(TaughtTokens):
    """Tokens, and for those that are taught, in their order, how good each is and its log-probability at sampling.

    The annotation was not sampled: there the log-probability is NaN.
    """

    advantages: list[float] = field(default_factory=list)
    sampled: list[float] = field(default_factory=list)


def weighed_tokens(run: AdapterRun, groups: Sequence[Sequence[Sequence[SampledStep]]]) -> Iterator[WeighedTokens]:
    """The samples as sequences to train on."""
    usual = usual_gain(step.answer for group in groups for sample in group for step in sample)
    for group in groups:
        advantages: dict[tuple[int, int], float] = {}
        for step in range(max(map(len, group))):
            there = [number for number, sample in enumerate(group) if len(sample) > step]
            values = answer_advantages([group[number][step].answer for number in there])
            advantages |= {(number, step): value for number, value in zip(there, values, strict=True)}
        for number, sample in enumerate(group):
            worth = [
                token_advantages(step.answer, advantages[number, place], _lines(run, step.written), usual)
                for place, step in enumerate(sample)
            ]
            yield from _sequences(sample, worth)


def _lines(run: AdapterRun, written: SampledTokens) -> Iterator[int | None]:
    """The number of the line that each token belongs to; None for the end token."""
    line = 0
    for token in written.ids:
        if token == run.end:
            yield None
        else:
            yield line
            line += run.tokenizer.decode([token], skip_special_tokens=False).count("\n")


def _sequences(steps: Sequence[SampledStep], worth: Sequence[list[float]]) -> Iterator[WeighedTokens]:
    """One sequence for all steps, as long as each prompt goes on from what was written.

    It does not where lines were dropped: the next step was asked with what was kept, and begins a new sequence.
    """
    now = WeighedTokens([], [])
    for (prompt, written, _), advantages in zip(steps, worth, strict=True):
        if prompt[: len(now.ids)] != now.ids:
            yield now
            now = WeighedTokens([], [])
        read = prompt[len(now.ids) :]
        now = WeighedTokens(
            now.ids + read + written.ids,
            now.taught + [False] * len(read) + [True] * len(written.ids),
            now.advantages + advantages,
            now.sampled + written.log_probabilities,
        )
    if now.ids:
        yield now
