"""Who wrote the changes that people judge."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"

ID, NAME = sa.String(16), sa.String(64)


def upgrade() -> None:
    op.create_table(
        "annotation_authors",
        sa.Column("project_id", ID, primary_key=True),
        sa.Column("item_id", NAME, primary_key=True),
        sa.Column("author_id", ID, sa.ForeignKey("annotation_members.id"), primary_key=True),
        sa.ForeignKeyConstraint(
            ["project_id", "item_id"], ["annotation_items.project_id", "annotation_items.id"], ondelete="CASCADE"
        ),
    )
    op.create_index("ix_annotation_authors_author", "annotation_authors", ["author_id"])


def downgrade() -> None:
    op.drop_table("annotation_authors")
