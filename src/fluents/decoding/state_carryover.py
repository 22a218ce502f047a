"""What one step leaves to the next: the names things go by, and the states they are in."""

from __future__ import annotations

from collections.abc import Iterable

from fluents.records import StateChange
from fluents.text.matchers import same_state
from fluents.text.names import plain_name


class KnownStates:
    """What is known so far: how each entity is called, and the last state of each of its attributes."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._states: dict[tuple[str, str], str] = {}

    def enter(self, changes: Iterable[StateChange]) -> list[StateChange]:
        """The changes of the next step, entities called as before, and states beginning where they were left.

        Whatever a change says was before, it becomes the last known "after": the model sees one step at a time and does
        not know what it said of the earlier ones. A change into the state that is known already is none ("hot" again),
        and is dropped; so is a second one that says what an earlier of the step says.
        """
        entered: dict[tuple[str, str, str], StateChange] = {}
        for change in changes:
            change = change.replace(entity=self._names.setdefault(plain_name(change.entity), change.entity))
            known = self._states.get(_topic(change))
            if known is not None:
                if same_state(known, change.after):
                    continue
                change = change.replace(before=known)
            if plain_name(change.before) != plain_name(change.after):
                entered.setdefault((*_topic(change), plain_name(change.after)), change)
        for change in entered.values():
            self._states[_topic(change)] = change.after
        return list(entered.values())


def _topic(change: StateChange) -> tuple[str, str]:
    return plain_name(change.entity), plain_name(change.attribute)
