"""The tables of annotation projects, in the same store. As in `tables`, a change here needs a migration.

Decisions are only ever added. What else has a state (who holds a place, whether an item is decided) can be worked out
from them, and is kept so that the next item is found in an instant.
"""

from __future__ import annotations

from sqlalchemy import ForeignKey, ForeignKeyConstraint, Index, String, Text, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from fluents.web.tables import ID, Base

NAME = String(64)
"""Ids that clients or the library make: of items, of decisions."""


def _project() -> ForeignKey:
    return ForeignKey("annotation_projects.id", ondelete="CASCADE")


class ProjectRow(Base):
    """A project: its design, and what it was made from is in `SourceRow`."""

    __tablename__ = "annotation_projects"
    id: Mapped[str] = mapped_column(ID, primary_key=True)
    name: Mapped[str] = mapped_column(String(200), unique=True)
    created: Mapped[float]
    design: Mapped[str] = mapped_column(Text)
    """JSON of a `ProjectDesign`. The guideline that counts is the newest `GuidelineRow`."""


class SourceRow(Base):
    """A trace that the project works with."""

    __tablename__ = "annotation_sources"
    project_id: Mapped[str] = mapped_column(_project(), primary_key=True)
    role: Mapped[str] = mapped_column(String(16), primary_key=True)
    """`stage`: what enters a stage; `draft`; `system`: what a system predicted."""
    name: Mapped[str] = mapped_column(String(100), primary_key=True)
    """The number of the stage, or the name of the system."""
    number: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    procedure: Mapped[str] = mapped_column(Text)
    """Its id."""
    record: Mapped[str] = mapped_column(Text)
    """A line of JSONL."""


class StageRow(Base):
    """A stage that was opened. The newest is open until it is closed."""

    __tablename__ = "annotation_stages"
    project_id: Mapped[str] = mapped_column(_project(), primary_key=True)
    number: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    """Counted from 1, as in the design."""
    opened: Mapped[float]
    closed: Mapped[float | None]
    items: Mapped[int]
    left: Mapped[int | None]
    """How many traces go on; None while the stage is open, and until they are in `SourceRow`."""


class GuidelineRow(Base):
    """A version of the guideline."""

    __tablename__ = "annotation_guidelines"
    project_id: Mapped[str] = mapped_column(_project(), primary_key=True)
    version: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    text: Mapped[str] = mapped_column(Text)
    created: Mapped[float]


class MemberRow(Base):
    """Somebody who works on a project. Of the token, only its digest is kept."""

    __tablename__ = "annotation_members"
    id: Mapped[str] = mapped_column(ID, primary_key=True)
    project_id: Mapped[str] = mapped_column(_project())
    number: Mapped[int]
    """Counted from 1 in the project: A3 is the third. Pseudonyms are made of it."""
    name: Mapped[str] = mapped_column(Text)
    role: Mapped[str] = mapped_column(String(16))
    token: Mapped[str | None] = mapped_column(String(64), unique=True)
    """None of somebody who came with an imported history."""
    joined: Mapped[float]
    consented: Mapped[float | None]
    keys: Mapped[str] = mapped_column(Text)
    __table_args__ = (UniqueConstraint("project_id", "number", name="uq_annotation_members_number"),)


class InvitationRow(Base):
    """A link by which people join, as a digest."""

    __tablename__ = "annotation_invitations"
    id: Mapped[str] = mapped_column(ID, primary_key=True)
    project_id: Mapped[str] = mapped_column(_project(), index=True)
    code: Mapped[str] = mapped_column(String(64), unique=True)
    role: Mapped[str] = mapped_column(String(16))
    uses: Mapped[int]
    """How often it can still be used."""
    member_id: Mapped[str | None] = mapped_column(ForeignKey("annotation_members.id"))
    """Of a link that lets a member in again, with a new token."""
    created: Mapped[float]


class ItemRow(Base):
    """Something to decide on."""

    __tablename__ = "annotation_items"
    project_id: Mapped[str] = mapped_column(_project(), primary_key=True)
    id: Mapped[str] = mapped_column(NAME, primary_key=True)
    stage: Mapped[int]
    number: Mapped[int]
    """Its place in the order of the stage, from 0."""
    record: Mapped[str] = mapped_column(Text)
    """JSON of the `Item`, with what annotators must not see."""
    decided: Mapped[bool]
    __table_args__ = (Index("ix_annotation_items_order", "project_id", "stage", "decided", "number"),)


class PlaceRow(Base):
    """One of the places of an item: one judge's. Free, held until some time, or filled by a decision. An item that is
    decided has no free places.

    A place has one holder; the unique index sees to it that nobody has two places of an item, nor of items that are to
    be decided by different people.
    """

    __tablename__ = "annotation_places"
    project_id: Mapped[str] = mapped_column(ID, primary_key=True)
    item_id: Mapped[str] = mapped_column(NAME, primary_key=True)
    number: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    stage: Mapped[int]
    position: Mapped[int]
    """Its place in the order in which the stage is worked through."""
    apart: Mapped[str] = mapped_column(NAME)
    """One member can have only one place of all that share this: the item, or what the item is kept apart from."""
    holder: Mapped[str | None] = mapped_column(ForeignKey("annotation_members.id"))
    until: Mapped[float | None]
    """When the lease ends; None of a place that is free or filled."""
    decision: Mapped[str | None] = mapped_column(NAME)
    """The decision that fills it: its holder's latest on this item."""
    __table_args__ = (
        ForeignKeyConstraint(
            ["project_id", "item_id"], ["annotation_items.project_id", "annotation_items.id"], ondelete="CASCADE"
        ),
        Index("ix_annotation_places_apart", "project_id", "apart", "holder", unique=True),
        Index("ix_annotation_places_order", "project_id", "stage", "holder", "position"),
        Index("ix_annotation_places_until", "until"),
        Index("ix_annotation_places_holder", "holder", "until"),
    )


class AuthorRow(Base):
    """A member who wrote the change that an item asks about."""

    __tablename__ = "annotation_authors"
    project_id: Mapped[str] = mapped_column(ID, primary_key=True)
    item_id: Mapped[str] = mapped_column(NAME, primary_key=True)
    author_id: Mapped[str] = mapped_column(ForeignKey("annotation_members.id"), primary_key=True)
    __table_args__ = (
        ForeignKeyConstraint(
            ["project_id", "item_id"], ["annotation_items.project_id", "annotation_items.id"], ondelete="CASCADE"
        ),
        Index("ix_annotation_authors_author", "author_id"),
    )


class BlindPassRow(Base):
    """What a member wrote about an item before they saw its draft."""

    __tablename__ = "annotation_blind_passes"
    project_id: Mapped[str] = mapped_column(ID, primary_key=True)
    item_id: Mapped[str] = mapped_column(NAME, primary_key=True)
    author_id: Mapped[str] = mapped_column(ForeignKey("annotation_members.id"), primary_key=True)
    changes: Mapped[str] = mapped_column(Text)
    time: Mapped[float]
    __table_args__ = (
        ForeignKeyConstraint(
            ["project_id", "item_id"], ["annotation_items.project_id", "annotation_items.id"], ondelete="CASCADE"
        ),
    )


class DecisionRow(Base):
    """What somebody said of an item, or that they take it back. Never changed, never deleted."""

    __tablename__ = "annotation_decisions"
    number: Mapped[int] = mapped_column(primary_key=True)
    """In the order of the store: of two decisions of one author on one item, the later counts."""
    project_id: Mapped[str] = mapped_column(_project())
    id: Mapped[str] = mapped_column(NAME)
    """Made by the client, so that a decision that is sent twice counts once."""
    item_id: Mapped[str] = mapped_column(NAME)
    author_id: Mapped[str] = mapped_column(ForeignKey("annotation_members.id"))
    answer: Mapped[str] = mapped_column(Text)
    time: Mapped[float]
    seconds: Mapped[float | None]
    undoes: Mapped[str | None] = mapped_column(NAME)
    adjudicates: Mapped[bool]
    checks: Mapped[bool]
    """Whether an expert only checks the outcome with it."""
    guideline: Mapped[int]
    __table_args__ = (
        Index("ix_annotation_decisions_id", "project_id", "id", unique=True),
        Index("ix_annotation_decisions_item", "project_id", "item_id"),
        Index("ix_annotation_decisions_author", "author_id", "time"),
        Index("ix_annotation_decisions_undoes", "project_id", "undoes"),
    )
