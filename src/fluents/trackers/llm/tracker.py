"""The llm tracker: a procedure in, questions out, and a trace of what their answers say."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, replace

from fluents.data.file_formats import read_traces
from fluents.errors import InputError
from fluents.llm import LanguageModel, open_model
from fluents.llm.credentials import MissingKeyError
from fluents.records import Procedure, Provenance, Trace
from fluents.text.names import mentioned, one_line
from fluents.trackers import Listener, Tracker
from fluents.trackers.concurrent import side_by_side
from fluents.trackers.llm.pipeline import NOT_VERIFIED, Pipeline, Shots
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
            raise InputError(
                f"`pairs` does not contain the procedure {procedure.id!r}",
                where=self.source or None,
                fix="set `pairs` to a file or dataset with the same procedures and steps as the input",
            )
        if list(map(one_line, trace.procedure.steps)) != list(map(one_line, procedure.steps)):
            raise InputError(
                f"the steps of {procedure.id!r} differ between `pairs` and the input",
                where=self.source or None,
                fix="set `pairs` to a file or dataset with the same procedures and steps as the input",
            )
        return trace


class LlmTracker(Tracker):
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
            raise InputError("`pairs` works only with `form` states", fix="set `form` to states, or leave out `pairs`")
        if pairs and settings.verify:
            raise InputError("`pairs` and `verify` cannot be combined", fix="leave out `pairs` or `verify`")
        if settings.shots and shots is None:
            raise InputError(
                "`shots` has no effect without `examples`",
                fix="set `examples` to a file or dataset, or leave out `shots`",
            )
        self.model, self.settings = model, settings
        self._shots, self._pairs = shots, pairs
        self.resources = ExitStack()
        """What is freed when the tracker is closed."""

    @property
    def provenance(self) -> Provenance:
        settings = asdict(self.settings) | {"temperature": self.settings.drawn_at, "max_tokens": self.model.max_tokens}
        del settings["seed"]
        for name, source in (("examples", self._shots), ("pairs", self._pairs)):
            if source and source.source:
                settings[name] = source.source
        return Provenance(
            tracker="llm", model=self.model.name, decoding=settings, seed=self.settings.seed, version=__version__
        )

    def track(self, procedure: Procedure, listener: Listener | None = None, done: Trace | None = None) -> Trace:
        """The changes of every step; steps of which no answer could be read are left out of `covered`."""
        return self._track(self.model, procedure, listener or Listener(), done)

    def track_many(
        self, procedures: Iterable[Procedure], listener: Listener | None = None, done: Mapping[str, Trace] | None = None
    ) -> Iterator[Trace]:
        """Where a procedure has one question at a time, procedures are asked about side by side."""
        if not self.settings.memory and self.settings.form != "whole":
            return super().track_many(procedures, listener, done)
        one_question, before = replace(self.model, workers=1), done or {}
        return side_by_side(
            lambda procedure, listening: self._track(one_question, procedure, listening, before.get(procedure.id)),
            procedures,
            self.model.workers,
            listener,
        )

    def close(self) -> None:
        self.resources.close()

    def steps_of(self, procedure: Procedure) -> tuple[int, ...]:
        return self._pairs.of(procedure).covered_steps if self._pairs else super().steps_of(procedure)

    def _track(self, model: LanguageModel, procedure: Procedure, listener: Listener, done: Trace | None) -> Trace:
        done = done or Trace(procedure=procedure, covered=())
        listener.on_start(procedure, len(done.covered_steps))
        left = [step for step in self.steps_of(procedure) if step not in done.covered_steps]
        groups = self._groups(left, len(procedure.steps), model.workers)
        given = self._pairs.of(procedure) if self._pairs else None
        rounds = 1 if given else self.settings.rounds

        def progress(asked: float) -> None:
            """How many steps are done when so many rounds of questions were asked: so many for each group."""
            before, part = divmod(asked / rounds, 1)
            now = len(groups[int(before)]) if before < len(groups) else 0
            steps = len(done.covered_steps) + sum(map(len, groups[: int(before)])) + part * now
            listener.on_progress(procedure, steps)

        batch = QuestionBatch(model, self.settings, progress)
        pipeline = Pipeline(procedure, self.settings, batch, self._shots, given)
        known = list(done.covered_steps)
        for group in groups:
            while known and known[0] < group[0]:
                pipeline.recall(done.at(known.pop(0)))
            pipeline.run(group)
            listener.on_step(self._joined(done, pipeline, batch))
        return self._joined(done, pipeline, batch)

    def _groups(self, steps: Sequence[int], count: int, workers: int) -> list[Sequence[int]]:
        """The steps that are asked about together. After each group its steps are finished."""
        if self.settings.form == "whole":  # of all steps, though some may be answered already
            return [range(1, count + 1)] if steps else []
        size = 1 if self.settings.memory else workers
        return [steps[start : start + size] for start in range(0, len(steps), size)]

    def _joined(self, done: Trace, pipeline: Pipeline, batch: QuestionBatch) -> Trace:
        """What was done before and what was found since, step by step."""
        before = set(done.covered_steps)
        found = [
            change.replace(mentioned=mentioned(done.procedure, change.step, change.entity))
            for change in pipeline.changes
            if change.step not in before
        ]
        unread = [reject for reject in batch.rejects if reject.step not in before]
        rejects = sorted([*(one for one in done.rejects if one.step in before), *unread], key=lambda one: one.step or 0)
        covered = sorted(before | pipeline.answered)
        made = self.provenance
        if self.settings.verify:
            removed = sum(reject.reason == NOT_VERIFIED for reject in rejects)
            made = made.replace(decoding={**made.decoding, "removed": removed})
        prompts = dict.fromkeys([*filter(None, (done.provenance.prompt or "").split(" + ")), *batch.used])
        return Trace(
            procedure=done.procedure,
            changes=tuple(sorted([*done.changes, *found], key=lambda one: one.step)),
            covered=None if len(covered) == len(done.procedure.steps) else tuple(covered),
            rejects=tuple(rejects),
            provenance=made.replace(prompt=" + ".join(prompts) or None),
        )


def llm_tracker(
    model: LanguageModel, settings: LlmSettings, *, examples: str | None = None, pairs: str | None = None
) -> LlmTracker:
    """A tracker with few-shot examples and given pairs from files or datasets."""
    if examples and not settings.shots:
        raise InputError(
            "`examples` has no effect without `shots`", fix="set `shots` to the number of examples per prompt"
        )
    if pairs and settings.form != "states":
        raise InputError("`pairs` works only with `form` states", fix="set `form` to states, or leave out `pairs`")
    shots = Shots(read_traces(examples), settings.shots, settings.seed, examples) if examples else None
    given = GivenPairs(read_traces(pairs), pairs) if pairs else None
    return LlmTracker(model, settings, shots=shots, pairs=given)


@contextmanager
def naming_embedded_models() -> Iterator[None]:
    """Around what opens a model that is no embedded one: its name may be meant for one, but be misspelt."""
    try:
        yield
    except MissingKeyError as error:
        from fluents.weights.base_weights import BASES

        fix = f"{error.fix}; or set `model` to an embedded model: {', '.join(BASES)}"
        raise InputError(error.what, where=error.where, fix=fix) from None


def open_endpoint_tracker(
    model: str | LanguageModel,
    base_url: str | None = None,
    *,
    samples: int | None,
    max_changes: int | None,
    seed: int,
    at_once: int | None = None,
) -> LlmTracker:
    """A tracker that asks a language model behind an address, in the default form; answers are cached."""
    with naming_embedded_models(), ExitStack() as stack:
        opened = stack.enter_context(open_model(model, base_url))
        if at_once is not None:
            opened = replace(opened, workers=at_once)
        tracker = LlmTracker(opened, LlmSettings(samples=samples or 1, most=max_changes, seed=seed))
        tracker.resources = stack.pop_all()
    return tracker
