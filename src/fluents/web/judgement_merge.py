"""Judgements of a backup on a trace that the store has already: they come after those that the store has."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import delete
from sqlalchemy.orm import Session, undefer

from fluents.web.archive import KeptTrace, get_row, index_changes, kept_traces
from fluents.web.corrections import judged
from fluents.web.tables import ChangeRow, CorrectionRow, TraceRow

Row = dict[str, Any]


class JudgementMerge:
    """Collects the judgements of such traces, and adds them at the end: only then all of them are known.

    In each trace they get the next numbers, in their order. The changes that people added get the next positions, and
    judgements on these changes move with them. What the store has already is kept once.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._rows: dict[str, list[Row]] = defaultdict(list)

    def take(self, row: Row) -> bool:
        """A row of a backup; True if the store does not have it."""
        is_new = self._session.get(CorrectionRow, row["id"]) is None
        rows = self._rows[row["trace_id"]]
        if is_new or row["verdict"] == "added":  # where an added change stands here is what others depend on
            rows.append(row)
        return is_new

    def finish(self) -> None:
        """Add them. A LookupError means that a judgement is about a change that the trace does not have."""
        for trace_id, rows in self._rows.items():
            self._session.expunge_all()
            trace = get_row(self._session, TraceRow, trace_id, undefer(TraceRow.record), lock=True)
            [kept] = kept_traces(self._session, trace)
            added = _renumbered(kept, rows)
            self._session.add_all(CorrectionRow(**row) for row in added)
            trace.corrections = len(kept.corrections) + len(added)
            self._session.flush()
            [now] = kept_traces(self._session, trace)
            self._session.execute(delete(ChangeRow).where(ChangeRow.trace_id == trace_id))
            index_changes(self._session, trace_id, judged(now.trace, now.corrections))
            self._session.flush()


def _renumbered(kept: KeptTrace, rows: Sequence[Row]) -> list[Row]:
    """Those that the trace does not have yet, with numbers and positions that it has free."""
    there = {one.id: one.position for one in kept.corrections}
    moved = {position: position for position in range(len(kept.trace.changes))}
    end = len(judged(kept.trace, kept.corrections))
    found: list[Row] = []
    for row in sorted(rows, key=_number):
        if row["id"] in there:
            moved[row["position"]] = there[row["id"]]
            continue
        if row["verdict"] == "added" and row["words"] is not None:
            moved[row["position"]] = end
            end += 1
        number = len(kept.corrections) + len(found) + 1
        found.append({**row, "number": number, "position": moved[row["position"]]})
    return found


def _number(row: Mapping[str, Any]) -> int:
    return int(row["number"])
