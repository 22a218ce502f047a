"""Refine a trained adapter on the metric itself: sample answers, make the better ones likelier (policy gradient).

`train adapter` teaches the words of the annotation, after annotated earlier steps. A tracker goes on from its own
answers and is scored by soft F1 (`fluents.metrics.readers`). So here the model answers procedures several times, seeing
what it said before; `fluents.training.advantages` says how good each token was; a clipped policy gradient makes the
good ones likelier, with the likelihood of the annotation mixed in. Where claims were judged, the judgements take the
place of soft F1: annotation names one wording of what people think worth saying, judgements tell true from false.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from pathlib import Path
from statistics import fmean
from typing import Any

from fluents.data.corpus import JUDGED, judged_procedures
from fluents.data.file_formats import read_traces
from fluents.download import sha256_of
from fluents.errors import InputError, needs_extra
from fluents.prompts.transcript import VERSION
from fluents.records import Trace
from fluents.training.adapter import (
    LOG,
    AdapterRun,
    AdapterSettings,
    Report,
    batches,
    sources,
)
from fluents.training.adapter_file import load_adapter, read_adapter
from fluents.training.advantages import (
    RewardedAnswer,
)
from fluents.training.checkpoint_state import finite, load_mean, log_so_far
from fluents.training.examples import TranscriptExample, digest
from fluents.training.sampled_procedures import (
    RewardedProcedure,
    SampledStep,
    WeighedTokens,
    sample_procedures,
    weighed_tokens,
)
from fluents.weights import BASES
from fluents.weights.adapters import open_embedded

with needs_extra("train"):
    import torch


@dataclass(frozen=True)
class RefinementSettings:
    """The hyperparameters of a refinement."""

    rounds: int = 6
    procedures: int = 128
    """In each round."""
    samples: int = 8
    """Answers to each step."""
    learning_rate: float = 1e-4
    """At its highest; it rises over the first updates, then falls on a line to a tenth."""
    warmup: int = 10
    """Updates."""
    annotation: float = 0.3
    """Weight of the annotation's likelihood beside four samples; it grows with their number."""
    clip_below: float = 0.2
    clip_above: float = 0.25
    """A token that became so much less or more likely in this round gets no further."""
    max_gradient: float = 0.5
    batch: int = 8
    accumulated: int = 4
    """Batches to an update."""
    min_steps: int = 3
    max_steps: int = 8
    """Of the procedures that are taken."""
    judged_share: float = 0.6
    """Of the procedures of a round, where judged ones are given."""
    max_judged_steps: int = 10
    """Of a judged procedure: most of ours are longer than what `data` has."""
    max_tokens: int = 176
    """Of an answer."""
    context: int = 1152
    """Tokens: the steps after which a transcript would be longer are left out."""
    seed: int = 1


LEARNING_RATES = {"tiny": 5e-4, "small": 1.5e-4, "base": 1e-4}
"""What was best on `fluents:dev`, by base weights."""


def refine_adapter(
    adapter: str | Path,
    data: str | Path | Sequence[str | Path] = ("fluents",),
    out: str | Path = "runs/refined",
    *,
    judged: str | Path | None = None,
    model: str | Path | None = None,
    rounds: int = 6,
    procedures: int = 128,
    samples: int = 8,
    learning_rate: float | None = None,
    max_tokens: int = 176,
    seed: int = 1,
    report: Report | None = None,
) -> Path:
    """Refine an adapter that reads transcripts, by policy gradient on soft F1; returns the path of `out`/adapter.gguf.

    `adapter` is a shipped one by name or a file; a dataset's name in `data` means its train split. `judged` is a file
    of judged procedures, or "fluents:judged"; they are drawn along with those of `data`, and rewarded by their
    judgements. `model` is needed only for an adapter of a GGUF file that fluents does not know. A `learning_rate` of
    None is chosen by the base weights. `report` is told how far the run is, and of every round. A run that was
    interrupted goes on after its last whole round.

    >>> better = refine_adapter("runs/mine/adapter.gguf", data=["fluents", "mine.jsonl"], out="runs/better")
    """
    embedded = open_embedded(model, adapter)
    facts, path = embedded.adapter.facts, embedded.adapter.path
    if facts.prompt != VERSION:
        raise InputError(
            f"only adapters trained with prompt version {VERSION} can be refined, but this one was trained with "
            f"prompt version {facts.prompt}",
            where=path,
            fix="choose transcript-tiny, transcript-small, transcript-base, or an adapter that `fluents train adapter "
            "--prompt transcript` trained",
        )
    size = next((name for name, base in BASES.items() if base.sha256 == facts.base_sha256), "base")
    settings = RefinementSettings(
        rounds=rounds,
        procedures=procedures,
        samples=samples,
        learning_rate=LEARNING_RATES[size] if learning_rate is None else learning_rate,
        max_tokens=max_tokens,
        seed=seed,
    )
    if samples < 2:
        raise InputError(
            f"`samples` must be at least 2, not {samples}, because refinement compares several answers to each step",
            fix="raise `samples`",
        )
    taught, _ = sources(data, ())
    annotated = [
        RewardedProcedure(trace)
        for source in taught
        for trace in read_traces(source)
        if _is_usable(trace, settings, settings.max_steps)
    ]
    if not annotated:
        length = f"{settings.min_steps} to {settings.max_steps} steps"
        what = f"`data` contains no procedure with {length} in which every step is annotated"
        raise InputError(what, fix="set `data` to a source with such procedures")
    with_claims = [] if judged is None else _judged(judged, settings)
    examples = [procedure.example for procedure in (*annotated, *with_claims)]
    names = dict.fromkeys(
        (*facts.data, *(Path(source).name for source in (*taught, *([] if judged is None else [judged]))))
    )
    base, folder, tell = embedded.base_path(), Path(out), report or (lambda _: None)
    about = {
        "refinement": asdict(settings),
        "base": sha256_of(base),
        "adapter": embedded.adapter.sha256,
        "data": digest(examples),
        "judged": _claims_digest(with_claims),
    }
    log = log_so_far(folder / LOG, about)
    averaged = math.ceil(rounds / 2)
    run = _adapter_run(base, path, folder, settings, kept=averaged)
    run.resume(len(log))
    for number, drawn in enumerate(_rounds(annotated, with_claims, settings), start=1):
        if number <= len(log):
            continue
        log.append(_round(run, number, drawn, settings, log[-1]["updates"] if log else 0, tell))
        tell(log[-1])
        run.checkpoint(log, about)
    last = range(rounds - averaged + 1, rounds + 1)
    load_mean([run.checkpoint_file(number) for number in last], run.trained, run.optimizer)
    facts = replace(facts, data=tuple(names), data_sha256=digest(examples))
    return run.finish(facts, {"refinement": asdict(settings), "procedures": len(examples), "log": log})


def _judged(source: str | Path, settings: RefinementSettings) -> list[RewardedProcedure]:
    found = [
        RewardedProcedure(procedure.trace, procedure.claims)
        for procedure in judged_procedures(None if str(source) == JUDGED else source)
        if _is_usable(procedure.trace, settings, settings.max_judged_steps)
    ]
    if not found:
        most = settings.max_judged_steps
        what = f"`judged` contains no procedure with {settings.min_steps} to {most} steps and at least one true change"
        raise InputError(what, where=source, fix="set `judged` to a file with such procedures")
    return found


def _claims_digest(procedures: Iterable[RewardedProcedure]) -> str:
    found = sha256()
    for procedure in procedures:
        for step in procedure.claims or ():
            for claim in step:
                found.update(claim.model_dump_json(exclude_defaults=True).encode() + b"\n")
    return found.hexdigest()


def _is_usable(trace: Trace, settings: RefinementSettings, most: int) -> bool:
    steps = len(trace.procedure.steps)
    return bool(trace.changes) and settings.min_steps <= steps <= most and len(trace.covered_steps) == steps


def _round(
    run: AdapterRun,
    number: int,
    procedures: Sequence[RewardedProcedure],
    settings: RefinementSettings,
    before: int,
    report: Report,
) -> dict[str, Any]:
    """Sample and train; the entry in the log. There were `before` updates."""

    def tell(share: float) -> None:
        report({"round": number, "rounds": settings.rounds, "share": share})

    began = time.monotonic()
    rng = random.Random(f"{settings.seed}-{number}")  # of the round alone, so that a resumed run draws the same
    torch.manual_seed(settings.seed * 1000 + number)
    groups = sample_procedures(
        run,
        procedures,
        lambda done: tell(done / 2),
        samples=settings.samples,
        max_tokens=settings.max_tokens,
        context=settings.context,
    )
    items = [*weighed_tokens(run, groups), *_annotations(run, [one.example for one in procedures], settings)]
    cut = list(batches(items, settings.batch, rng))
    updates = [cut[start : start + settings.accumulated] for start in range(0, len(cut), settings.accumulated)]
    for index, update in enumerate(updates, start=1):
        done = index / len(updates)
        rising = min(1.0, (before + index) / settings.warmup)
        falling = 1 - 0.9 * (number - 1 + done) / settings.rounds
        _update(run, update, settings, settings.learning_rate * rising * falling)
        tell(0.5 + done / 2)
    answers = _answers_of(groups)
    judged = _answers_of(group for group, one in zip(groups, procedures, strict=True) if one.claims is not None)
    entry = {
        "round": number,
        "reward": round(fmean(answer.reward for answer in answers), 4),
        **({"judged_reward": round(fmean(answer.reward for answer in judged), 4)} if judged else {}),
        "changes_per_step": round(fmean(len(answer.changes) for answer in answers), 2),
        "updates": before + len(updates),
        "seconds": round(time.monotonic() - began, 1),
    }
    return finite(entry)


def _answers_of(groups: Iterable[Sequence[Sequence[SampledStep]]]) -> list[RewardedAnswer]:
    return [step.answer for group in groups for sample in group for step in sample]


def _adapter_run(base: Path, adapter: Path, out: Path, settings: RefinementSettings, kept: int) -> AdapterRun:
    """A run that begins with the matrices of the adapter."""
    lora = read_adapter(adapter)
    plain = AdapterSettings(
        learning_rate=settings.learning_rate,
        weight_decay=0.0,
        rank=lora.rank,
        scale=lora.alpha / lora.rank,
        max_tokens=settings.context,
        seed=settings.seed,
    )
    run = AdapterRun(base, out, plain, unit="round", kept=kept)
    load_adapter(run.model, lora)
    for group in run.optimizer.param_groups:
        group["betas"] = (0.9, 0.95)  # a round has some forty updates: older gradients are of another round
    return run


def _rounds(
    annotated: Sequence[RewardedProcedure], judged: Sequence[RewardedProcedure], settings: RefinementSettings
) -> Iterator[list[RewardedProcedure]]:
    """The procedures of each round: annotated ones, and a share of judged ones if there are any."""
    share = round(settings.judged_share * settings.procedures) if judged else 0
    ours = _draws(annotated, settings.procedures - share, random.Random(settings.seed))
    theirs = _draws(judged, share, random.Random(f"{settings.seed}-judged"))
    for _ in range(settings.rounds):
        yield [*next(ours), *next(theirs)]


def _draws(procedures: Sequence[RewardedProcedure], size: int, rng: random.Random) -> Iterator[list[RewardedProcedure]]:
    """Again and again `size` procedures, or all if there are fewer; none comes again before all have come."""
    size = min(size, len(procedures))
    waiting: list[RewardedProcedure] = []
    while True:
        if len(waiting) < size:
            waiting += rng.sample(procedures, len(procedures))
        yield waiting[:size]
        del waiting[:size]


def _annotations(
    run: AdapterRun, examples: Iterable[TranscriptExample], settings: RefinementSettings
) -> Iterator[WeighedTokens]:
    for tokens in run.taught(example.pieces() for example in examples):
        count = sum(tokens.taught)
        weight = settings.annotation * settings.samples / 4
        yield WeighedTokens(tokens.ids, tokens.taught, [weight] * count, [math.nan] * count)


def _update(
    run: AdapterRun, update: Sequence[Sequence[WeighedTokens]], settings: RefinementSettings, learning_rate: float
) -> None:
    for batch in update:
        advantages, sampled = (
            torch.tensor(values, device=run.device)
            for values in ([x for one in batch for x in one.advantages], [x for one in batch for x in one.sampled])
        )
        loss = policy_loss(run.log_probabilities(batch), sampled, advantages, settings.clip_below, settings.clip_above)
        (loss / len(update)).backward()
    torch.nn.utils.clip_grad_norm_(run.trained.values(), settings.max_gradient)
    for group in run.optimizer.param_groups:
        group["lr"] = learning_rate
    run.optimizer.step()
    run.optimizer.zero_grad(set_to_none=True)


def policy_loss(log_probabilities: Any, sampled: Any, advantages: Any, below: float = 0.2, above: float = 0.25) -> Any:
    """The mean of the clipped policy gradient over tokens; where `sampled` is NaN, of the weighed likelihood."""
    before = torch.where(sampled.isnan(), log_probabilities.detach(), sampled)
    ratio = (log_probabilities - before).clamp(-4, 4).exp()
    return -torch.minimum(ratio * advantages, ratio.clamp(1 - below, 1 + above) * advantages).mean()
