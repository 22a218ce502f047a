"""The embedded tracker: a small model and an adapter, offline, on a laptop's processor."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from fluents.decoding.consensus import Consensus, consensus
from fluents.decoding.sampling import Sampling
from fluents.decoding.state_carryover import KnownStates
from fluents.prompts.local import MAX_PROMPT_BYTES, STYLE_WORDS, VERSION, Style, choose_style, grammar, prompt, read
from fluents.records import Procedure, Provenance, Reject, StateChange, Trace
from fluents.segmentation.languages import warn_of_language
from fluents.text.embedders import load_embedder
from fluents.text.mentions import mentioned
from fluents.trackers import OnStep
from fluents.trackers.llama_engine import Engine, Sampler
from fluents.version import __version__
from fluents.weights import ensure
from fluents.weights.adapters import ADAPTERS, Adapter, open_adapter
from fluents.weights.merge import merged

LANGUAGES = ("en",)
"""The languages the shipped adapters were trained on."""
MOST_LINES = 24
"""Lines a single answer may have."""
CONTEXT_PER_SLOT = 320
"""Tokens of answer a slot can hold beside the prompt, which all slots share and which has a token a byte at most."""


@dataclass(frozen=True)
class Voter:
    """An adapter (the name of a shipped one, or the path of a file) and the style it is asked to answer in."""

    adapter: str
    style: Style = "plain"


@dataclass(frozen=True)
class LocalSettings:
    """How the embedded tracker works. The named settings below are the ones that were measured."""

    voters: tuple[Voter, ...] = (Voter("both", "clean"),)
    """More than one vote together, each with all its samples."""
    sampling: Sampling = field(default_factory=Sampling)
    consensus: Consensus = field(default_factory=lambda: Consensus(exact=4, most=7, distinct=True, no_change=1.3))
    carry: bool = True
    """Whether entities keep their names from step to step and states begin where they were left. Readers want it; it
    costs the published metrics two points of BLEU, which know each step alone and reward every wording."""
    seed: int = 1


DEFAULT_SETTING = LocalSettings()
"""For readers: a handful of distinct changes a step."""

FAST = LocalSettings(
    voters=(Voter("both", "clean sorted"),), sampling=Sampling(samples=1, temperature=0, max_tokens=128)
)
"""One pass, the likeliest answer."""

_TWO = (Voter("both"), Voter("both-2"))
_FOUR = (Voter("openpi-c"), Voter("both", "clean"), Voter("both-2", "clean"), Voter("both", "clean"))
_METRIC = Consensus(exact=4, candidates=160, no_change=1.3)
OPENPI = LocalSettings(_TWO, Sampling(samples=32), replace(_METRIC, most=30, recall=1.3), carry=False)
OPENPI_C = LocalSettings(_FOUR, Sampling(samples=20), replace(_METRIC, most=24, recall=1.15), carry=False)
"""For the first metric, which rewards saying a thing in several wordings: not for readers."""

_CLUSTERS = Consensus(exact=1, most=40, candidates=80, no_change=1.3, recall=2, grouped=True)
OPENPI_CLUSTERS = replace(OPENPI, consensus=_CLUSTERS)
OPENPI_C_CLUSTERS = replace(OPENPI_C, consensus=_CLUSTERS)
"""For OpenPI-C's metric, which takes the best wording of a cluster: every meaning in all wordings that cost nothing.
Even less for readers. Needs the encoder the metric is taken with, and with it the extra `embed`."""

SETTINGS = {
    "default": DEFAULT_SETTING,
    "fast": FAST,
    "openpi": OPENPI,
    "openpi-c": OPENPI_C,
    "openpi-clusters": OPENPI_CLUSTERS,
    "openpi-c-clusters": OPENPI_C_CLUSTERS,
}


def with_adapter(settings: LocalSettings, adapter: str | Path, style: Style | None = None) -> LocalSettings:
    """The same settings with this adapter alone, asked in `style`, or in the style that suits the settings best."""
    taught = open_adapter(adapter).styles
    one_pass = settings.sampling.temperature == 0
    return replace(settings, voters=(Voter(str(adapter), choose_style(taught, style, one_pass=one_pass)),))


CLUSTER_EMBEDDER = "all-MiniLM-L6-v2"


class LocalTracker:
    """Tracks with the embedded model. The model is loaded when the first procedure is tracked.

    `on_draft` is told every line that an answer of the model has just written, before the answers have agreed: so that
    somebody who waits sees something within seconds.
    """

    on_draft: Callable[[str], None] | None = None

    def __init__(self, settings: LocalSettings = DEFAULT_SETTING, samplers: list[Sampler] | None = None) -> None:
        self.settings = settings
        self._samplers = samplers
        self._adapters = {voter.adapter: open_adapter(voter.adapter) for voter in settings.voters}
        self._embedder = load_embedder(CLUSTER_EMBEDDER) if settings.consensus.grouped else None

    def track(self, procedure: Procedure, on_step: OnStep | None = None) -> Trace:
        """The changes of every step, each knowing its support and whether the text mentions its entity.

        Issues a FluentsWarning if the text is in a language that the shipped adapters do not know (`LANGUAGES`).
        """
        if all(name in ADAPTERS for name in self._adapters):
            warn_of_language(procedure, LANGUAGES)
        if self._samplers is None:
            loaded = {
                name: _load(adapter, self.settings.sampling.samples, self._drafted)
                for name, adapter in self._adapters.items()
            }
            self._samplers = [loaded[voter.adapter] for voter in self.settings.voters]
        world = KnownStates()
        changes: list[StateChange] = []
        rejects: list[Reject] = []
        for step in range(1, len(procedure.steps) + 1):
            found, unread = self._step(procedure, step)
            if self.settings.carry:
                found = world.enter(found)
            changes += [change.replace(mentioned=mentioned(procedure, step, change.entity)) for change in found]
            rejects += unread
            if on_step:
                on_step(step, len(procedure.steps))
        return Trace(
            procedure=procedure,
            changes=tuple(changes),
            rejects=tuple(rejects),
            provenance=Provenance(
                tracker="local",
                model=self._model_name(),
                prompt=VERSION,
                decoding=self._decoding(),
                seed=self.settings.seed,
                version=__version__,
            ),
        )

    def _model_name(self) -> str:
        adapters = [self._adapters[voter.adapter] for voter in self.settings.voters]
        return " + ".join([adapters[0].base, *(adapter.name for adapter in adapters)])

    def _drafted(self, line: str) -> None:
        if self.on_draft:
            self.on_draft(line)

    def _step(self, procedure: Procedure, step: int) -> tuple[list[StateChange], list[Reject]]:
        samples: list[list[StateChange]] = []
        rejects: list[Reject] = []
        for number, (voter, sampler) in enumerate(zip(self.settings.voters, self._samplers or (), strict=True)):
            text = prompt(procedure, step, style=voter.style)
            # Far apart, as the samples of one prompt take the seeds that follow.
            seed = (self.settings.seed * 1_000_003 + step * 4_099 + number * 1_021) % 2**31
            for answer in sampler.sample(text, self.settings.sampling, seed):
                found, unread = read(answer, step)
                samples.append(found)
                # A line of one sample has no place among the step's answers: a metric must not count it as one.
                rejects += [reject.replace(position=None) for reject in unread]
        return consensus(samples, self.settings.consensus, self._embedder), rejects

    def _decoding(self) -> dict[str, Any]:
        settings = {
            "styles": [STYLE_WORDS[voter.style].strip() for voter in self.settings.voters],
            **asdict(self.settings.sampling),
        }
        settings["carry"] = self.settings.carry
        if self._embedder is not None:
            settings["embedder"] = self._embedder.name
        return settings | {f"consensus_{name}": value for name, value in asdict(self.settings.consensus).items()}


class _Adapted:
    """The engine with one adapter, its answers held to the grammar."""

    def __init__(self, engine: Engine, on_line: Callable[[str], None]) -> None:
        self._answer = partial(engine.sample, grammar=grammar(MOST_LINES), on_line=on_line)

    def sample(self, prompt: str, sampling: Sampling, seed: int) -> list[str]:
        return self._answer(prompt, sampling, seed)


def _load(adapter: Adapter, samples: int, on_line: Callable[[str], None]) -> Sampler:
    slots = min(samples, 16)
    model = merged(ensure(adapter.base), adapter.path)
    return _Adapted(Engine(model, slots=slots, context=MAX_PROMPT_BYTES + slots * CONTEXT_PER_SLOT), on_line)
