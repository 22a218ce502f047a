"""The papers' neural systems as a tracker: a checkpoint of `fluents train neural`, many procedures at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fluents.errors import InputError
from fluents.neural.decoding_options import Decoding
from fluents.records import Procedure, Provenance, Trace
from fluents.text.mentions import mentioned
from fluents.trackers import OnStep
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


class NeuralTracker:
    """Tracks with a trained checkpoint, which is loaded when it is first needed.

    A checkpoint that asks about one entity at a time takes the entities from `first`: the traces of a first tracker by
    procedure id, or that tracker itself.
    """

    at_once = 256
    """Procedures worth handing to `track_many` together."""

    def __init__(
        self,
        checkpoint: Path | str | None = None,
        settings: NeuralSettings | None = None,
        first: Mapping[str, Trace] | NeuralTracker | None = None,
    ) -> None:
        self.checkpoint = None if checkpoint is None else Path(checkpoint)
        self.settings = settings or NeuralSettings()
        self.first = first
        self._trained: Trained | None = None

    def track(self, procedure: Procedure, on_step: OnStep | None = None) -> Trace:
        """The changes of every step of one procedure."""
        return self.track_many([procedure], on_step)[0]

    def track_many(self, procedures: Sequence[Procedure], on_step: OnStep | None = None) -> list[Trace]:
        """The changes of every step of several procedures, step k of all of them in one batch."""
        trained = self.load()
        first = self.first
        if isinstance(first, NeuralTracker):
            first = {trace.id: trace for trace in first.track_many(procedures)}
        model = "" if self.checkpoint is None else self.checkpoint.resolve().name
        return traces(trained, procedures, self.settings, model=model, first=first, on_step=on_step)

    def load(self) -> Trained:
        """The checkpoint, loaded once."""
        from fluents.neural.checkpoint import load
        from fluents.neural.network import best_device

        if self._trained is None:
            if self.checkpoint is None:
                raise InputError(
                    "the tracker neural needs a checkpoint", fix="--checkpoint FOLDER, of `fluents train neural`"
                )
            self._trained = load(self.checkpoint, best_device())
        return self._trained


def traces(
    trained: Trained,
    procedures: Sequence[Procedure],
    settings: NeuralSettings,
    *,
    model: str,
    first: Mapping[str, Trace] | None = None,
    on_step: OnStep | None = None,
) -> list[Trace]:
    """What a loaded network says of procedures."""
    from fluents.neural.predict import predict, seeded

    with seeded(settings.seed):
        said = predict(trained, procedures, settings.decoding, first=first, rows=settings.rows, on_step=on_step)
    provenance = Provenance(
        tracker=f"neural {trained.card.system}",
        model=f"{trained.card.arch} {model}",
        prompt=trained.card.style,
        decoding=_decoding(settings, first),
        seed=settings.seed,
        version=__version__,
    )
    return [_trace(procedure, answered, provenance) for procedure, answered in zip(procedures, said, strict=True)]


def _trace(procedure: Procedure, said: Said, provenance: Provenance) -> Trace:
    changes = tuple(
        change.replace(mentioned=mentioned(procedure, step, change.entity))
        for step in sorted(said.changes)
        for change in said.changes[step]
    )
    return Trace(procedure=procedure, changes=changes, rejects=tuple(said.rejects), provenance=provenance)


def _decoding(settings: NeuralSettings, first: Mapping[str, Trace] | None) -> dict[str, Any]:
    told: dict[str, Any] = asdict(settings.decoding)
    if first:
        stage = next(iter(first.values())).provenance
        told["first"] = " ".join(part for part in (stage.tracker, stage.model, stage.dataset) if part)
    return told
