"""The plan of a batch run: which shards there are, and which of them earlier runs have done."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fluents.batches.documents import InputDocument, InputFile, cut, find_files
from fluents.batches.stages import STAGES, BatchSettings, ShardTask, are_rows_of, in_order
from fluents.batches.store import Manifest, ShardDamagedError, ShardFile, ShardFormat, ShardStore
from fluents.errors import InputError
from fluents.scoring import check_choice

if TYPE_CHECKING:
    from fluents.weights.adapters import EmbeddedModel

SHARD_SIZE = 50
"""Procedures. On many workers that often fail, fewer are better (`benchmarks/batch_simulation.py`); but the slots of an
embedded model run empty at the end of each shard."""


@dataclass
class PlannedShard:
    """A shard of the input, and its file if it is there."""

    file: str
    count: int
    done: ShardFile | None = None
    retry: bool = False

    @property
    def is_done(self) -> bool:
        """Whether nothing of it is left to do."""
        return self.done is not None and not self.retry


@dataclass
class BatchPlan:
    """A run before it begins."""

    store: ShardStore
    settings: BatchSettings
    signed: Mapping[str, Any]
    """What of the settings the manifest records."""
    files: list[InputFile]
    shard_size: int
    shards: list[PlannedShard]
    part: tuple[int, int] | None = None
    notices: list[str] = field(default_factory=list)

    @property
    def ours(self) -> list[PlannedShard]:
        """The shards of this part, or all."""
        return self.shards if self.part is None else self.shards[self.part[0] - 1 :: self.part[1]]

    @property
    def left(self) -> list[PlannedShard]:
        """The shards of this part that are to be done."""
        return [shard for shard in self.ours if not shard.is_done]

    def tasks(self) -> Iterator[ShardTask]:
        """What is to be done, with its documents, read as they are needed."""
        wanted = {shard.file: shard for shard in self.left}
        places = iter(self.shards)
        for shard in cut(self.files, self.shard_size):
            planned = next(places, None)
            file = self.settings.file_name(shard.name, self.signed)
            if planned is None or planned.file != file:
                raise InputError(
                    "the input files changed during the run",
                    where=shard.documents[0].where,
                    fix="run the command again",
                )
            if file in wanted:
                yield ShardTask(file, shard.documents, retry=planned.done is not None)


def plan(
    sources: str | Path | Iterable[str | Path],
    out: str | Path,
    *,
    stages: Sequence[str] = STAGES,
    format: ShardFormat = "parquet",
    shard_size: int = SHARD_SIZE,
    max_steps: int = 1000,
    part: tuple[int, int] | None = None,
    retry_failed: bool = False,
    tracker: Mapping[str, Any] | None = None,
    on_notice: Callable[[str], None] | None = None,
    dry: bool = False,
) -> BatchPlan:
    """Read the input once, and see what earlier runs have done. A `dry` plan leaves the folder as it is."""
    check_choice("format", format, ShardFormat)
    for name, value in (("shard_size", shard_size), ("max_steps", max_steps)):
        if value < 1:
            raise InputError(f"`{name}` must be at least 1, not {value}", fix="give a positive number")
    if part is not None and not 1 <= part[0] <= part[1]:
        raise InputError(
            f"`part` must be K/N with K from 1 to N, not {part[0]}/{part[1]}",
            fix="give, for example, 3/100 for the third of 100 parts",
        )
    chosen = _plain(tracker or {})
    if chosen and "track" not in in_order(stages):
        raise InputError(
            f'`{next(iter(chosen))}` has no effect, because `stages` does not contain "track"',
            fix=f'add "track" to `stages`, or leave out `{next(iter(chosen))}`',
        )
    settings = BatchSettings(in_order(stages), chosen, max_steps, format)
    if runs_model(settings) and (at_once := _at_once(chosen)) > 1:
        settings = replace(settings, tracker={"at_once": at_once, **chosen})
    notices: list[str] = []
    files = find_files([sources] if isinstance(sources, str | Path) else sources, out, notices.append)
    if not files:
        raise InputError(
            "no input files found",
            fix="give files or folders with procedures; files in the output folder (`out`) are not read",
        )
    signed = settings.settings
    store = ShardStore(out)
    if not dry:
        store.create()
    manifest = store.read_manifest()
    _check_same_settings(manifest, signed, store)
    found = BatchPlan(store, settings, signed, files, shard_size, [], part, notices)
    _find_shards(found, manifest, retry_failed, dry)
    if on_notice is not None:
        for notice in found.notices:
            on_notice(notice)
    return found


def runs_model(settings: BatchSettings) -> bool:
    """Whether workers run a model themselves, and do not ask an endpoint or a file."""
    if "track" not in settings.stages or settings.tracker.get("replay"):
        return False
    model = settings.tracker.get("model")
    from fluents.weights.base_weights import is_embedded

    return model is None or is_embedded(str(model))


def _at_once(tracker: Mapping[str, Any]) -> int:
    """How many procedures the tracker takes side by side unless told otherwise."""
    if tracker.get("samples", 1) > 1 or tracker.keys() & {"setting", "checkpoint"}:
        return 1
    from fluents.prompts.transcript import VERSION
    from fluents.weights.base_weights import AT_ONCE

    opened = embedded_model(tracker)
    if opened.adapter.facts.prompt != VERSION:
        return 1
    return opened.size.at_once if opened.size else AT_ONCE


def embedded_model(tracker: Mapping[str, Any]) -> EmbeddedModel:
    """The embedded model that such options choose."""
    from fluents.weights.adapters import open_embedded
    from fluents.weights.base_weights import default_model

    model, adapter = tracker.get("model"), tracker.get("adapter")
    return open_embedded(model or (None if adapter else default_model()), adapter)


def _plain(tracker: Mapping[str, Any]) -> dict[str, Any]:
    """Options as JSON has them: they go to other processes, and other machines."""
    found = {name: str(value) if isinstance(value, Path) else value for name, value in tracker.items()}
    for name, value in found.items():
        if not isinstance(value, str | int | float | None):
            raise InputError(
                f"`{name}` must be a name, a path or a number, because each worker opens its own model",
                fix=f"give a name or a path as `{name}`",
            )
    for name in ("replay", "checkpoint", "adapter"):  # a file: workers may stand elsewhere
        if found.get(name) and Path(str(found[name])).exists():
            found[name] = str(Path(str(found[name])).resolve())
    return {name: value for name, value in found.items() if value is not None}


def _check_same_settings(manifest: Manifest | None, signed: Mapping[str, Any], store: ShardStore) -> None:
    if manifest is None:
        return
    now = json.loads(json.dumps(signed))
    before = manifest.settings
    for name in dict.fromkeys([*before, *now]):
        if before.get(name) != now.get(name):
            one, was, is_now = _differing(name, before.get(name), now.get(name))
            raise InputError(
                f"this folder contains the results of a run with other settings: {one} was {was}, but is now {is_now}",
                where=store.folder,
                fix="use the settings of that run, or choose another folder as `out`",
            )


def _differing(name: str, was: Any, now: Any) -> tuple[str, str, str]:
    if isinstance(was, dict) and isinstance(now, dict):
        name = next(key for key in [*was, *now] if was.get(key) != now.get(key))
        was, now = was.get(name), now.get(name)
    return name, _shown(was), _shown(now)


def _shown(value: Any) -> str:
    return "not given" if value is None else str(value)[:100]


def _find_shards(planned: BatchPlan, manifest: Manifest | None, retry_failed: bool, dry: bool) -> None:
    known = {shard.file: shard for shard in manifest.shards} if manifest else {}
    there = planned.store.names() if planned.store.system.isdir(planned.store.path) else set()
    for shard in cut(planned.files, planned.shard_size):
        file = planned.settings.file_name(shard.name, planned.signed)
        one = PlannedShard(file, len(shard.documents))
        if file in there:
            one.done = _checked(planned, file, shard.documents, known.get(file), dry)
        elif file in known:
            planned.notices.append(_missing(file))
        one.retry = retry_failed and one.done is not None and one.done.failures > 0
        planned.shards.append(one)
    if not planned.shards:
        raise InputError("the input files are empty", where=planned.files[0].name, fix="give files with procedures")
    gone = known.keys() - {shard.file for shard in planned.shards}
    if gone:
        rows = sum(known[file].procedures for file in gone)
        planned.notices.append(
            f"the input or the shard size has changed since the last run, so {len(gone)} of the {len(known)} shards of "
            f"that run ({rows:,} procedures) are no longer used. Their files are kept, but "
            "`fluents query` does not read them"
        )


def _checked(
    planned: BatchPlan, file: str, documents: Sequence[InputDocument], known: ShardFile | None, dry: bool
) -> ShardFile | None:
    """What is known of a file that is there; None, and a notice, if it is damaged."""
    try:
        return planned.store.check_shard(file, known, len(documents), partial(are_rows_of, documents))
    except FileNotFoundError:  # another task of an array job has set it aside
        planned.notices.append(_missing(file))
        return None
    except ShardDamagedError as error:
        moved = f"{file}.damaged" if dry else planned.store.set_aside(file)
        planned.notices.append(
            f"{error.what} ({file}). The damaged file is kept as {moved}, and this run creates the shard again"
        )
        return None


def _missing(file: str) -> str:
    return f"{file} is missing from the output folder, so it is created again"
