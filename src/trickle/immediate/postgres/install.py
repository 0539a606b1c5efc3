"""Making and removing IMMEDIATE stream tables of PostgreSQL, each in one transaction."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import Connection

from trickle.algebra.weights import WEIGHT
from trickle.delta.groups import Groups
from trickle.errors import (
    ConcurrentModification,
    DependentsExist,
    DuplicateName,
    QueryError,
    UnknownTable,
    UnsupportedQuery,
)
from trickle.immediate.postgres import registry
from trickle.immediate.postgres.compiling import Limits, compile_query
from trickle.immediate.postgres.faces import NEW_ROWS, OLD_ROWS
from trickle.immediate.postgres.families import relatives
from trickle.immediate.postgres.functions import Functions, before, truncated
from trickle.immediate.postgres.indexes import lacking_indexes
from trickle.immediate.postgres.names import SCHEMA, ours
from trickle.immediate.postgres.registry import Record
from trickle.immediate.postgres.statement import Store, hash_of
from trickle.immediate.postgres.triggers import EVENTS, triggers
from trickle.postgres.connect import STEADY
from trickle.postgres.names import identifier, literal
from trickle.settings import Settings

LONGEST_WAIT = "5s"
"""How long a lock on a table of the user's is waited for; statements of others wait as long behind it."""


@dataclass(frozen=True)
class Installed:
    """An IMMEDIATE stream table. ``by_group``: writers wait for each other only where they touch the same groups."""

    schema: str
    name: str
    query: str
    sources: tuple[str, ...]
    inner_tables: tuple[str, ...]
    by_group: bool
    missing_indexes: tuple[str, ...] = ()
    """Statements that make indexes which changes would use."""


def install(
    connection: Connection[Any],
    name: str,
    query: str,
    *,
    schema: str = "public",
    owner: str | None = None,
    settings: Settings | None = None,
    create_indexes: bool = False,
) -> Installed:
    """Make a stream table of a query in PostgreSQL's own SQL; it follows its sources from now on.

    Names are taken as they are; ``owner`` is what somebody's catalog knows it by. Sources are locked against writers
    until the end of the transaction. With ``create_indexes``, indexes that changes would use and sources lack are made.
    """
    limits = _limits(settings or Settings())
    with patient(connection):
        registry.set_up(connection)
        number = registry.begin(connection, query, owner)
        view = _check_query(connection, number, query, schema, name)
        with _steady(connection):
            compiled = compile_query(connection, view, number, (schema, name), limits)
            functions = Functions(number, f"{schema}.{name}", compiled)
            known = registry.records(connection)
            sources = {table.oid for table in compiled.tables.values()}
            family = relatives(known, sources, by_group=functions.is_by_group)
            by_group = functions.is_by_group and not any(each.relation in sources for each in family)
            lock_tables(connection, sources.union(*(each.sources for each in family)))
            _make_tables(connection, functions)
            lock = min((each.number for each in family), default=number)
            _share_lock(connection, family, lock)
            for function in functions.all(None if by_group else lock, lock):
                connection.execute(function.sql)
                connection.execute(f"REVOKE ALL ON FUNCTION {ours(function.name)}() FROM PUBLIC")
            _try_out(connection, functions)
            _make_triggers(connection, functions)
            lacking = lacking_indexes([store.stage for store in compiled.stores], compiled.tables)
            if create_indexes:
                for statement in lacking:
                    connection.execute(statement)
            _enter(connection, functions, lock, by_group=by_group)
            for store in compiled.stores:
                connection.execute(f"ANALYZE {store.table}")
    return Installed(
        schema=schema,
        name=name,
        query=query,
        sources=tuple(f"{table.schema}.{table.name}" for table in compiled.tables.values()),
        inner_tables=tuple(f"{SCHEMA}.state_{number}_{n}" for n, _ in enumerate(compiled.inner, start=1)),
        by_group=by_group,
        missing_indexes=() if create_indexes else tuple(lacking),
    )


def drop(connection: Connection[Any], name: str, *, schema: str = "public", cascade: bool = False) -> None:
    """Remove a stream table with everything that was made for it; with ``cascade``, those that read it too."""
    with patient(connection):
        record = found(connection, schema, name)
        readers = [each for each in registry.records(connection) if record.relation in each.sources]
        if readers and not cascade:
            raise DependentsExist(
                f"{schema}.{name} is read by {readers[0].schema}.{readers[0].name}",
                hint="drop that first, or use cascade",
            )
        for reader in reversed(readers):
            if registry.find(connection, reader.schema, reader.name) is not None:
                drop(connection, reader.name, schema=reader.schema, cascade=True)
        _remove(connection, record)


@contextmanager
def patient(connection: Connection[Any]) -> Iterator[None]:
    """A transaction that gives up when it waits long for a lock: who comes after it waits behind it."""
    try:
        with connection.transaction():
            connection.execute("SELECT set_config('lock_timeout', %s, true)", [LONGEST_WAIT])
            yield
    except psycopg.errors.LockNotAvailable as error:
        raise ConcurrentModification(
            "other sessions hold tables that the stream table reads, or the stream table itself",
            detail=f"a lock was not to be had within {LONGEST_WAIT}: {error.diag.message_primary}",
            hint="try again when their transactions have ended",
        ) from error


def describe(connection: Connection[Any], name: str, *, schema: str = "public") -> Installed:
    """A stream table as it was made."""
    record = found(connection, schema, name)
    rows = connection.execute(
        "SELECT n.nspname || '.' || c.relname FROM unnest(%s::oid[]) WITH ORDINALITY AS s(oid, place)"
        " JOIN pg_class c ON c.oid = s.oid JOIN pg_namespace n ON n.oid = c.relnamespace ORDER BY s.place",
        [list(record.sources)],
    ).fetchall()
    return Installed(
        schema=schema,
        name=name,
        query=record.query,
        sources=tuple(row[0] for row in rows),
        inner_tables=tuple(f"{SCHEMA}.{each}" for each in record.inner),
        by_group=record.by_group,
    )


def rebuild(connection: Connection[Any], name: str, *, schema: str = "public") -> None:
    """Compute a stream table anew from its sources, which are locked against writers meanwhile."""
    with patient(connection):
        record = found(connection, schema, name)
        lock_tables(connection, record.sources)
        connection.execute("SELECT set_config('trickle.rebuild', 'on', true)")
        connection.execute(f"SELECT {ours(f'rebuild_{record.number}')}()")
        connection.execute("SELECT set_config('trickle.rebuild', '', true)")


def installed(connection: Connection[Any]) -> list[tuple[str, str]]:
    """The schemas and names of all IMMEDIATE stream tables of a database."""
    return [(record.schema, record.name) for record in registry.records(connection)]


def _limits(settings: Settings) -> Limits:
    return Limits(settings.ivm_topk_max_limit, settings.ivm_recursive_max_depth, settings.max_parse_depth)


def found(connection: Connection[Any], schema: str, name: str) -> Record:
    record = registry.find(connection, schema, name)
    if record is None:
        raise UnknownTable(f"no IMMEDIATE stream table {schema}.{name} in this database")
    return record


@contextmanager
def _steady(connection: Connection[Any]) -> Iterator[None]:
    """Only names of pg_catalog go unqualified, and values are spelled in one way: as in the functions."""
    wanted = {**STEADY, "search_path": f"pg_catalog, {SCHEMA}"}
    rows = connection.execute(
        "SELECT name, current_setting(name) FROM unnest(%s::text[]) AS name", [list(wanted)]
    ).fetchall()
    _set_local(connection, wanted)
    yield
    _set_local(connection, dict(rows))


def _set_local(connection: Connection[Any], settings: Mapping[str, str]) -> None:
    connection.execute(
        "SELECT set_config(name, value, true) FROM unnest(%s::text[], %s::text[]) AS s(name, value)",
        [list(settings), list(settings.values())],
    )


def refuse_taken(connection: Connection[Any], schema: str, name: str) -> None:
    """DuplicateName where the database has a relation of this name."""
    row = connection.execute("SELECT to_regclass(%s) IS NOT NULL", [identifier(schema, name)]).fetchone()
    if row and row[0]:
        raise DuplicateName(f"{schema}.{name} is there already", hint="choose another name, or drop it first")


def _check_query(connection: Connection[Any], number: int, query: str, schema: str, name: str) -> int:
    """Let PostgreSQL read the query, as a view; the view's number."""
    refuse_taken(connection, schema, name)
    view = ours(f"query_{number}")
    text = query.strip().rstrip(";")
    try:
        with connection.transaction():
            connection.execute(f"CREATE VIEW {view} AS\n{text}\n")
    except psycopg.errors.LockNotAvailable:
        raise
    except psycopg.Error as error:
        detail = error.diag.message_primary or str(error)
        raise QueryError(
            "PostgreSQL refuses the query", detail=detail + _position(error, text), hint=error.diag.message_hint
        ) from error
    found = connection.execute("SELECT %s::regclass::oid", [view]).fetchone()
    assert found is not None
    return int(found[0])


def _position(error: psycopg.Error, text: str) -> str:
    if error.diag.statement_position is None:
        return ""
    before = int(error.diag.statement_position) - 1
    # What stands before the query in the statement ends with a line break.
    offset = max(0, before - (before - len(text) if before > len(text) else 0))
    return f" (near {text[offset : offset + 40]!r})" if 0 <= offset < len(text) else ""


def lock_tables(connection: Connection[Any], oids: Collection[int]) -> None:
    """Keep writers away."""
    for oid in sorted(oids):
        connection.execute(f"LOCK TABLE {name_of(connection, oid)} IN SHARE ROW EXCLUSIVE MODE")


def name_of(connection: Connection[Any], oid: int) -> str:
    row = connection.execute(
        "SELECT n.nspname, c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = %s",
        [oid],
    ).fetchone()
    assert row is not None
    return identifier(*row)


def _share_lock(connection: Connection[Any], family: Sequence[Record], lock: int) -> None:
    """Let stream tables that are there already take a lock that they share with a new one."""
    for record in family:
        name = f"{record.schema}.{record.name}"
        for function in (before(record.number, name, lock), truncated(record.number, name, lock)):
            connection.execute(function.sql)
    registry.share_lock(connection, [record.number for record in family], lock)


def _make_tables(connection: Connection[Any], functions: Functions) -> None:
    for store in functions.compiled.stores:
        columns = ", ".join(
            f"{store.real(column)} {store.stored[column]}{' NOT NULL' if column in store.certain else ''}"
            for column in store.columns
        )
        connection.execute(f"CREATE TABLE {store.table} ({columns})")
    for store, fill in functions.fills():
        connection.execute(fill)
        for statement in _own_indexes(store):
            connection.execute(statement)
    for label, table in functions.compiled.tables.items():
        kept = [f"{identifier(c)} {table.type_of(c)}" for c in functions.compiled.used(label)]
        columns = ", ".join([*kept, f"{identifier(WEIGHT)} bigint NOT NULL"])
        pending = ours(functions.pending(label))
        connection.execute(f"CREATE UNLOGGED TABLE {pending} ({columns})")
        # Or PostgreSQL expects many rows of a table of which it knows nothing.
        connection.execute(f"ANALYZE {pending}")


def _own_indexes(store: Store) -> Iterator[str]:
    """Indexes by which changes look up stored rows."""
    if isinstance(store.stage.keeping, Groups):
        if not store.key:
            return
        unique = "UNIQUE " if set(store.key) <= store.certain else ""
        yield f"CREATE {unique}INDEX ON {store.table} ({', '.join(map(store.real, store.key))})"
        if unique:
            return
    yield f"CREATE INDEX ON {store.table} (({hash_of([store.real(column) for column in store.key])}))"


def _try_out(connection: Connection[Any], functions: Functions) -> None:
    """Let PostgreSQL plan every statement once: what it refuses is refused now, and not when somebody writes."""
    for label, table in functions.compiled.tables.items():
        for rows in (NEW_ROWS, OLD_ROWS):
            connection.execute(f"CREATE TEMPORARY TABLE {rows} (LIKE {table.sql})")
        for event in EVENTS:
            try:
                with connection.transaction():
                    connection.execute(f"EXPLAIN {functions.statement(label, event)}")
            except psycopg.errors.LockNotAvailable:
                raise
            except psycopg.Error as error:
                raise UnsupportedQuery(
                    f"PostgreSQL refuses what would follow {event.upper()} on {table.schema}.{table.name}",
                    detail=error.diag.message_primary,
                ) from error
        connection.execute(f"DROP TABLE pg_temp.{NEW_ROWS}, pg_temp.{OLD_ROWS}")


def _make_triggers(connection: Connection[Any], functions: Functions) -> None:
    for label, table in functions.compiled.tables.items():
        for trigger in triggers(functions.number, functions.place(label)):
            for statement in trigger.made_on(table.sql):
                connection.execute(statement)
    for store in functions.compiled.stores:
        connection.execute(
            f"CREATE TRIGGER trickle_immediate_guard BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON {store.table}"
            f" FOR EACH STATEMENT EXECUTE FUNCTION {ours('guard')}()"
        )


def _enter(connection: Connection[Any], functions: Functions, family: int, *, by_group: bool) -> None:
    row = connection.execute("SELECT %s::regclass::oid", [functions.compiled.own.table]).fetchone()
    assert row is not None
    inner = [f"state_{functions.number}_{n}" for n, _ in enumerate(functions.compiled.inner, start=1)]
    sources = [table.oid for table in functions.compiled.tables.values()]
    registry.finish(connection, functions.number, int(row[0]), sources, inner, family=family, by_group=by_group)
    comment = literal(f"kept by Trickle: {functions.name}")
    connection.execute(f"COMMENT ON TABLE {functions.compiled.own.table} IS {comment}")


def _remove(connection: Connection[Any], record: Record) -> None:
    number = record.number
    rows = connection.execute(
        "SELECT p.oid::regprocedure::text FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace"
        " WHERE n.nspname = %s AND p.proname ~ %s",
        [SCHEMA, rf"^(before|settle|rebuild|truncate)_{number}$|^(insert|update|delete)_{number}_\d+$"],
    ).fetchall()
    for (function,) in rows:
        # Its triggers go with it.
        connection.execute(f"DROP FUNCTION {function} CASCADE")
    connection.execute(f"DROP VIEW IF EXISTS {ours(f'query_{number}')}")
    connection.execute(f"DROP TABLE {identifier(record.schema, record.name)}")
    for table in record.inner:
        connection.execute(f"DROP TABLE {ours(table)}")
    for place, _ in enumerate(record.sources, start=1):
        connection.execute(f"DROP TABLE {ours(f'pending_{number}_{place}')}")
    registry.forget(connection, number)
