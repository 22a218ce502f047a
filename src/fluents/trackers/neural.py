"""The papers' neural systems as a tracker: a checkpoint of `fluents train neural`, many procedures at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fluents.neural.inputs import Decoding
from fluents.records import Procedure, Provenance, Trace
from fluents.text.names import mentioned
from fluents.trackers import Listener, Tracker
from fluents.version import __version__

if TYPE_CHECKING:
    from fluents.neural.checkpoint import Trained
    from fluents.neural.predict import Said


@dataclass(frozen=True)
class NeuralSettings:
    """How a checkpoint is asked."""

    decoding: Decoding = field(default_factory=Decoding)
    rows: int = 64
    """Questions answered together; fewer need less memory."""
    seed: int = 1


class NeuralTracker(Tracker):
    """Tracks with a trained checkpoint, which is loaded when it is first needed.

    A checkpoint that asks about one entity at a time takes the entities from `first`: the traces of a first tracker by
    procedure id, or that tracker itself.
    """

    at_once = 256
    """Procedures answered together."""

    def __init__(
        self,
        checkpoint: Path | str,
        settings: NeuralSettings | None = None,
        first: Mapping[str, Trace] | NeuralTracker | None = None,
    ) -> None:
        self.checkpoint = Path(checkpoint)
        self.settings = settings or NeuralSettings()
        self.first = first
        self._trained: Trained | None = None

    @property
    def provenance(self) -> Provenance:
        first: Provenance | None = None
        if isinstance(self.first, NeuralTracker):
            first = self.first.provenance
        elif self.first:
            first = next(iter(self.first.values())).provenance
        return _provenance(self.load(), self.settings, self.checkpoint.resolve().name, first)

    def track(self, procedure: Procedure, listener: Listener | None = None, done: Trace | None = None) -> Trace:
        """The changes of every step of one procedure. An unfinished one is begun anew: its memory is not kept."""
        if done is not None and done.covered is None:
            return done
        return self._together([procedure], listener)[0]

    def track_many(
        self, procedures: Iterable[Procedure], listener: Listener | None = None, done: Mapping[str, Trace] | None = None
    ) -> Iterator[Trace]:
        """Likewise of several procedures, step k of all of them in one batch."""
        whole = {name: trace for name, trace in (done or {}).items() if trace.covered is None}
        left = iter(procedures)
        while part := list(islice(left, self.at_once)):
            asked = self._together([one for one in part if one.id not in whole], listener)
            answered = {trace.id: trace for trace in asked} | whole
            yield from (answered[procedure.id] for procedure in part)

    def _together(self, procedures: Sequence[Procedure], listener: Listener | None) -> list[Trace]:
        first = self.first
        if isinstance(first, NeuralTracker):
            first = {trace.id: trace for trace in first.track_many(procedures)}
        return traces(self.load(), procedures, self.settings, self.provenance, first=first, listener=listener)

    def load(self) -> Trained:
        """The checkpoint, loaded once; what it needs and does not have is an error."""
        from fluents.neural.checkpoint import load
        from fluents.neural.network import best_device
        from fluents.neural.predict import entities_missing

        if self._trained is None:
            trained = load(self.checkpoint, best_device())
            if trained.system.entity and self.first is None:
                raise entities_missing()
            if isinstance(self.first, NeuralTracker):
                self.first.load()
            self._trained = trained
        return self._trained


def open_checkpoint(
    checkpoint: Path | str, settings: NeuralSettings | None = None, first: Path | str | None = None
) -> NeuralTracker:
    """A tracker of a checkpoint. `first` names the entities, where it needs them: a checkpoint, a file or a dataset."""
    from fluents.data.file_formats import read_traces
    from fluents.neural.inputs import CARD

    if first is None:
        return NeuralTracker(checkpoint, settings)
    if (Path(first) / CARD).is_file():
        return NeuralTracker(checkpoint, settings, NeuralTracker(first, settings))
    return NeuralTracker(checkpoint, settings, {trace.id: trace for trace in read_traces(str(first))})


def traces(
    trained: Trained,
    procedures: Sequence[Procedure],
    settings: NeuralSettings,
    provenance: Provenance | None = None,
    *,
    first: Mapping[str, Trace] | None = None,
    listener: Listener | None = None,
) -> list[Trace]:
    """What a loaded network says of procedures."""
    from fluents.neural.predict import predict, seeded

    made = provenance or _provenance(trained, settings, "", None)

    def finished(place: int, said: Said, whole: bool) -> None:
        if listener:
            listener.on_step(_trace(procedures[place], said, made, whole))

    with seeded(settings.seed):
        said = predict(trained, procedures, settings.decoding, first=first, rows=settings.rows, on_turn=finished)
    return [_trace(procedure, answered, made) for procedure, answered in zip(procedures, said, strict=True)]


def _provenance(trained: Trained, settings: NeuralSettings, model: str, first: Provenance | None) -> Provenance:
    decoding: dict[str, Any] = asdict(settings.decoding)
    if first:
        decoding["first"] = " ".join(part for part in (first.tracker, first.model, first.dataset) if part)
    return Provenance(
        tracker=f"neural {trained.card.system}",
        model=f"{trained.card.arch} {model}",
        prompt=trained.card.style,
        decoding=decoding,
        seed=settings.seed,
        version=__version__,
    )


def _trace(procedure: Procedure, said: Said, provenance: Provenance, whole: bool = True) -> Trace:
    changes = tuple(
        change.replace(mentioned=mentioned(procedure, step, change.entity))
        for step in sorted(said.changes)
        for change in said.changes[step]
    )
    return Trace(
        procedure=procedure,
        changes=changes,
        covered=None if whole else tuple(sorted(said.changes)),
        rejects=tuple(said.rejects),
        provenance=provenance,
    )
