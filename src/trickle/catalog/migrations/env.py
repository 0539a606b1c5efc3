"""Runs the migrations on the connection that ``trickle.catalog.migrate`` hands in, inside its transaction."""

from __future__ import annotations

from alembic import context

from trickle.catalog.migrate import POSTGRES_SCHEMA, VERSION_TABLE
from trickle.catalog.models import Base

connection = context.config.attributes["connection"]
on_sqlite = connection.dialect.name == "sqlite"
context.configure(
    connection=connection,
    target_metadata=Base.metadata,
    version_table=VERSION_TABLE,
    version_table_schema=None if on_sqlite else POSTGRES_SCHEMA,
    transactional_ddl=True,
    render_as_batch=on_sqlite,
)
with context.begin_transaction():
    context.run_migrations()
