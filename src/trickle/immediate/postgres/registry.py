"""Our schema in the user's database: what there is for all stream tables, and the table that lists them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from psycopg import Connection

from trickle.immediate.postgres.functions import guard
from trickle.immediate.postgres.names import SCHEMA, ours
from trickle.immediate.postgres.recursion import FUNCTIONS
from trickle.sql.lower.postgres import FAIL

_STREAMS = f"""
    CREATE TABLE IF NOT EXISTS {ours("streams")} (
        number int GENERATED ALWAYS AS IDENTITY (MAXVALUE 2000000) PRIMARY KEY,
        relation oid UNIQUE,
        owner text UNIQUE,
        query text NOT NULL,
        sources oid[] NOT NULL DEFAULT '{{}}',
        family int,
        inner_tables text[] NOT NULL DEFAULT '{{}}',
        by_group boolean NOT NULL DEFAULT false,
        created_at timestamptz NOT NULL DEFAULT now()
    )
"""
_FAIL = f"""
    CREATE OR REPLACE FUNCTION {ours(FAIL)}(message text, value anyelement) RETURNS anyelement LANGUAGE plpgsql STABLE
    SET search_path = pg_catalog, pg_temp
    AS $$ BEGIN RAISE EXCEPTION '%', message USING ERRCODE = 'cardinality_violation'; END $$
"""
_ROWS = f"""
    SELECT s.number, s.relation, n.nspname, c.relname, s.query, s.sources, s.family, s.inner_tables, s.by_group,
        s.owner
    FROM {ours("streams")} s JOIN pg_class c ON c.oid = s.relation JOIN pg_namespace n ON n.oid = c.relnamespace
"""


@dataclass(frozen=True)
class Record:
    """A stream table as it is listed."""

    number: int
    relation: int
    schema: str
    name: str
    query: str
    sources: tuple[int, ...]
    family: int
    inner: tuple[str, ...]
    by_group: bool
    owner: str | None = None
    """What the catalog of a warehouse knows it by; None where it was made without one."""


def set_up(connection: Connection[Any]) -> None:
    """Make our schema, if it is not there. Two that do it at once come one after the other."""
    connection.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [SCHEMA])
    if is_set_up(connection):
        return
    connection.execute(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}")
    connection.execute(f"GRANT USAGE ON SCHEMA {SCHEMA} TO PUBLIC")
    for statement in (_STREAMS, _FAIL, *FUNCTIONS, guard().sql):
        connection.execute(statement)


def is_set_up(connection: Connection[Any]) -> bool:
    """Whether our schema is there."""
    row = connection.execute("SELECT to_regclass(%s) IS NOT NULL", [ours("streams")]).fetchone()
    return bool(row and row[0])


def records(connection: Connection[Any]) -> list[Record]:
    """All stream tables of the database, the oldest first."""
    if not is_set_up(connection):
        return []
    rows = connection.execute(f"{_ROWS} ORDER BY s.number").fetchall()
    return [
        Record(number, int(relation), schema, name, query, tuple(map(int, sources)), family, tuple(inner), *others)
        for number, relation, schema, name, query, sources, family, inner, *others in rows
    ]


def find(connection: Connection[Any], schema: str, name: str) -> Record | None:
    """The stream table of this name."""
    return next((each for each in records(connection) if (each.schema, each.name) == (schema, name)), None)


def owned(connection: Connection[Any], owner: str) -> Record | None:
    """The stream table of this owner, whatever it is called now."""
    return next((each for each in records(connection) if each.owner == owner), None)


def begin(connection: Connection[Any], query: str, owner: str | None) -> int:
    """A number for a new stream table."""
    row = connection.execute(
        f"INSERT INTO {ours('streams')} (query, owner) VALUES (%s, %s) RETURNING number", [query, owner]
    ).fetchone()
    assert row is not None
    return int(row[0])


def finish(
    connection: Connection[Any],
    number: int,
    relation: int,
    sources: Sequence[int],
    inner: Sequence[str],
    *,
    family: int,
    by_group: bool,
) -> None:
    """Enter what was made for a stream table."""
    connection.execute(
        f"UPDATE {ours('streams')} SET relation = %s, sources = %s::oid[], inner_tables = %s::text[], family = %s,"
        " by_group = %s WHERE number = %s",
        [relation, list(sources), list(inner), family, by_group, number],
    )


def share_lock(connection: Connection[Any], numbers: Sequence[int], family: int) -> None:
    """Let some stream tables share one lock from now on, which they take as a whole."""
    connection.execute(
        f"UPDATE {ours('streams')} SET family = %s, by_group = false WHERE number = ANY(%s::int[])",
        [family, list(numbers)],
    )


def forget(connection: Connection[Any], number: int) -> None:
    """Take a stream table off the list."""
    connection.execute(f"DELETE FROM {ours('streams')} WHERE number = %s", [number])
