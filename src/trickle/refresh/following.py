"""Whether a stream table can be IMMEDIATE in the lake, and which base tables it then follows.

It changes with the statements that change its sources. So every source must change by statements through Trickle and by
nothing else: base tables, and stream tables that are IMMEDIATE themselves.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy.orm import Session

from trickle.algebra.names import TableName
from trickle.catalog import streams
from trickle.catalog.records import Kind, RefreshMode, Relation, StreamTable
from trickle.errors import DependentsExist, InvalidOption, UnsupportedError, UnsupportedQuery
from trickle.refresh.lineage import load_lineage
from trickle.sql import Query
from trickle.tables.pinning import Standing, immediate_ids, standing
from trickle.tables.reading import Reading
from trickle.warehouse import Warehouse


def followed_by(warehouse: Warehouse, name: TableName, query: Query, reading: Reading) -> dict[int, Standing]:
    """The base tables that an IMMEDIATE stream table follows, at any distance; refuses what it cannot follow."""
    if query.is_unsteady or any(view.is_unsteady for view in reading.views.values()):
        raise UnsupportedQuery(
            f"{name} cannot be IMMEDIATE: its query depends on time or chance",
            detail="its result would change without a statement",
            hint="use refresh_mode = 'AUTO' with a schedule",
        )
    if not reading.tables:
        raise UnsupportedQuery(f"{name} cannot be IMMEDIATE: it reads no table")
    with warehouse.catalog.read() as tx:
        following = immediate_ids(tx)
        lineage = load_lineage(tx)
    for source in reading.tables:
        _refuse_source(name, source, is_immediate=source.id in following)
    found = {source.id for source in reading.tables if source.kind is Kind.TABLE}
    found |= {base for source in reading.tables for base in lineage.base_sources(source.id)}
    return {table: standing(warehouse, lineage.tables[table]) for table in sorted(found)}


def _refuse_source(name: TableName, source: Relation, *, is_immediate: bool) -> None:
    match source.kind:
        case Kind.TABLE:
            return
        case Kind.STREAM_TABLE:
            if is_immediate:
                return
            why = f"{source.name} is refreshed by itself, and not by the statement that changes its sources"
            hint = f"ALTER STREAM TABLE {source.name} SET (refresh_mode = 'IMMEDIATE') first"
        case Kind.ATTACHED:
            why = f"{source.name} is an attached table: others write it, and their writes pass Trickle by"
            hint = "use refresh_mode = 'AUTO' with a schedule of 1s: the scheduler wakes at every commit"
        case Kind.REPLICA:
            why = f"{source.name} is a replica, which ingest writes after its database has committed"
            hint = "over tables of one database alone, it can be IMMEDIATE inside that database"
        case Kind.VIEW:
            return
    raise UnsupportedError(f"{name} cannot be IMMEDIATE", detail=why, hint=hint)


def check_combination(mode: RefreshMode, options: Mapping[str, object], *, initialize: bool) -> None:
    """Refuse what contradicts IMMEDIATE."""
    if mode is not RefreshMode.IMMEDIATE:
        return
    if options.get("cdc_mode") == "wal":
        raise InvalidOption(
            "refresh mode IMMEDIATE does not go with cdc_mode 'wal'",
            detail="the WAL tells of a change after it was committed",
            hint="leave cdc_mode out",
        )
    if not initialize:
        raise InvalidOption(
            "an IMMEDIATE stream table is filled when it is made", hint="leave initialize out, or use AUTO"
        )


def refuse_leaving(tx: Session, stream: StreamTable) -> None:
    """Refuse that a stream table stops to be IMMEDIATE while others of its kind follow it."""
    readers = load_lineage(tx).readers.get(stream.relation.id, set()) & immediate_ids(tx)
    if readers:
        names = ", ".join(sorted(str(streams.by_id(tx, reader).relation.name) for reader in readers))
        raise DependentsExist(
            f"{stream.relation.name} must stay IMMEDIATE: {names} follows it", hint=f"change the mode of {names} first"
        )
