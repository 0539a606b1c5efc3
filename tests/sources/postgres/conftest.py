"""A database of its own for every test, and a capture on it."""

from __future__ import annotations

from tests.postgres.conftest import connection as connection
from tests.postgres.conftest import dsn as dsn
