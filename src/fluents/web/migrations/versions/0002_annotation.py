"""Annotation projects."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

ID, NAME = sa.String(16), sa.String(64)


def _project() -> sa.ForeignKey:
    return sa.ForeignKey("annotation_projects.id", ondelete="CASCADE")


def upgrade() -> None:
    op.create_table(
        "annotation_projects",
        sa.Column("id", ID, primary_key=True),
        sa.Column("name", sa.String(200), nullable=False, unique=True),
        sa.Column("created", sa.Double, nullable=False),
        sa.Column("design", sa.Text, nullable=False),
    )
    op.create_table(
        "annotation_sources",
        sa.Column("project_id", ID, _project(), primary_key=True),
        sa.Column("role", sa.String(16), primary_key=True),
        sa.Column("name", sa.String(100), primary_key=True),
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("procedure", sa.Text, nullable=False),
        sa.Column("record", sa.Text, nullable=False),
    )
    op.create_table(
        "annotation_stages",
        sa.Column("project_id", ID, _project(), primary_key=True),
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("opened", sa.Double, nullable=False),
        sa.Column("closed", sa.Double),
        sa.Column("items", sa.Integer, nullable=False),
        sa.Column("left", sa.Integer),
    )
    op.create_table(
        "annotation_guidelines",
        sa.Column("project_id", ID, _project(), primary_key=True),
        sa.Column("version", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("created", sa.Double, nullable=False),
    )
    op.create_table(
        "annotation_members",
        sa.Column("id", ID, primary_key=True),
        sa.Column("project_id", ID, _project(), nullable=False),
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("role", sa.String(16), nullable=False),
        sa.Column("token", sa.String(64), unique=True),
        sa.Column("joined", sa.Double, nullable=False),
        sa.Column("consented", sa.Double),
        sa.Column("keys", sa.Text, nullable=False),
        sa.UniqueConstraint("project_id", "number", name="uq_annotation_members_number"),
    )
    op.create_table(
        "annotation_invitations",
        sa.Column("id", ID, primary_key=True),
        sa.Column("project_id", ID, _project(), nullable=False, index=True),
        sa.Column("code", sa.String(64), nullable=False, unique=True),
        sa.Column("role", sa.String(16), nullable=False),
        sa.Column("uses", sa.Integer, nullable=False),
        sa.Column("member_id", ID, sa.ForeignKey("annotation_members.id")),
        sa.Column("created", sa.Double, nullable=False),
    )
    op.create_table(
        "annotation_items",
        sa.Column("project_id", ID, _project(), primary_key=True),
        sa.Column("id", NAME, primary_key=True),
        sa.Column("stage", sa.Integer, nullable=False),
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("record", sa.Text, nullable=False),
        sa.Column("decided", sa.Boolean, nullable=False),
    )
    op.create_index("ix_annotation_items_order", "annotation_items", ["project_id", "stage", "decided", "number"])
    op.create_table(
        "annotation_places",
        sa.Column("project_id", ID, primary_key=True),
        sa.Column("item_id", NAME, primary_key=True),
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("stage", sa.Integer, nullable=False),
        sa.Column("position", sa.Integer, nullable=False),
        sa.Column("apart", NAME, nullable=False),
        sa.Column("holder", ID, sa.ForeignKey("annotation_members.id")),
        sa.Column("until", sa.Double),
        sa.Column("decision", NAME),
        sa.ForeignKeyConstraint(
            ["project_id", "item_id"], ["annotation_items.project_id", "annotation_items.id"], ondelete="CASCADE"
        ),
    )
    op.create_index("ix_annotation_places_apart", "annotation_places", ["project_id", "apart", "holder"], unique=True)
    op.create_index("ix_annotation_places_order", "annotation_places", ["project_id", "stage", "holder", "position"])
    op.create_index("ix_annotation_places_until", "annotation_places", ["until"])
    op.create_index("ix_annotation_places_holder", "annotation_places", ["holder", "until"])
    op.create_table(
        "annotation_decisions",
        sa.Column("number", sa.Integer, primary_key=True),
        sa.Column("project_id", ID, _project(), nullable=False),
        sa.Column("id", NAME, nullable=False),
        sa.Column("item_id", NAME, nullable=False),
        sa.Column("author_id", ID, sa.ForeignKey("annotation_members.id"), nullable=False),
        sa.Column("answer", sa.Text, nullable=False),
        sa.Column("time", sa.Double, nullable=False),
        sa.Column("seconds", sa.Double),
        sa.Column("undoes", NAME),
        sa.Column("adjudicates", sa.Boolean, nullable=False),
        sa.Column("checks", sa.Boolean, nullable=False),
        sa.Column("guideline", sa.Integer, nullable=False),
    )
    op.create_index("ix_annotation_decisions_id", "annotation_decisions", ["project_id", "id"], unique=True)
    op.create_index("ix_annotation_decisions_item", "annotation_decisions", ["project_id", "item_id"])
    op.create_index("ix_annotation_decisions_author", "annotation_decisions", ["author_id", "time"])
    op.create_index("ix_annotation_decisions_undoes", "annotation_decisions", ["project_id", "undoes"])


def downgrade() -> None:
    for table in (
        "decisions",
        "places",
        "items",
        "invitations",
        "members",
        "guidelines",
        "stages",
        "sources",
        "projects",
    ):
        op.drop_table(f"annotation_{table}")
