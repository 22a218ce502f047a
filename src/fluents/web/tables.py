"""The tables of the store. A change here needs a migration in `migrations/versions`; a test compares the two.

Times are seconds since 1970, so that both databases give back what they were given. Records and lists are JSON in text
columns, where even a NUL is written as an escape, which PostgreSQL would refuse otherwise.
"""

from __future__ import annotations

from sqlalchemy import Double, ForeignKey, Index, LargeBinary, String, Text
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

ID = String(16)


class Base(DeclarativeBase):
    """What all tables share."""

    type_annotation_map = {float: Double}


class DocumentRow(Base):
    """A text and its steps."""

    __tablename__ = "documents"
    id: Mapped[str] = mapped_column(ID, primary_key=True)
    created: Mapped[float] = mapped_column(index=True)
    name: Mapped[str | None] = mapped_column(Text)
    text: Mapped[bytes] = mapped_column(LargeBinary, deferred=True)
    """As it was given: bytes, because no database column holds every text."""
    read: Mapped[str] = mapped_column(Text)
    """The procedure as it was read, a line of JSONL; `corrected` as a person corrected it."""
    corrected: Mapped[str | None] = mapped_column(Text)
    warnings: Mapped[str] = mapped_column(Text)
    stems: Mapped[str] = mapped_column(Text)
    """What a search looks at: see `search_words.stems`."""


class JobRow(Base):
    """A document to be tracked. The steps are those of the time when it was asked for."""

    __tablename__ = "jobs"
    id: Mapped[str] = mapped_column(ID, primary_key=True)
    document_id: Mapped[str] = mapped_column(ForeignKey("documents.id", ondelete="CASCADE"), index=True)
    client: Mapped[str] = mapped_column(String(64), index=True)
    state: Mapped[str] = mapped_column(String(16), index=True)
    tracker: Mapped[str] = mapped_column(Text)
    options: Mapped[str] = mapped_column(Text)
    procedure: Mapped[str] = mapped_column(Text)
    created: Mapped[float] = mapped_column(index=True)
    started: Mapped[float | None]
    ended: Mapped[float | None]
    steps: Mapped[int]
    done: Mapped[int]
    failures: Mapped[int]
    """How often its worker ended since a step was finished."""
    error: Mapped[str | None] = mapped_column(Text)
    provenance: Mapped[str | None] = mapped_column(Text)
    """Of its trace, from when the worker has opened the tracker."""


class EventRow(Base):
    """What happened to a job, in order. Those of the kind `step` are its finished steps."""

    __tablename__ = "events"
    job_id: Mapped[str] = mapped_column(ForeignKey("jobs.id", ondelete="CASCADE"), primary_key=True)
    number: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    kind: Mapped[str] = mapped_column(String(16))
    data: Mapped[str] = mapped_column(Text)


class TraceRow(Base):
    """A trace, tracked or uploaded, in the model's words."""

    __tablename__ = "traces"
    id: Mapped[str] = mapped_column(ID, primary_key=True)
    document_id: Mapped[str] = mapped_column(ForeignKey("documents.id", ondelete="CASCADE"), index=True)
    job_id: Mapped[str | None] = mapped_column(ForeignKey("jobs.id", ondelete="CASCADE"), index=True)
    name: Mapped[str] = mapped_column(Text)
    created: Mapped[float] = mapped_column(index=True)
    record: Mapped[str] = mapped_column(Text, deferred=True)
    """A line of JSONL."""
    steps: Mapped[int]
    changes: Mapped[int]
    corrections: Mapped[int]


class ChangeRow(Base):
    """A change as a search sees it: its current words as stems between spaces. A wrong one has no row."""

    __tablename__ = "changes"
    trace_id: Mapped[str] = mapped_column(ForeignKey("traces.id", ondelete="CASCADE"), primary_key=True)
    position: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    step: Mapped[int]
    entity: Mapped[str] = mapped_column(Text)
    attribute: Mapped[str] = mapped_column(Text)
    before: Mapped[str] = mapped_column(Text)
    after: Mapped[str] = mapped_column(Text)


class CorrectionRow(Base):
    """A judgement on a change. None is ever changed; the latest counts."""

    __tablename__ = "corrections"
    id: Mapped[str] = mapped_column(ID, primary_key=True)
    trace_id: Mapped[str] = mapped_column(ForeignKey("traces.id", ondelete="CASCADE"))
    number: Mapped[int]
    """Counted from 1 in its trace."""
    position: Mapped[int]
    verdict: Mapped[str] = mapped_column(String(16))
    step: Mapped[int]
    words: Mapped[str | None] = mapped_column(Text)
    created: Mapped[float]
    __table_args__ = (Index("ix_corrections_trace_number", "trace_id", "number", unique=True),)
