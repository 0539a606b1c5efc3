"""``refresh_stream_table`` of an IMMEDIATE stream table: there is nothing to do, unless something came from outside.

What is found in the log of a base table beyond its pin, somebody else has written. It is taken in by moving the pin to
the newest version together with everything that follows the table, in one unit.
"""

from __future__ import annotations

from collections.abc import Sequence

from trickle.algebra.names import TableName
from trickle.apply.unit import PinnedMember, recover
from trickle.catalog import intents, pins, relations, streams
from trickle.catalog.records import Action, Kind, Pin, RefreshMode, Relation, StreamTable
from trickle.lake.snapshot import latest_version
from trickle.publish.following import follow
from trickle.refresh.brought import Brought
from trickle.refresh.execute import refresh
from trickle.refresh.lineage import load_lineage
from trickle.refresh.outcome import RefreshResult
from trickle.sources.lake import LakePosition
from trickle.sql.names import table_name
from trickle.tables.pinning import followers, is_equal
from trickle.warehouse import Warehouse

NOTHING_TO_DO = "it is IMMEDIATE: it changes with its sources, and stands where they do"


def refresh_stream_table(warehouse: Warehouse, name: TableName, *, force: bool = False) -> RefreshResult:
    """Bring a stream table to the present. One that is IMMEDIATE is there, unless somebody wrote past Trickle."""
    with warehouse.catalog.read() as tx:
        stream = streams.get(tx, name)
        if stream.refresh_mode is not RefreshMode.IMMEDIATE:
            tables = None
        else:
            lineage = load_lineage(tx)
            base = sorted(lineage.base_sources(stream.relation.id))
            tables = [lineage.tables[table] for table in base if lineage.tables[table].kind is Kind.TABLE]
    if tables is None:
        results = refresh(warehouse, [name], force=force)
        follow(warehouse, [table_name(one.name) for one in results])
        return results[0]
    results = rebase(warehouse, tables, stream.relation, force=force)
    follow(warehouse, [table_name(one.name) for one in results])
    return next((one for one in results if one.name == str(name)), _nothing(warehouse, name))


def rebase(
    warehouse: Warehouse, tables: Sequence[Relation], wanted: Relation | None = None, *, force: bool = False
) -> list[RefreshResult]:
    """Move the pins of tables to the newest versions, and everything that follows them; what was done.

    ``wanted`` is a stream table that is brought to the present, or with ``force`` computed anew, in any case.
    """
    recover(warehouse, [table.id for table in tables])
    newest = {table.id: latest_version(warehouse.location_of(table)) for table in tables}
    with warehouse.catalog.read() as tx:
        held = pins.of(tx, newest)
        busy = {member.relation_id for one in intents.pending(tx, newest) for member in one.members}
        behind = [t for t in tables if t.id in held and t.id not in busy and _is_behind(warehouse, t, held, newest)]
        moved = followers(tx, [table.id for table in behind])
        if wanted is not None and (force or not _is_current(streams.by_id(tx, wanted.id), held)):
            moved += [relations.by_id(tx, wanted.id), *followers(tx, [wanted.id])]
    if not moved:
        return []
    brought = Brought(
        at={table.id: LakePosition(table.uid, newest[table.id]) for table in behind},
        members=[_member(held[table.id], newest[table.id]) for table in behind],
    )
    names = list(dict.fromkeys(relation.name for relation in moved))
    return refresh(warehouse, names, force=force, brought=brought)


def _is_behind(warehouse: Warehouse, table: Relation, held: dict[int, Pin], newest: dict[int, int]) -> bool:
    version = held[table.id].version
    return version is not None and not is_equal(warehouse.location_of(table), version, newest[table.id])


def _member(pin: Pin, version: int) -> PinnedMember:
    return PinnedMember(pin.relation_id, pin.number + 1, None, version, pin.position)


def _is_current(stream: StreamTable, held: dict[int, Pin]) -> bool:
    """Whether a stream table stands where its base tables do."""
    seen = {source: LakePosition.parse(position).version for source, position in stream.frontier.items()}
    at_pins = all(held[source].version == version for source, version in seen.items() if source in held)
    return stream.populated and not stream.needs_reinitialize and at_pins


def _nothing(warehouse: Warehouse, name: TableName) -> RefreshResult:
    with warehouse.catalog.read() as tx:
        version = streams.get(tx, name).version
    return RefreshResult(str(name), Action.NO_DATA.value, 0, 0, 0.0, NOTHING_TO_DO, version, 0)
