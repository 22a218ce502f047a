"""The embedded tracker: base weights and an adapter, offline, one pass over one growing transcript.

The model reads each step once, sees what it said of the earlier ones, and writes the changes of the step, the most
important first. Every change has a confidence.
"""

from __future__ import annotations

import json
import math
import threading
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from fluents.errors import FluentsWarning, InputError
from fluents.prompts.transcript import MAX_BYTES, VERSION, Transcript, read_answer
from fluents.records import Procedure, Provenance, Reject, StateChange, Trace
from fluents.text.matchers import KnownStates
from fluents.text.names import mentioned, named_in
from fluents.trackers.consensus import Consensus, consensus
from fluents.trackers.embedded import (
    EmbeddedTracker,
    Engine,
    Sampling,
    StepByStep,
    WrittenAnswer,
    WrittenToken,
    loaded_engine,
)
from fluents.version import __version__
from fluents.weights.adapters import EmbeddedModel, merged, open_embedded, unpacked
from fluents.weights.base_weights import warn_if_memory_is_short

Floats = NDArray[np.float64]
Features = Mapping[str, float]

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
    at_once: int = 1
    """Procedures side by side, where there is one sample of each step; several samples are side by side themselves."""
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
        slot: int | None = None,
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
                f"the adapter was trained with prompt version {self._adapter.facts.prompt}, but prompt version "
                f"{VERSION} is needed here",
                where=self._adapter.path,
                fix="train an adapter with: fluents train adapter --prompt transcript",
            )
        shipped = read_calibrations(calibration_path(self._adapter.path)).get(way_of(settings.samples))
        self._confidence = calibration or shipped
        if settings.min_confidence and self._confidence is None:
            raise InputError(
                "`min_confidence` needs a calibrated adapter, but this adapter is not calibrated for "
                + ("one sample per step" if settings.samples == 1 else "several samples per step"),
                where=self._adapter.path,
                fix="leave out `min_confidence`",
            )
        if settings.min_confidence is None and shipped is not None and calibration is None:
            self.settings = replace(settings, min_confidence=shipped.min_confidence)
        if settings.at_once > 1 and settings.samples > 1:
            raise InputError("`at_once` has no effect with several `samples`", fix="leave out `at_once` or `samples`")
        self.at_once = settings.at_once
        self._given = self._model = model
        self._loading = threading.Lock()
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

    def begin(self, procedure: Procedure, on_line: Callable[[str], None], slot: int | None = None) -> StepByStep:
        return _Writing(self, procedure, on_line, slot)

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
        self, transcript: Transcript, step: int, fresh: bool, on_line: Callable[[str], None], slot: int | None = None
    ) -> tuple[list[Draft], tuple[Reject, ...]]:
        """What the model says of a step, or what its samples agree on."""
        seed = (self.settings.seed * 1_000_003 + step * 4_099) % 2**31
        answers = self._loaded().continue_from(
            transcript.prompt, self.settings.sampling, seed, fresh=fresh, on_line=on_line, slot=slot
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
        with self._loading:  # procedures side by side ask for it at the same time
            if self._model is None:
                slots, at_once = min(self.settings.samples, MAX_SLOTS), self.settings.at_once
                key = self._adapter.sha256, self._embedded.file, slots, at_once
                load = partial(embedded_engine, self._embedded, slots, at_once=at_once)
                self._model = loaded_engine(key, load, most=1)  # memory may hold no more
            return self._model

    def _decoding(self) -> dict[str, Any]:
        found: dict[str, Any] = asdict(self.settings.sampling)
        if self.settings.samples > 1:
            found |= {f"consensus_{name}": value for name, value in asdict(self.settings.consensus).items()}
        if self.settings.max_changes is not None:
            found["max_changes"] = self.settings.max_changes
        if self.settings.at_once > 1:
            size = self._embedded.size
            found |= {"at_once": self.settings.at_once, "merged": bool(size and size.merged_at_once)}
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

    def __init__(
        self, tracker: TranscriptTracker, procedure: Procedure, on_line: Callable[[str], None], slot: int | None
    ) -> None:
        self._tracker, self._procedure, self._on_line, self._slot = tracker, procedure, on_line, slot
        self._transcript, self._known, self._fresh = Transcript(procedure), KnownStates(), True

    def tell(self, changes: tuple[StateChange, ...]) -> None:
        self._known.enter(changes)
        self._transcript.answer(changes)

    def ask(self, step: int) -> tuple[tuple[StateChange, ...], tuple[Reject, ...]]:
        drafts, rejects = self._tracker.answer(self._transcript, step, self._fresh, self._on_line, self._slot)
        self._fresh = False
        changes = tuple(self._known.enter(self._tracker.rated(self._procedure, drafts)))
        self._transcript.answer(changes)
        if step == len(self._procedure.steps):
            _warn_if_dropped(self._transcript, self._procedure)
        return changes, rejects


def _warn_if_dropped(transcript: Transcript, procedure: Procedure) -> None:
    if transcript.dropped:
        warnings.warn(
            f"{procedure.id} is too long for the model: at the last steps, the model no longer saw steps 1 to "
            f"{transcript.dropped}. For better results, split the procedure into shorter ones",
            FluentsWarning,
            stacklevel=3,
        )


def embedded_engine(embedded: EmbeddedModel, slots: int = 1, *, at_once: int = 1, threads: int | None = None) -> Engine:
    """An engine with room for one transcript and as many answers as there are slots, or for so many transcripts
    `at_once` with an answer each."""
    model, adapter, size = embedded.base_path(), embedded.adapter.path, embedded.size
    if size:
        warn_if_memory_is_short(size.name, at_once)
    if at_once == 1:
        return transcript_engine(model, adapter, slots, threads)
    context, lora = at_once * (MAX_BYTES + MAX_TOKENS), unpacked(adapter)
    both, lora_beside = (merged(model, lora), None) if size and size.merged_at_once else (model, lora)
    return Engine(
        both, slots=at_once, context=context, threads=threads, adapter=lora_beside, shared=False, plain_attention=True
    )


def transcript_engine(model: Path, adapter: Path | None, slots: int = 1, threads: int | None = None) -> Engine:
    """An engine with room for the longest transcript and as many answers as there are slots."""
    lora = None if adapter is None else unpacked(adapter)
    context = MAX_BYTES + slots * MAX_TOKENS
    return Engine(model, slots=slots, context=context, threads=threads, adapter=lora, plain_attention=True)


# Confidence: how likely a change is right, from the probabilities of its tokens, calibrated on annotated procedures. A
# model is surer of what it says rightly, but its probabilities are not themselves the share of right changes. A
# logistic regression on them is, once fitted (`benchmarks/confidence.py`): a file beside each adapter holds its
# weights.

FIELDS = ("entity", "attribute", "before", "after")
FLOOR = -6.0
"""A log probability below this says no more than this."""
LATE = 8
"""Steps from this one on count as equally late: the procedures that calibrations are fitted on have few more."""


def line_features(tokens: Iterable[WrittenToken]) -> list[dict[str, float]]:
    """For each line of an answer: the mean log probability of each field's tokens, the least of all, its position.

    A token that holds a separator belongs to the field before it.
    """
    lines: list[list[list[float]]] = [[[] for _ in FIELDS]]
    field = 0
    for token in tokens:
        lines[-1][field].append(max(token.logprob, FLOOR))
        field = min(field + token.text.count(b"|"), len(FIELDS) - 1)
        if b"\n" in token.text:
            lines.append([[] for _ in FIELDS])
            field = 0
    return [_features(fields, number) for number, fields in enumerate(lines)]


def _features(fields: list[list[float]], number: int) -> dict[str, float]:
    found = {name: sum(values) / max(len(values), 1) for name, values in zip(FIELDS, fields, strict=True)}
    found["least"] = min((value for values in fields for value in values), default=FLOOR)
    found["position"] = math.log1p(number)
    return found


def context_features(procedure: Procedure, change: StateChange, count: int) -> dict[str, float]:
    """What the text says: whether it mentions the entity, so far and in this step, how late the step is; and how many
    changes the model gave in the step."""
    found = {
        "mentioned": float(mentioned(procedure, change.step, change.entity)),
        "now": float(named_in(procedure.steps[change.step - 1], change.entity)),
        "step": math.log1p(min(change.step, LATE)),
        "count": float(count),
    }
    return found if change.support is None else found | {"support": change.support}


def mean_features(several: Sequence[Features]) -> dict[str, float]:
    """The mean of each feature: of a change that several samples hold."""
    return {name: sum(one[name] for one in several) / len(several) for name in several[0]}


@dataclass(frozen=True)
class ConfidenceModel:
    """A logistic regression: the confidence is 1 / (1 + exp(−(base + Σ weight · feature)))."""

    base: float
    weights: dict[str, float]
    min_confidence: float
    """Changes below it are left out unless another value is asked for: the best cut on the data it was fitted on."""

    def __call__(self, features: Features) -> float:
        """The confidence of a change."""
        total = self.base + sum(weight * features[name] for name, weight in self.weights.items())
        return round(1 / (1 + math.exp(-max(-30.0, min(30.0, total)))), 3)


def fit_calibration(rows: Sequence[Features], right: Sequence[bool], *, penalty: float = 3.0) -> ConfidenceModel:
    """A model fitted on changes known to be right or wrong, by Newton's method; it cuts nothing yet.

    The `penalty` on the squares of the weights is for standardised features.
    """
    names = list(rows[0])
    values: Floats = np.array([[row[name] for name in names] for row in rows], dtype=float)
    labels: Floats = np.array(right, dtype=float)
    means, spreads = values.mean(axis=0), values.std(axis=0)
    spreads = np.where(spreads > 1e-9, spreads, 1.0)
    inputs = np.column_stack([np.ones(len(rows)), (values - means) / spreads])
    ridge = np.diag([1e-6, *[penalty] * len(names)])
    found = np.zeros(len(names) + 1)
    for _ in range(50):
        chance = 1 / (1 + np.exp(-np.clip(inputs @ found, -30, 30)))
        slope = inputs.T @ (chance - labels) + ridge @ found
        change = np.linalg.solve((inputs * (chance * (1 - chance))[:, None]).T @ inputs + ridge, slope)
        found -= change
        if np.abs(change).max() < 1e-8:
            break
    weights = found[1:] / spreads
    base = float(found[0] - weights @ means)
    return ConfidenceModel(base, {name: float(weight) for name, weight in zip(names, weights, strict=True)}, 0.0)


def way_of(samples: int) -> str:
    """Which calibration of an adapter is for so many samples."""
    return "one pass" if samples == 1 else "samples"


def calibration_path(adapter: Path) -> Path:
    """The file of calibrations beside an adapter."""
    return adapter.with_suffix(".confidence.json")


def read_calibrations(path: Path) -> dict[str, ConfidenceModel]:
    """The calibrations of a file; none where there is no such file."""
    if not path.is_file():
        return {}
    try:
        return {way: ConfidenceModel(**values) for way, values in json.loads(path.read_text(encoding="utf-8")).items()}
    except (ValueError, TypeError, AttributeError) as error:
        raise InputError(f"this is not a calibration file: {error}", where=path, fix="delete this file") from None
