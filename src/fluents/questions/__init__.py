"""Questions about a procedure: how likely something is, step by step, and the states that support each judgement."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, Protocol, TypeAlias

from fluents.errors import InputError
from fluents.llm import LanguageModel, Usage, open_model
from fluents.questions.feature_judge import FeatureJudge
from fluents.questions.prompted_judge import PromptedJudge, Scale
from fluents.records import Procedure, Provenance, Trace
from fluents.salience.feature_rater import RATER
from fluents.salience.filter import Keep, keep_salient
from fluents.scoring import check_choice
from fluents.task_records import CrepeCase, Likelihood
from fluents.version import __version__

States: TypeAlias = Literal["none", "all", "salient"]
"""Which states a judgement may rest on: OpenPI2.0's three settings."""
JudgeName: TypeAlias = Literal["offline", "prompted"]
MIN_SALIENCE = 3.0
"""Of "salient" states, in their step, where nothing else is said."""


class Judge(Protocol):
    """A way to tell how likely something is."""

    @property
    def name(self) -> str:
        """As its answers record it."""
        ...

    @property
    def prompt(self) -> str | None:
        """The prompt it asks with, if it does."""
        ...

    @property
    def usage(self) -> Usage:
        """What it has used so far."""
        ...

    def judgements(self, trace: Trace, events: Sequence[str], *, with_states: bool) -> list[Likelihood]:
        """Of every event, step by step, from the changes in the trace."""
        ...


def ask(
    source: Trace | CrepeCase | Procedure | str | Path,
    question: str | Sequence[str] | None = None,
    *,
    states: States = "all",
    min_salience: float | None = None,
    method: JudgeName | Judge = "offline",
    model: str | LanguageModel | None = None,
    base_url: str | None = None,
) -> CrepeCase:
    """How likely something is before step 1 and after every step, with reasons and the states that support them.

    `source` is a trace, or a procedure, a text (str) or a file (Path), which is tracked first with the embedded model
    unless `states` is "none". States of "salient" entities only are those rated at least `min_salience` (default 3) in
    their step by the built-in rater. The method "offline" needs no language model; "prompted" asks the `model` at
    `base_url`. A CREPE case without a question is asked about its events.

    >>> answer = fl.ask(trace, "Can she see what is in the room?")
    >>> [(one.step, one.rating, one.reason) for one in answer.likelihoods]
    """
    events = questions_of(source, question)
    trace = tracked(source, states)
    scale: Scale = "rating" if question else "change"
    with open_judge(method, scale=scale, model=model, base_url=base_url) as judge:
        return answered(trace, events, judge, states=states, min_salience=min_salience)


def questions_of(source: object, question: str | Sequence[str] | None) -> tuple[str, ...]:
    """What is asked: the question, or the events of a CREPE case."""
    if question is None and isinstance(source, CrepeCase):
        return source.events
    asked = (question,) if isinstance(question, str) else tuple(question or ())
    if not asked or not all(map(str.strip, asked)):
        raise InputError(
            "no question given", fix="give a `question`, or use a CREPE dataset, which has its own questions"
        )
    return tuple(dict.fromkeys(asked))


def tracked(source: Trace | CrepeCase | Procedure | str | Path, states: States) -> Trace:
    """The source as a trace: tracked where it is none yet and states are wanted."""
    check_choice("states", states, States)
    if isinstance(source, Trace):
        return source
    if isinstance(source, CrepeCase):  # whose annotated states would give the answers away
        source = source.procedure
    if not isinstance(source, Procedure):
        from fluents.segmentation import segment

        source = segment(source)
    if states == "none":
        return Trace(procedure=source)
    from fluents.trackers import track

    return track(source)


@contextmanager
def open_judge(
    method: JudgeName | Judge = "offline",
    *,
    scale: Scale = "rating",
    model: str | LanguageModel | None = None,
    base_url: str | None = None,
) -> Iterator[Judge]:
    """The judge of this name, until the block ends."""
    if method != "prompted":
        for name, value in (("model", model), ("base_url", base_url)):
            if value is not None:
                raise InputError(
                    f"`{name}` works only with `method` prompted",
                    fix=f"leave out `{name}`, or set `method` to prompted",
                )
    if not isinstance(method, str):
        yield method
        return
    check_choice("method", method, JudgeName)
    if method == "offline":
        yield FeatureJudge()
    else:
        with open_model(model, base_url) as opened:
            yield PromptedJudge(opened, scale)


def answered(
    trace: Trace,
    events: Sequence[str],
    judge: Judge,
    *,
    states: States = "all",
    min_salience: float | None = None,
    dataset: str | None = None,
) -> CrepeCase:
    """The judge's answer to each question, from the states that it may use; the provenance says what that took."""
    shown = kept_states(trace, states, min_salience)
    before = judge.usage
    said = judge.judgements(shown, events, with_states=states != "none")
    noted: dict[str, str | float] = {"states": states}
    if states == "salient":
        noted["min_salience"] = MIN_SALIENCE if min_salience is None else min_salience
    if states != "none":
        noted["entities"] = len({(change.step, change.entity) for change in shown.changes})
    after = judge.usage
    if after != before:  # what came from the cache is counted as if it were asked now: the answers are the same
        noted["tokens_in"] = after.tokens_in + after.cached_tokens_in - before.tokens_in - before.cached_tokens_in
        noted["tokens_out"] = after.tokens_out + after.cached_tokens_out - before.tokens_out - before.cached_tokens_out
    made = Provenance(model=judge.name, prompt=judge.prompt, decoding=noted, version=__version__, dataset=dataset)
    return CrepeCase(procedure=trace.procedure, likelihoods=tuple(said), provenance=made)


def check_states(states: States, min_salience: float | None) -> None:
    """An InputError where the two do not go together."""
    check_choice("states", states, States)
    if min_salience is not None and states != "salient":
        raise InputError(
            "`min_salience` works only with `states` salient",
            fix="leave out `min_salience`, or set `states` to salient",
        )


def kept_states(trace: Trace, states: States, min_salience: float | None = None) -> Trace:
    """The trace with the states that a judgement may rest on."""
    check_states(states, min_salience)
    if states == "none":
        return trace.replace(changes=())
    if states == "all":
        return trace
    least = MIN_SALIENCE if min_salience is None else min_salience
    return keep_salient(trace, Keep(min_salience=least, rater=RATER, scope="local"))
