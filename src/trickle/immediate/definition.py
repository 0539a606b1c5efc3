"""Stream tables come, change and go, wherever they live.

The one place that tells an IMMEDIATE stream table by what it reads: over tables of one attached PostgreSQL database it
lives there, and its triggers change it (``postgres/``). Over tables of the lake it lives in the lake, and is committed
together with them (``lake/``); like everything that is kept by refreshes, ``refresh/definition.py`` makes it.
"""

from __future__ import annotations

from collections.abc import Mapping

from trickle.algebra.names import TableName
from trickle.catalog import databases, history, hosted, relations, streams
from trickle.catalog.outside import Hosted
from trickle.catalog.records import Action, Initiator, Kind, Outcome, RefreshMode, Relation, StreamTable
from trickle.errors import InvalidOption, UnsupportedError, UnsupportedQuery
from trickle.immediate.lake import refresh_stream_table
from trickle.immediate.postgres import hosting
from trickle.immediate.postgres.hosting import Leaving, Wanted
from trickle.immediate.postgres.install import rebuild
from trickle.immediate.postgres.sources import Home, home_of
from trickle.postgres.connect import connected
from trickle.refresh import definition
from trickle.refresh.definition import Analysed, Definition, analyse, checked_query, tell
from trickle.refresh.dependencies import DEEPEST
from trickle.refresh.options import check_mode, check_options
from trickle.refresh.outcome import RefreshResult, milliseconds
from trickle.refresh.schedule import check_schedule
from trickle.sql import Query
from trickle.tables.ddl import taken
from trickle.tables.reading import parsed
from trickle.warehouse import Warehouse


def create_stream_table(warehouse: Warehouse, wanted: Definition, *, initialize: bool = True) -> StreamTable:
    """Make a stream table, and fill it unless told not to."""
    if wanted.refresh_mode is not RefreshMode.IMMEDIATE:
        return definition.create_stream_table(warehouse, wanted, initialize=initialize)
    with warehouse.catalog.read() as tx:
        existing = relations.find(tx, wanted.name)
    if existing is not None:
        raise taken(existing)
    analysed = analyse(warehouse, wanted.name, wanted.query, RefreshMode.IMMEDIATE)
    home = _home(warehouse, analysed)
    if home is None:
        return definition.create_stream_table(warehouse, wanted, initialize=initialize)
    if not initialize:
        raise InvalidOption("an IMMEDIATE stream table is filled when it is made", hint="leave initialize out")
    _check_options(wanted.options)
    hosting.make(warehouse, Wanted(wanted.name, wanted.query, analysed, home, wanted.schedule, wanted.options))
    tell(wanted.name, analysed.notices)
    return definition.get(warehouse, wanted.name)


def create_or_replace(warehouse: Warehouse, wanted: Definition, *, initialize: bool = True) -> StreamTable:
    """Make the stream table, or change the one that is there as little as possible."""
    with warehouse.catalog.read() as tx:
        existing = relations.find(tx, wanted.name)
        stream = streams.get(tx, wanted.name) if existing and existing.kind is Kind.STREAM_TABLE else None
    if existing is None:
        return create_stream_table(warehouse, wanted, initialize=initialize)
    if stream is None or RefreshMode.IMMEDIATE not in (stream.refresh_mode, wanted.refresh_mode):
        return definition.create_or_replace(warehouse, wanted, initialize=initialize)
    changes: dict[str, object] = {"schedule": wanted.schedule, "refresh_mode": wanted.refresh_mode}
    changes |= {name: wanted.options.get(name) for name in {*stream.options, *wanted.options}}
    new_query = None if stream.query == wanted.query.text else wanted.query.text
    return alter(warehouse, wanted.name, new_query, changes, initialize=initialize)


def alter(
    warehouse: Warehouse,
    name: TableName,
    new_query: str | None,
    changes: Mapping[str, object],
    *,
    initialize: bool = True,
) -> StreamTable:
    """Change options (None clears one), the refresh mode or the query; where it lives follows from them."""
    stream, home = _found(warehouse, name)
    if home is not None and stream.refresh_mode is not RefreshMode.IMMEDIATE:
        hosting.resume(warehouse, stream, home)
        stream, home = _found(warehouse, name)
    given = {key.lower(): value for key, value in changes.items()}
    mode = check_mode(given.pop("refresh_mode", stream.refresh_mode))
    text = parsed(stream.query, DEEPEST) if new_query is None else checked_query(warehouse, new_query)
    if home is None and not _goes_there(warehouse, stream, text, mode):
        return definition.alter(warehouse, name, new_query, changes, initialize=initialize)
    schedule = check_schedule(given.pop("schedule", stream.schedule))
    checked = check_options(given)
    options = {k: v for k, v in {**stream.options, **checked}.items() if given.get(k, v) is not None}
    if mode is RefreshMode.IMMEDIATE:
        _check_options(options)
    if home is not None and mode is RefreshMode.IMMEDIATE and new_query is None:
        with warehouse.catalog.write() as tx:
            now = warehouse.clock.now()
            streams.update(tx, stream.relation.id, now=now, schedule=schedule, options=options)
        return definition.get(warehouse, name)
    analysed = analyse(warehouse, name, text, mode)
    if mode is not RefreshMode.IMMEDIATE:
        assert home is not None
        definition.refuse_hosted(analysed.reading)
        # With the query that it has: what is in PostgreSQL stays right until the lake has it too.
        kept = parsed(stream.query, DEEPEST)
        before = analysed if new_query is None else analyse(warehouse, name, kept, mode)
        hosting.move_out(warehouse, stream, home, Leaving(kept, before, mode, schedule, options))
        if new_query is not None:
            return definition.alter(warehouse, name, new_query, {}, initialize=initialize)
        tell(name, analysed.notices)
        return definition.get(warehouse, name)
    tell(name, analysed.notices)
    target = _home(warehouse, analysed)
    if target is None:
        raise _not_at_once(name)
    wanted = Wanted(name, text, analysed, target, schedule, options)
    if home is None:
        hosting.move_in(warehouse, stream, wanted)
    else:
        hosting.redefine(warehouse, stream, home, wanted)
    return definition.get(warehouse, name)


def drop_stream_table(warehouse: Warehouse, name: TableName, *, cascade: bool = False) -> list[Relation]:
    """Remove a stream table, and with ``cascade`` what is built on it; everything that went."""
    gone = definition.drop_stream_table(warehouse, name, cascade=cascade)
    hosting.settle_all(warehouse)
    return gone


def refresh(warehouse: Warehouse, name: TableName, *, force: bool = False) -> RefreshResult:
    """Bring a stream table to the present. One that is IMMEDIATE is there already; ``force`` computes it anew."""
    stream, home = _found(warehouse, name)
    if home is None or stream.refresh_mode is not RefreshMode.IMMEDIATE:
        return refresh_stream_table(warehouse, name, force=force)
    started = warehouse.clock.now()
    with warehouse.catalog.read() as tx:
        database = databases.by_id(tx, home.database_id)
    if force:
        with connected(database.dsn) as connection:
            rebuild(connection, home.table, schema=home.schema)
    reason = "computed anew in PostgreSQL" if force else "IMMEDIATE: it changes with its sources, in PostgreSQL"
    action = Action.FULL if force else Action.NO_DATA
    now = warehouse.clock.now()
    with warehouse.catalog.write() as tx:
        history.record(
            tx,
            relation_id=stream.relation.id,
            name=str(name),
            action=action,
            status=Outcome.COMPLETED,
            initiated_by=Initiator.MANUAL,
            started_at=started,
            ended_at=now,
            reason=reason,
        )
        streams.update(tx, stream.relation.id, now=now, data_timestamp=now, last_refresh_at=now)
    return RefreshResult(
        name=str(name),
        action=action.value,
        rows_inserted=0,
        rows_deleted=0,
        duration_ms=milliseconds(started, now),
        reason=reason,
        version=None,
        spark_jobs=0,
    )


def _found(warehouse: Warehouse, name: TableName) -> tuple[StreamTable, Hosted | None]:
    with warehouse.catalog.read() as tx:
        stream = streams.get(tx, name)
        return stream, hosted.of(tx, [stream.relation.id]).get(stream.relation.id)


def _home(warehouse: Warehouse, analysed: Analysed) -> Home | None:
    """The database that an IMMEDIATE stream table is to live in; None where it reads tables of the lake."""
    if not analysed.reading.tables:
        raise UnsupportedQuery("the query reads no table, so that nothing could change it", hint="make it a view")
    with warehouse.catalog.read() as tx:
        return home_of(tx, analysed.reading)


def _goes_there(warehouse: Warehouse, stream: StreamTable, text: Query, mode: RefreshMode) -> bool:
    """Whether a stream table of the lake is to live in PostgreSQL."""
    if mode is not RefreshMode.IMMEDIATE:
        return False
    analysed = analyse(warehouse, stream.relation.name, text, mode)
    if _home(warehouse, analysed) is None:
        return False
    if stream.refresh_mode is RefreshMode.IMMEDIATE:
        raise _not_at_once(stream.relation.name)
    return True


def _not_at_once(name: TableName) -> UnsupportedError:
    return UnsupportedError(
        f"{name} cannot stay IMMEDIATE while it moves between the lake and PostgreSQL",
        detail="what it would follow lives elsewhere than what it follows now",
        hint=f"ALTER STREAM TABLE {name} SET (refresh_mode = 'AUTO') first",
    )


def _check_options(options: Mapping[str, object]) -> None:
    if options.get("cdc_mode") == "wal":
        raise InvalidOption(
            "IMMEDIATE and cdc_mode = 'wal' contradict each other",
            detail="what is read from the WAL has been committed, and IMMEDIATE changes in the same transaction",
            hint="leave cdc_mode out",
        )
    if options.get("partition_by"):
        raise InvalidOption("an IMMEDIATE stream table in PostgreSQL is not partitioned", hint="leave partition_by out")
