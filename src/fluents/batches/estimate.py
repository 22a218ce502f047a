"""A batch run before it is begun: how many shards, how long it will take, what an endpoint will cost."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import timedelta
from itertools import islice
from pathlib import Path
from typing import Any

from fluents.batches.documents import read_documents
from fluents.batches.shard_plan import BatchPlan, plan, runs_model
from fluents.errors import FluentsError
from fluents.records import Procedure
from fluents.text.names import counted

LOOKED_AT = 50
"""Documents that are segmented to see how many steps there are."""
TIMED_STEPS = 3
"""Steps that are tracked to see how long one takes."""
TOKENS_OUT = 40
"""Output tokens of an answer, assumed: an attribute's two states, or a step's entities, as JSON."""


@dataclass(frozen=True)
class Estimate:
    """What a run will take. What is None is not known."""

    shards: int
    done: int
    """Shards that earlier runs have done."""
    procedures: int
    """Of the shards that are left."""
    steps: int
    """About so many, by the first documents."""
    seconds: float | None
    questions: int | None = None
    tokens_in: int | None = None
    tokens_out: int | None = None
    cost: float | None = None
    notices: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)

    def lines(self) -> list[str]:
        """For people."""
        done = f", {self.done:,} of them done" if self.done else ""
        found = [f"{counted(self.shards, 'shard')}{done}"]
        found.append(f"{counted(self.procedures, 'procedure')} to do, about {self.steps:,} steps")
        if self.seconds is not None:
            found.append(f"time: about {timedelta(seconds=round(self.seconds))}, estimated from the first steps")
        if self.questions is not None:
            found.append(
                f"at least {self.questions:,} prompts, {self.tokens_in:,} input tokens and about {self.tokens_out:,} "
                f"output tokens ({TOKENS_OUT} per answer). A prompt that depends on earlier answers is counted only "
                "once, although a run may send it several times"
            )
            found.append("the time is unknown, because no request was sent")
        if self.cost is not None:
            found.append(f"cost: at least {self.cost:,.2f}")
        return [*found, *(f"note: {notice}" for notice in self.notices)]


def estimate(
    sources: str | Path | Iterable[str | Path],
    out: str | Path,
    *,
    workers: int | None = None,
    prices: tuple[float | None, float | None] = (None, None),
    **options: Any,
) -> Estimate:
    """What `batch` with these options would take. Writes nothing, and sends nothing; an embedded model is tried on a
    few steps."""
    planned = plan(sources, out, dry=True, **options)
    left = sum(shard.count for shard in planned.left)
    looked = _first_procedures(planned)
    per_procedure = sum(len(one.steps) for one in looked) / max(len(looked), 1)
    steps = round(left * per_procedure)
    found = Estimate(len(planned.ours), len(planned.ours) - len(planned.left), left, steps, None)
    found = Estimate(**asdict(found) | {"notices": tuple(planned.notices)})
    if "track" not in planned.settings.stages or not looked:
        return found
    if planned.settings.tracker.get("replay") or runs_model(planned.settings):
        return Estimate(**asdict(found) | {"seconds": steps * _seconds_a_step(planned, looked) / (workers or 1)})
    return Estimate(**asdict(found) | _cost(planned, looked, left, prices))


def _first_procedures(planned: BatchPlan) -> list[Procedure]:
    documents = (document for file in planned.files for document in read_documents(file))
    found = []
    for document in islice(documents, LOOKED_AT):
        try:
            found.append(document.content().procedure)
        except FluentsError:
            continue
    return [one for one in found if 0 < len(one.steps) <= planned.settings.max_steps]


def _seconds_a_step(planned: BatchPlan, procedures: Sequence[Procedure]) -> float:
    """Of one worker that is alone on this machine, and has its slots full."""
    settings = planned.settings
    at_once = int(settings.tracker.get("at_once", 1))
    with settings.opened_tracker() as tracker:
        tried = [one.replace(steps=one.steps[:TIMED_STEPS]) for one in islice(procedures, at_once)]
        if settings.tracker.get("replay"):
            tried = list(procedures)
        else:
            list(tracker.track_many([tried[0].replace(steps=tried[0].steps[:1])]))  # loads the model
        started = time.perf_counter()
        for one in tracker.track_many(tried):
            assert one.procedure
        return (time.perf_counter() - started) / sum(len(one.steps) for one in tried)


def _cost(
    planned: BatchPlan, procedures: Sequence[Procedure], left: int, prices: tuple[float | None, float | None]
) -> dict[str, Any]:
    from fluents.llm import LanguageModel
    from fluents.trackers.llm.dry_run import DryRun, about_tokens, questions
    from fluents.trackers.llm.settings import LlmSettings
    from fluents.trackers.llm.tracker import LlmTracker

    chosen = planned.settings.tracker
    settings = LlmSettings(samples=chosen.get("samples") or 1, most=chosen.get("max_changes"))
    tracker = LlmTracker(LanguageModel(DryRun(Procedure(id="none", steps=())), ""), settings)
    asked = [question for _, question in questions(tracker, procedures)]
    times = left / len(procedures)
    count = round(len(asked) * times)
    tokens_in = round(sum(map(about_tokens, asked)) * times)
    tokens_out = count * TOKENS_OUT * (chosen.get("samples") or 1)
    found: dict[str, Any] = {"questions": count, "tokens_in": tokens_in, "tokens_out": tokens_out}
    if prices != (None, None):
        found["cost"] = (tokens_in * (prices[0] or 0) + tokens_out * (prices[1] or 0)) / 1e6
    return found
