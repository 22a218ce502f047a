"""The llm tracker: a procedure in, questions out, and a trace of what their answers say."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict

from fluents.errors import InputError
from fluents.llm import LanguageModel
from fluents.records import Procedure, Provenance, StateChange, Trace
from fluents.text.mentions import mentioned
from fluents.text.names import one_line
from fluents.trackers import OnStep
from fluents.trackers.llm.examples import Shots
from fluents.trackers.llm.pipeline import Pipeline
from fluents.trackers.llm.question_batch import QuestionBatch
from fluents.trackers.llm.settings import LlmSettings
from fluents.version import __version__


class GivenPairs:
    """Traces whose entities and attributes are asked about, instead of those a model would find."""

    def __init__(self, traces: Iterable[Trace], source: str = "") -> None:
        self.source = source
        self._traces = {trace.id: trace for trace in traces}

    def of(self, procedure: Procedure) -> Trace:
        trace = self._traces.get(procedure.id)
        if trace is None:
            raise InputError(f"`pairs` has no procedure {procedure.id!r}", where=self.source or None)
        if list(map(one_line, trace.procedure.steps)) != list(map(one_line, procedure.steps)):
            raise InputError(
                f"`pairs` has other steps for the procedure {procedure.id!r}",
                where=self.source or None,
                fix="check that both are of the same dataset",
            )
        return trace


class LlmTracker:
    """Tracks with a language model."""

    def __init__(
        self,
        model: LanguageModel,
        settings: LlmSettings = LlmSettings(),  # noqa: B008 - frozen
        *,
        shots: Shots | None = None,
        pairs: GivenPairs | None = None,
    ) -> None:
        if pairs and settings.form != "states":
            raise InputError("`pairs` needs `form` states", fix="set that, or leave out `pairs`")
        if pairs and settings.verify:
            raise InputError("`pairs` and `verify` exclude each other", fix="leave out one of them")
        if settings.shots and shots is None:
            raise InputError("`shots` without `examples` to draw them from", fix="set `examples` to a file or dataset")
        self.model, self.settings = model, settings
        self._shots, self._pairs = shots, pairs

    def track(self, procedure: Procedure, on_step: OnStep | None = None) -> Trace:
        """The changes of every step; steps of which no answer could be read are left out of `covered`."""
        questions = QuestionBatch(self.model, self.settings, on_step)
        given = self._pairs.of(procedure) if self._pairs else None
        stages = Pipeline(procedure, self.settings, questions, self._shots, given)
        asked = given.covered_steps if given else tuple(range(1, len(procedure.steps) + 1))
        for group in [(step,) for step in asked] if self.settings.memory else [asked]:
            stages.run(group)
        return Trace(
            procedure=procedure,
            changes=tuple(_mentioning(procedure, stages.changes)),
            covered=None if len(stages.answered) == len(procedure.steps) else tuple(sorted(stages.answered)),
            rejects=tuple(questions.rejects),
            provenance=self._provenance(questions, stages),
        )

    def _provenance(self, questions: QuestionBatch, stages: Pipeline) -> Provenance:
        settings = asdict(self.settings) | {
            "temperature": self.settings.drawn_at,
            "max_tokens": self.model.max_tokens,
        }
        del settings["seed"]
        if self.settings.verify:
            settings["removed"] = stages.removed
        for name, source in (("examples", self._shots), ("pairs", self._pairs)):
            if source and source.source:
                settings[name] = source.source
        return Provenance(
            tracker="llm",
            model=self.model.name,
            prompt=" + ".join(questions.used) or None,
            decoding=settings,
            seed=self.settings.seed,
            version=__version__,
        )


def _mentioning(procedure: Procedure, changes: Iterable[StateChange]) -> Iterable[StateChange]:
    for change in changes:
        yield change.replace(mentioned=mentioned(procedure, change.step, change.entity))
