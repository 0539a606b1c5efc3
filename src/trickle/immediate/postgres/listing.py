"""How the stream tables that live in PostgreSQL are doing, as their servers say; and what puts them right."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from trickle.catalog import databases, hosted, relations
from trickle.catalog.outside import Database, Hosted
from trickle.errors import TrickleError
from trickle.immediate.postgres.health import problems, repair
from trickle.immediate.postgres.hosting import settle
from trickle.postgres.connect import connected, shown
from trickle.replicas.listing import CdcHealthRow
from trickle.sources.postgres.capture import State
from trickle.warehouse import Warehouse


def health(warehouse: Warehouse) -> list[CdcHealthRow]:
    """A row for each stream table that lives in PostgreSQL. Asks the servers."""
    rows = []
    for database, homes in _grouped(warehouse, None):
        try:
            with connected(database.dsn) as connection:
                for name, home in homes:
                    found = problems(connection, home.schema, home.table, home.text)
                    state = State.CRITICAL if found else State.OK
                    rows.append(CdcHealthRow(database.name, name, state.value, "; ".join(found) or "IMMEDIATE"))
        except TrickleError as error:
            rows.append(CdcHealthRow(database.name, shown(database.dsn), State.CRITICAL.value, error.message))
    return rows


def repair_all(warehouse: Warehouse, names: Collection[str] | None = None) -> list[str]:
    """Put back triggers that somebody removed or disabled; the stream tables that were computed anew for it."""
    repaired = []
    for database, homes in _grouped(warehouse, names):
        settle(warehouse, [database])
        with connected(database.dsn) as connection:
            repaired += [name for name, home in homes if repair(connection, home.table, schema=home.schema)]
    return repaired


def _grouped(
    warehouse: Warehouse, names: Collection[str] | None
) -> Iterator[tuple[Database, list[tuple[str, Hosted]]]]:
    with warehouse.catalog.read() as tx:
        wanted = databases.listing(tx) if names is None else [databases.get(tx, name) for name in names]
        found = [
            (
                database,
                [
                    (str(relations.by_id(tx, home.relation_id).name), home)
                    for home in hosted.listing(tx, database.id)
                    if home.relation_id is not None
                ],
            )
            for database in wanted
        ]
    return ((database, homes) for database, homes in found if homes)
