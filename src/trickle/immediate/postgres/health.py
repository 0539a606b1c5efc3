"""Whether a stream table still follows its sources, and how to have it follow them again.

Everything it needs lies in the user's database, and who has the rights can remove it: triggers dropped or disabled,
functions dropped, a source recreated. What was written meanwhile is not in the stream table.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from psycopg import Connection

from trickle.errors import UserError
from trickle.immediate.postgres import registry
from trickle.immediate.postgres.install import found, lock_tables, name_of, patient, rebuild
from trickle.immediate.postgres.registry import Record
from trickle.immediate.postgres.triggers import Trigger, triggers

_TRIGGERS = """
    SELECT t.tgrelid::bigint, t.tgname, t.tgenabled::text FROM pg_trigger t
    WHERE t.tgrelid = ANY(%s::oid[]) AND NOT t.tgisinternal
"""
_ALWAYS = "A"


def problems(connection: Connection[Any], schema: str, name: str, query: str | None = None) -> list[str]:
    """What is wrong with a stream table, in words; nothing when all is well. ``query`` is what it should have."""
    record = registry.find(connection, schema, name)
    if record is None:
        return [f"{schema}.{name} is not there as a stream table"]
    if query not in (None, record.query):
        return [f"{schema}.{name} has another query"]
    gone = _gone(connection, record)
    if gone:
        return [f"{gone} of its sources are gone"]
    return [
        f"a trigger is {'missing' if state is None else 'disabled'} on {_source(connection, oid)}: {one.name}"
        for oid, one, state in _states(connection, record)
        if state != _ALWAYS
    ]


def repair(connection: Connection[Any], name: str, *, schema: str = "public") -> bool:
    """Put back triggers that somebody removed or disabled, and compute the stream table anew; whether that was needed.

    Sources are locked against writers until the end of the transaction.
    """
    if not problems(connection, schema, name):
        return False
    with patient(connection):
        record = found(connection, schema, name)
        if _gone(connection, record):
            raise UserError(f"sources of {schema}.{name} are gone", hint="drop it and make it again")
        lock_tables(connection, record.sources)
        for oid, trigger, state in _states(connection, record):
            table = name_of(connection, oid)
            statements = trigger.made_on(table) if state is None else (trigger.enabled_on(table),)
            for statement in statements if state != _ALWAYS else ():
                connection.execute(statement)
        rebuild(connection, name, schema=schema)
    return True


def _states(connection: Connection[Any], record: Record) -> Iterator[tuple[int, Trigger, str | None]]:
    """The triggers that there should be, each with whether it fires; None where there is none."""
    rows = connection.execute(_TRIGGERS, [list(record.sources)]).fetchall()
    there = {(int(oid), name): enabled for oid, name, enabled in rows}
    for place, oid in enumerate(record.sources, start=1):
        for trigger in triggers(record.number, place):
            yield oid, trigger, there.get((oid, trigger.name))


def _gone(connection: Connection[Any], record: Record) -> int:
    row = connection.execute(
        "SELECT count(*) FROM unnest(%s::oid[]) AS s(oid) LEFT JOIN pg_class c ON c.oid = s.oid WHERE c.oid IS NULL",
        [list(record.sources)],
    ).fetchone()
    return int(row[0]) if row else 0


def _source(connection: Connection[Any], oid: int) -> str:
    return name_of(connection, oid).replace('"', "")
