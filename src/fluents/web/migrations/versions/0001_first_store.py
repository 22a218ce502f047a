"""The first store."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

ID = sa.String(16)


def _parent(table: str) -> sa.ForeignKey:
    return sa.ForeignKey(f"{table}.id", ondelete="CASCADE")


def upgrade() -> None:
    op.create_table(
        "documents",
        sa.Column("id", ID, primary_key=True),
        sa.Column("created", sa.Double, nullable=False, index=True),
        sa.Column("name", sa.Text),
        sa.Column("text", sa.LargeBinary, nullable=False),
        sa.Column("read", sa.Text, nullable=False),
        sa.Column("corrected", sa.Text),
        sa.Column("warnings", sa.Text, nullable=False),
        sa.Column("stems", sa.Text, nullable=False),
    )
    op.create_table(
        "jobs",
        sa.Column("id", ID, primary_key=True),
        sa.Column("document_id", ID, _parent("documents"), nullable=False, index=True),
        sa.Column("client", sa.String(64), nullable=False, index=True),
        sa.Column("state", sa.String(16), nullable=False, index=True),
        sa.Column("tracker", sa.Text, nullable=False),
        sa.Column("options", sa.Text, nullable=False),
        sa.Column("procedure", sa.Text, nullable=False),
        sa.Column("created", sa.Double, nullable=False, index=True),
        sa.Column("started", sa.Double),
        sa.Column("ended", sa.Double),
        sa.Column("steps", sa.Integer, nullable=False),
        sa.Column("done", sa.Integer, nullable=False),
        sa.Column("failures", sa.Integer, nullable=False),
        sa.Column("error", sa.Text),
        sa.Column("provenance", sa.Text),
    )
    op.create_table(
        "events",
        sa.Column("job_id", ID, _parent("jobs"), primary_key=True),
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("data", sa.Text, nullable=False),
    )
    op.create_table(
        "traces",
        sa.Column("id", ID, primary_key=True),
        sa.Column("document_id", ID, _parent("documents"), nullable=False, index=True),
        sa.Column("job_id", ID, _parent("jobs"), index=True),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("created", sa.Double, nullable=False, index=True),
        sa.Column("record", sa.Text, nullable=False),
        sa.Column("steps", sa.Integer, nullable=False),
        sa.Column("changes", sa.Integer, nullable=False),
        sa.Column("corrections", sa.Integer, nullable=False),
    )
    op.create_table(
        "changes",
        sa.Column("trace_id", ID, _parent("traces"), primary_key=True),
        sa.Column("position", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("step", sa.Integer, nullable=False),
        *(sa.Column(name, sa.Text, nullable=False) for name in ("entity", "attribute", "before", "after")),
    )
    op.create_table(
        "corrections",
        sa.Column("id", ID, primary_key=True),
        sa.Column("trace_id", ID, _parent("traces"), nullable=False),
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("position", sa.Integer, nullable=False),
        sa.Column("verdict", sa.String(16), nullable=False),
        sa.Column("step", sa.Integer, nullable=False),
        sa.Column("words", sa.Text),
        sa.Column("created", sa.Double, nullable=False),
    )
    op.create_index("ix_corrections_trace_number", "corrections", ["trace_id", "number"], unique=True)


def downgrade() -> None:
    for table in ("corrections", "changes", "traces", "events", "jobs", "documents"):
        op.drop_table(table)
