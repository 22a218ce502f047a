"""What Alembic runs around migrations: on the connection that `Store` hands over."""

from __future__ import annotations

from alembic import context

import fluents.web.annotation_tables  # noqa: F401 - its tables are in the metadata, too
from fluents.web.tables import Base

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=Base.metadata,
    render_as_batch=True,  # SQLite alters tables by copying them
)
context.run_migrations()
