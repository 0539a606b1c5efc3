"""INSERT with ON CONFLICT, which both databases have and standard SQL does not."""

from __future__ import annotations

from sqlalchemy import Connection
from sqlalchemy.dialects import postgresql, sqlite

from trickle.catalog.models import Base


def insert_into(connection: Connection, model: type[Base]) -> sqlite.Insert | postgresql.Insert:
    """An INSERT of the connection's own dialect."""
    return sqlite.insert(model) if connection.dialect.name == "sqlite" else postgresql.insert(model)
