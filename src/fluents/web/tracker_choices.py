"""The trackers that a server offers: what its clients may name, and what its worker opens."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fluents.errors import InputError, UnknownNameError
from fluents.web.resources import JobGiven, TrackerInfo
from fluents.web.worker import TrackerChoice
from fluents.weights.adapters import open_embedded
from fluents.weights.base_weights import BASES, default_model, is_checked, is_embedded

_NOT_FOR: dict[str, tuple[str, ...]] = {
    "embedded": (),
    "endpoint": ("min_confidence",),
    "replay": ("samples", "max_changes", "min_confidence"),
}
"""Options that a kind of tracker does not have."""


@dataclass(frozen=True)
class TrackerMenu:
    """Trackers by the names that clients use."""

    choices: dict[str, TrackerChoice]
    default: str

    def trackers(self) -> list[TrackerInfo]:
        """For clients: neither addresses nor places of keys."""
        return [_info(name, choice) for name, choice in self.choices.items()]

    def chosen(self, given: JobGiven) -> tuple[str, dict[str, Any]]:
        """The tracker that a job names, and the options of `open_tracker`."""
        name = self.default if given.tracker is None else given.tracker
        if name not in self.choices:
            raise UnknownNameError(
                f"this server has no tracker {name!r:.80}", fix=f"choose one of: {', '.join(self.choices)}"
            )
        kind = self.choices[name].kind
        options = given.model_dump(exclude={"tracker"}, exclude_none=True)
        for option in _NOT_FOR[kind]:
            if option in options:
                raise InputError(f"`{option}` has no effect with the tracker {name}", fix=f"leave out `{option}`")
        return name, options


def tracker_menu(
    model: str | None = None,
    *,
    adapter: str | None = None,
    base_url: str | None = None,
    key_file: Path | None = None,
    key_variable: str | None = None,
    replay: Path | None = None,
    pause: float = 0.0,
) -> TrackerMenu:
    """The embedded models; beside them, and then the default, the model that is named, or traces to replay.

    `model` is as `open_tracker` takes it: a size, a GGUF file, or the name of a model at `base_url`.
    """
    choices = {name: TrackerChoice(kind="embedded", model=name) for name in BASES}
    if replay is not None:
        if not replay.is_file():
            raise InputError("no such file", where=replay, fix="check the path")
        choices["replay"] = TrackerChoice(kind="replay", replay=replay.resolve(), pause=pause)
        return TrackerMenu(choices, "replay")
    name = model or (None if adapter else default_model())
    if name is not None and not is_embedded(name):
        from fluents.llm.credentials import find_key
        from fluents.llm.language_model import endpoint_url
        from fluents.trackers.llm.tracker import naming_embedded_models

        with naming_embedded_models():  # an error now rather than in a job
            find_key(endpoint_url(base_url), file=key_file, variable=key_variable)
        given = {"base_url": base_url, "key_file": key_file, "key_variable": key_variable}
        choices[name] = TrackerChoice(kind="endpoint", model=name, **given)
        return TrackerMenu(choices, name)
    for option, value in (("base_url", base_url), ("key_file", key_file), ("key_variable", key_variable)):
        if value is not None:
            raise InputError(
                f"`{option}` works only with a language model at an endpoint",
                fix="set `model` to the name of a model at the endpoint",
            )
    if adapter is None and name in choices:
        return TrackerMenu(choices, name)
    opened = open_embedded(name, adapter)  # an error now rather than in a job
    shown = Path(adapter or name or "").stem or opened.base
    choices[shown] = TrackerChoice(kind="embedded", model=name, adapter=adapter)
    return TrackerMenu(choices, shown)


def _info(name: str, choice: TrackerChoice) -> TrackerInfo:
    if choice.kind == "replay":
        return TrackerInfo(name=name, kind="replay", about="repeats traces of a file", ready=True)
    if choice.kind == "endpoint":
        return TrackerInfo(name=name, kind="endpoint", about="a language model at an endpoint", ready=True)
    base = BASES.get(choice.model or "")
    if base is None or choice.adapter is not None:
        return TrackerInfo(name=name, kind="embedded", about="an embedded model of yours", ready=True)
    return TrackerInfo(name=name, kind="embedded", about=base.about, ready=is_checked(base), bytes=base.size)
