"""The embedded tracker of the published metrics, and of adapters trained in its form: consensus over many samples."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from fluents.errors import InputError, UnknownNameError
from fluents.prompts.local import MAX_PROMPT_BYTES, STYLE_WORDS, VERSION, Style, choose_style, grammar, prompt, read
from fluents.records import Procedure, Provenance, Reject, StateChange
from fluents.text.matchers import KnownStates
from fluents.text.names import mentioned
from fluents.trackers import Setting
from fluents.trackers.consensus import Consensus, consensus
from fluents.trackers.embedded import EmbeddedTracker, Engine, Sampler, Sampling, StepByStep, loaded_engine
from fluents.version import __version__
from fluents.weights import ensure
from fluents.weights.adapters import Adapter, merged, open_adapter, unpacked
from fluents.weights.base_weights import find

if TYPE_CHECKING:
    from fluents.text.embedders import Embedder

GRAMMAR = grammar(24)
"""What an answer is held to: so many lines at most."""
CONTEXT_PER_SLOT = 320
"""Tokens of answer a slot can hold beside the prompt, which all slots share and which has a token a byte at most."""


@dataclass(frozen=True)
class Voter:
    """An adapter (the name of a shipped one, or the path of a file) and the style it is asked to answer in."""

    adapter: str
    style: Style = "plain"


@dataclass(frozen=True)
class LocalSettings:
    """How the tracker works. The named settings below are the ones that were measured."""

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

_METRIC = Consensus(exact=4, most=24, candidates=160, no_change=1.3, recall=1.15)
OPENPI = LocalSettings((Voter("openpi-base"),), Sampling(samples=24), _METRIC, carry=False)
OPENPI_C = replace(OPENPI, voters=(Voter("openpi-base", "clean"),))
"""For the first metric, which rewards saying a thing in several wordings: not for readers."""

_CLUSTERS = Consensus(exact=1, most=40, candidates=80, no_change=1.3, recall=2, grouped=True)
"""For OpenPI-C's metric, which takes the best wording of a cluster: every meaning in all wordings that cost nothing.
Even less for readers. Needs the encoder the metric is taken with, and with it the extra `embed`."""

_DISTINCT = replace(_CLUSTERS, most=20, recall=1, one_wording=True)
"""To show what other wordings bring in both metrics: every meaning once. Needs the encoder too."""

SETTINGS: dict[Setting, LocalSettings] = {
    "openpi": OPENPI,
    "openpi-c": OPENPI_C,
    "openpi-clusters": replace(OPENPI, consensus=_CLUSTERS),
    "openpi-c-clusters": replace(OPENPI_C, consensus=_CLUSTERS),
    "openpi-distinct": replace(OPENPI, consensus=_DISTINCT),
    "openpi-c-distinct": replace(OPENPI_C, consensus=_DISTINCT),
}


def with_adapter(settings: LocalSettings, adapter: str | Path, style: Style | None = None) -> LocalSettings:
    """The same settings with this adapter alone, asked in `style`, or in the style that suits the settings best."""
    return replace(settings, voters=(Voter(str(adapter), style_for(open_adapter(adapter), settings.sampling, style)),))


def style_for(adapter: Adapter, sampling: Sampling, style: str | None = None) -> Style:
    """The style to ask an adapter in: `style`, which it must have been taught, or the one that suits the sampling."""
    if adapter.facts.prompt != VERSION:
        raise InputError(
            f"the adapter was trained with prompt version {adapter.facts.prompt}, but prompt version {VERSION} is "
            "needed here",
            where=adapter.path,
            fix="choose both, openpi-base, or an adapter that `fluents train adapter --prompt steps` trained",
        )
    return choose_style(adapter.styles, style, one_pass=sampling.temperature == 0)


CLUSTER_EMBEDDER = "all-MiniLM-L6-v2"


def local_settings(
    setting: Setting | None = None,
    *,
    adapter: str | Path | None = None,
    samples: int | None = None,
    max_changes: int | None = None,
    seed: int = 1,
) -> LocalSettings:
    """A named setting, or one for readers, with what is changed of it. One sample is the likeliest answer."""
    if setting is not None and setting not in SETTINGS:
        raise UnknownNameError(f"unknown `setting` {setting!r}", fix=f"choose one of: {', '.join(get_args(Setting))}")
    for_readers = FAST if samples == 1 else DEFAULT_SETTING
    chosen = replace(for_readers if setting is None else SETTINGS[setting], seed=seed)
    if adapter is not None:
        if setting is not None:
            raise InputError(
                f"`adapter` has no effect with `setting` {setting}, which has its own adapter",
                fix="leave out `adapter` or `setting`",
            )
        chosen = with_adapter(chosen, adapter)
    if samples is not None:
        chosen = replace(chosen, sampling=replace(chosen.sampling, samples=samples))
    if max_changes is not None:
        chosen = replace(chosen, consensus=replace(chosen.consensus, most=max_changes))
    return chosen


class LocalTracker(EmbeddedTracker):
    """The tracker of the published metrics. Every change knows its support."""

    def __init__(self, settings: LocalSettings = DEFAULT_SETTING, samplers: list[Sampler] | None = None) -> None:
        self.settings = settings
        self._given = self._samplers = samplers
        self.adapters = [open_adapter(voter.adapter) for voter in settings.voters]
        self._embedder = _cluster_embedder() if settings.consensus.grouped else None

    @cached_property
    def provenance(self) -> Provenance:
        return Provenance(
            tracker="local",
            model=" + ".join([self.adapters[0].base, *(adapter.name for adapter in self.adapters)]),
            prompt=VERSION,
            decoding=self._decoding(),
            seed=self.settings.seed,
            version=__version__,
        )

    def begin(self, procedure: Procedure, on_line: Callable[[str], None], slot: int | None = None) -> StepByStep:  # noqa: ARG002 - its samples fill the slots
        return _Voters(self, procedure, on_line)

    def close(self) -> None:
        """Let go of the model, which stays loaded for other trackers for a while."""
        self._samplers = self._given

    def agreed(
        self, procedure: Procedure, step: int, on_line: Callable[[str], None]
    ) -> tuple[list[StateChange], tuple[Reject, ...]]:
        """What the samples of all voters agree on."""
        samples: list[list[StateChange]] = []
        rejects: list[Reject] = []
        for number, (voter, sampler) in enumerate(zip(self.settings.voters, self._loaded(), strict=True)):
            text = prompt(procedure, step, style=voter.style)
            # Far apart, as the samples of one prompt take the seeds that follow.
            seed = (self.settings.seed * 1_000_003 + step * 4_099 + number * 1_021) % 2**31
            for answer in sampler.sample(text, self.settings.sampling, seed, GRAMMAR, on_line):
                found, unread = read(answer, step)
                samples.append(found)
                # A line of one sample has no place among the step's answers: a metric must not count it as one.
                rejects += [reject.replace(position=None) for reject in unread]
        return consensus(samples, self.settings.consensus, self._embedder), tuple(rejects)

    def _loaded(self) -> list[Sampler]:
        if self._samplers is None:
            slots = min(self.settings.sampling.samples, 16)
            self._samplers = [
                loaded_engine((one.sha256, slots), partial(_engine, one, slots), MAX_LOADED) for one in self.adapters
            ]
        return self._samplers

    def _decoding(self) -> dict[str, Any]:
        settings = {
            "styles": [STYLE_WORDS[voter.style].strip() for voter in self.settings.voters],
            **asdict(self.settings.sampling),
        }
        settings["carry"] = self.settings.carry
        if self._embedder is not None:
            settings["embedder"] = self._embedder.name
        return settings | {f"consensus_{name}": value for name, value in asdict(self.settings.consensus).items()}


def _cluster_embedder() -> Embedder:
    from fluents.text.embedders import load_embedder

    return load_embedder(CLUSTER_EMBEDDER)


class _Voters:
    """The tracker at work on one procedure."""

    def __init__(self, tracker: LocalTracker, procedure: Procedure, on_line: Callable[[str], None]) -> None:
        self._tracker, self._procedure, self._on_line = tracker, procedure, on_line
        self._known = KnownStates()

    def tell(self, changes: tuple[StateChange, ...]) -> None:
        self._known.enter(changes)

    def ask(self, step: int) -> tuple[tuple[StateChange, ...], tuple[Reject, ...]]:
        found, rejects = self._tracker.agreed(self._procedure, step, self._on_line)
        if self._tracker.settings.carry:
            found = self._known.enter(found)
        return tuple(c.replace(mentioned=mentioned(self._procedure, step, c.entity)) for c in found), rejects


MAX_LOADED = 3
"""Engines that stay in memory."""


def _engine(adapter: Adapter, slots: int) -> Engine:
    base, context = ensure(adapter.base), MAX_PROMPT_BYTES + slots * CONTEXT_PER_SLOT
    if find(adapter.base).merged_at_once:
        return Engine(merged(base, adapter.path), slots=slots, context=context)
    return Engine(base, slots=slots, context=context, adapter=unpacked(adapter.path))
