"""The embedded tracker: base weights and an adapter, offline, one pass over one growing transcript.

The model reads each step once, sees what it said of the earlier ones, and writes the changes of the step, the most
important first. Every change has a confidence.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from fluents.decoding import Sampling
from fluents.decoding.confidence import (
    Features,
    calibration_path,
    context_features,
    line_features,
    mean_features,
    read_calibrations,
    way_of,
)
from fluents.decoding.consensus import Consensus, consensus
from fluents.decoding.state_carryover import KnownStates
from fluents.errors import FluentsWarning, InputError
from fluents.prompts.transcript import MAX_BYTES, VERSION, Transcript, read_answer
from fluents.records import Procedure, Provenance, Reject, StateChange, Trace
from fluents.text.names import mentioned
from fluents.trackers.embedded import EmbeddedTracker, StepByStep, loaded_engine
from fluents.trackers.llama_engine import Engine, WrittenAnswer
from fluents.version import __version__
from fluents.weights.adapters import EmbeddedModel, open_embedded, unpacked
from fluents.weights.base_weights import warn_if_memory_is_short

MAX_TOKENS = 256
"""Of an answer: the longest of our corpus has about 180."""
MAX_SLOTS = 16
"""So many samples are drawn side by side."""


@dataclass(frozen=True)
class TranscriptSettings:
    """How the tracker works."""

    adapter: str | None = None
    """The name of a shipped adapter, or the path of a file. None is the one that ships for the model."""
    model: str | None = None
    """The name of base weights, or the path of a file. None are those that the adapter belongs to."""
    samples: int = 1
    """One is the likeliest answer; several are drawn with `temperature`, and what they agree on is taken."""
    temperature: float = 0.8
    consensus: Consensus = field(
        default_factory=lambda: Consensus(exact=0, bleu=0, distinct=True, paired=True, recall=1.15)
    )
    max_changes: int | None = None
    """At most so many changes a step."""
    min_confidence: float | None = None
    """Changes below it are left out at the end. None is the value chosen for the adapter; 0 keeps all."""
    seed: int = 1

    @property
    def sampling(self) -> Sampling:
        if self.samples == 1:
            return Sampling(samples=1, temperature=0, max_tokens=MAX_TOKENS)
        return Sampling(self.samples, self.temperature, top_k=0, top_p=1.0, max_tokens=MAX_TOKENS)


class TranscriptModel(Protocol):
    """Whatever continues a transcript: the engine, or a script in its place."""

    def continue_from(
        self,
        prompt: str,
        sampling: Sampling,
        seed: int,
        *,
        fresh: bool,
        on_line: Callable[[str], None] | None = None,
    ) -> list[WrittenAnswer]: ...


class Draft(NamedTuple):
    """A change that the model wrote, and what its confidence depends on."""

    change: StateChange
    features: dict[str, float]


class TranscriptTracker(EmbeddedTracker):
    """The default tracker. Every change knows its confidence; the cut at `min_confidence` comes at the end."""

    def __init__(
        self,
        settings: TranscriptSettings,
        model: TranscriptModel | None = None,
        calibration: Callable[[Features], float] | None = None,
    ) -> None:
        self.settings = settings
        self._embedded = open_embedded(settings.model, settings.adapter)
        self._adapter = self._embedded.adapter
        if self._adapter.facts.prompt != VERSION:
            raise InputError(
                f"the adapter was trained with the prompt {self._adapter.facts.prompt}, not with {VERSION}",
                where=self._adapter.path,
                fix="train it again with this version of fluents",
            )
        shipped = read_calibrations(calibration_path(self._adapter.path)).get(way_of(settings.samples))
        self._confidence = calibration or shipped
        if settings.min_confidence and self._confidence is None:
            raise InputError(
                "`min_confidence` needs an adapter with a file of calibrations, and this one has none",
                where=self._adapter.path,
                fix="leave out `min_confidence`",
            )
        if settings.min_confidence is None and shipped is not None and calibration is None:
            self.settings = replace(settings, min_confidence=shipped.min_confidence)
        self._given = self._model = model
        self.adapters = (self._adapter,)

    @cached_property
    def provenance(self) -> Provenance:
        return Provenance(
            tracker="transcript",
            model=f"{self._embedded.base} + {self._adapter.name}",
            prompt=VERSION,
            decoding=self._decoding(),
            seed=self.settings.seed,
            version=__version__,
        )

    def begin(self, procedure: Procedure, on_line: Callable[[str], None]) -> StepByStep:
        return _Writing(self, procedure, on_line)

    def finished(self, trace: Trace) -> Trace:
        """Without the changes of low confidence; until the end they stay, because the next steps build on them."""
        least = self.settings.min_confidence
        if not least:
            return trace
        return trace.replace(changes=tuple(c for c in trace.changes if c.confidence is None or c.confidence >= least))

    def close(self) -> None:
        """Let go of the model, which stays loaded for other trackers for a while."""
        self._model = self._given

    def answer(
        self, transcript: Transcript, step: int, fresh: bool, on_line: Callable[[str], None]
    ) -> tuple[list[Draft], tuple[Reject, ...]]:
        """What the model says of a step, or what its samples agree on."""
        seed = (self.settings.seed * 1_000_003 + step * 4_099) % 2**31
        answers = self._loaded().continue_from(
            transcript.prompt, self.settings.sampling, seed, fresh=fresh, on_line=on_line
        )
        samples: list[list[Draft]] = []
        rejects: list[Reject] = []
        for answer in answers:
            lines, unread = read_answer(answer.text, step, ended=answer.ended)
            features = line_features(answer.tokens)
            samples.append([Draft(line.change, features[line.number]) for line in lines])
            rejects += unread
        return samples[0] if len(samples) == 1 else _agreed(samples, self.settings.consensus), tuple(rejects)

    def rated(self, procedure: Procedure, drafts: list[Draft]) -> list[StateChange]:
        """The changes, the first of them where they are too many, each with its confidence."""
        found = []
        for change, features in drafts[: self.settings.max_changes]:
            more: dict[str, Any] = {"mentioned": mentioned(procedure, change.step, change.entity)}
            if self._confidence is not None:
                more["confidence"] = self._confidence(features | context_features(procedure, change, len(drafts)))
            found.append(change.replace(**more))
        return found

    def _loaded(self) -> TranscriptModel:
        if self._model is None:
            slots = min(self.settings.samples, MAX_SLOTS)
            key = self._adapter.sha256, self._embedded.file, slots
            self._model = loaded_engine(key, partial(_engine, self._embedded, slots), most=1)  # memory may hold no more
        return self._model

    def _decoding(self) -> dict[str, Any]:
        found: dict[str, Any] = asdict(self.settings.sampling)
        if self.settings.samples > 1:
            found |= {f"consensus_{name}": value for name, value in asdict(self.settings.consensus).items()}
        if self.settings.max_changes is not None:
            found["max_changes"] = self.settings.max_changes
        return found | ({} if self._confidence is None else {"min_confidence": self.settings.min_confidence or 0.0})


def _agreed(samples: list[list[Draft]], settings: Consensus) -> list[Draft]:
    """What samples agree on; the features of a change are the means over the samples that hold it word for word."""
    held: dict[tuple[str, ...], list[dict[str, float]]] = {}
    for sample in samples:
        for change, features in sample:
            held.setdefault(_wording(change), []).append(features)
    found = consensus([[draft.change for draft in sample] for sample in samples], settings)
    return [Draft(change, mean_features(held[_wording(change)])) for change in found]


def _wording(change: StateChange) -> tuple[str, ...]:
    return tuple(field.lower() for field in (change.entity, change.attribute, change.before, change.after))


class _Writing:
    """The tracker at work on one procedure: the transcript grows with every step."""

    def __init__(self, tracker: TranscriptTracker, procedure: Procedure, on_line: Callable[[str], None]) -> None:
        self._tracker, self._procedure, self._on_line = tracker, procedure, on_line
        self._transcript, self._known, self._fresh = Transcript(procedure), KnownStates(), True

    def tell(self, changes: tuple[StateChange, ...]) -> None:
        self._known.enter(changes)
        self._transcript.answer(changes)

    def ask(self, step: int) -> tuple[tuple[StateChange, ...], tuple[Reject, ...]]:
        drafts, rejects = self._tracker.answer(self._transcript, step, self._fresh, self._on_line)
        self._fresh = False
        changes = tuple(self._known.enter(self._tracker.rated(self._procedure, drafts)))
        self._transcript.answer(changes)
        if step == len(self._procedure.steps):
            _warn_if_dropped(self._transcript, self._procedure)
        return changes, rejects


def _warn_if_dropped(transcript: Transcript, procedure: Procedure) -> None:
    if transcript.dropped:
        warnings.warn(
            f"{procedure.id} is long: in its last steps the model no longer saw steps 1 to {transcript.dropped}. "
            "Split it into shorter procedures if that matters",
            FluentsWarning,
            stacklevel=3,
        )


def _engine(embedded: EmbeddedModel, slots: int) -> Engine:
    model = embedded.base_path()
    if embedded.file is None:
        warn_if_memory_is_short(embedded.adapter.base)
    return transcript_engine(model, embedded.adapter.path, slots)


def transcript_engine(model: Path, adapter: Path | None, slots: int = 1, threads: int | None = None) -> Engine:
    """An engine with room for the longest transcript and as many answers as there are slots."""
    lora = None if adapter is None else unpacked(adapter)
    return Engine(model, slots=slots, context=MAX_BYTES + slots * MAX_TOKENS, threads=threads, adapter=lora)
