"""What people write before they see a draft."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"

ID, NAME = sa.String(16), sa.String(64)


def upgrade() -> None:
    op.create_table(
        "annotation_blind_passes",
        sa.Column("project_id", ID, primary_key=True),
        sa.Column("item_id", NAME, primary_key=True),
        sa.Column("author_id", ID, sa.ForeignKey("annotation_members.id"), primary_key=True),
        sa.Column("changes", sa.Text, nullable=False),
        sa.Column("time", sa.Double, nullable=False),
        sa.ForeignKeyConstraint(
            ["project_id", "item_id"], ["annotation_items.project_id", "annotation_items.id"], ondelete="CASCADE"
        ),
    )


def downgrade() -> None:
    op.drop_table("annotation_blind_passes")
