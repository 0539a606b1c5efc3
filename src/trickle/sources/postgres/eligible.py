"""Which tables can be captured by WAL, and what is in the way of the others. Pure.

The WAL must say which row an UPDATE or DELETE is about. That is the replica identity, and it belongs to each table
that holds rows: a partition does not have the one of its parent. A key identifies rows of the replica only if it is a
key of the whole source.

A publication can get in the way of the users' own statements: PostgreSQL refuses UPDATE and DELETE on a published
table whose old rows it could not send. So a table that does not qualify must not be published at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from trickle.postgres.tables import Identity, Relkind, SourceTable

SENDS_GENERATED = 180_000
"""The first version that sends stored generated columns."""


@dataclass(frozen=True)
class Obstacle:
    """Why a table cannot be captured by WAL, and what to do about it."""

    reason: str
    hint: str


def obstacle(table: SourceTable, found: Mapping[int, SourceTable], version: int) -> Obstacle | None:
    """What is in the way; None when nothing is. ``found`` has the table and its parts with all their columns."""
    if table.kind not in (Relkind.TABLE, Relkind.PARTITIONED):
        return Obstacle(f"{table.shown} is not a table", "let it be polled")
    parts = [found[part.oid] for part in table.parts if part.oid in found]
    checks = (_unlogged(parts), _generated(table, parts, version), _identity(table, parts))
    return next((check for check in checks if check is not None), None)


def _unlogged(parts: Iterable[SourceTable]) -> Obstacle | None:
    for part in parts:
        if part.unlogged:
            return Obstacle(
                f"{part.shown} is unlogged, so the WAL does not have its rows", _by_triggers("SET LOGGED", part)
            )
    return None


def _generated(table: SourceTable, parts: Iterable[SourceTable], version: int) -> Obstacle | None:
    hint = "leave the column out when the table is attached, or use cdc_mode = 'trigger'"
    for column in table.columns:
        if column.generated == "v":
            return Obstacle(f"column {column.name!r} of {table.shown} is computed when it is read", hint)
        if column.generated and version < SENDS_GENERATED:
            return Obstacle(f"column {column.name!r} of {table.shown} is generated: the server does not send it", hint)
    for part in parts:
        if part.identity is Identity.FULL and any(column.generated == "v" for column in part.columns):
            reason = (
                f"{part.shown} has a virtual generated column, and with REPLICA IDENTITY FULL writes would be refused"
            )
            return Obstacle(reason, "use cdc_mode = 'trigger'")
    return None


def _identity(table: SourceTable, parts: Iterable[SourceTable]) -> Obstacle | None:
    used = {column.name for column in table.columns}
    for part in parts:
        if part.identity is Identity.FULL:
            continue
        full = _by_triggers("REPLICA IDENTITY FULL", part)
        key = set(part.identity_columns)
        if not key:
            return Obstacle(f"{part.shown} has no replica identity: the WAL does not say which row changes", full)
        if not key <= used:
            return Obstacle(f"the key of {part.shown} is not among the columns that are used", full)
        if part.oid != table.oid or len(table.parts) > 1:
            is_global = table.kind is Relkind.PARTITIONED and key == set(table.key)
            if not is_global:
                return Obstacle(f"the key of {part.shown} does not identify a row of all of {table.shown}", full)
    return None


def _by_triggers(change: str, part: SourceTable) -> str:
    return f"ALTER TABLE {part.shown} {change}, or use cdc_mode = 'trigger'"
