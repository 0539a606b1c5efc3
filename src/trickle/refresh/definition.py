"""Stream tables come, change and go."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from pyspark.sql.types import StructType
from sqlalchemy.orm import Session

from trickle.algebra.names import TableName, check_columns, nearest
from trickle.catalog import alerts, intents, pins, relations, streams
from trickle.catalog.records import Dependency, Initiator, Kind, RefreshMode, Relation, Severity, Status, StreamTable
from trickle.errors import (
    ConcurrentModification,
    CycleError,
    InvalidOption,
    TrickleError,
    UnknownColumn,
    UnsupportedError,
    UnsupportedQuery,
    UserError,
    WrongKind,
)
from trickle.lake.create import create
from trickle.lake.shape import lost_columns, relaxed
from trickle.lake.snapshot import open_snapshot
from trickle.refresh.compiling import compile_reading
from trickle.refresh.cycles import BY_CHANGES, Defined, closed_by, peers, refuse_differential
from trickle.refresh.dependencies import DEEPEST, dependencies_of
from trickle.refresh.execute import refresh
from trickle.refresh.following import check_combination, followed_by, refuse_leaving
from trickle.refresh.lineage import load_lineage
from trickle.refresh.options import check_mode, check_options
from trickle.refresh.schedule import CALCULATED, check_schedule
from trickle.refresh.settled import settled, with_settled_views
from trickle.sources.lake import LakePosition
from trickle.sql import Query, query
from trickle.tables import guard, pinning
from trickle.tables.ddl import drop_unregistered, remove, taken
from trickle.tables.reading import Reading, parsed, resolve
from trickle.warehouse import Warehouse

_logger = logging.getLogger(__name__)
_FILL_ATTEMPTS = 8


@dataclass(frozen=True)
class Definition:
    """A stream table as its creator wants it, checked."""

    name: TableName
    query: Query
    schedule: str
    refresh_mode: RefreshMode
    options: Mapping[str, object]

    @staticmethod
    def of(warehouse: Warehouse, name: TableName, text: str, options: Mapping[str, object]) -> Definition:
        """Check everything that can be checked without the catalog or Spark."""
        if name.is_system:
            raise InvalidOption(f"{name} is in the system schema", hint="choose another schema")
        given = {key.lower(): value for key, value in options.items()}
        schedule = check_schedule(given.pop("schedule", CALCULATED))
        mode = check_mode(given.pop("refresh_mode", RefreshMode.AUTO))
        return Definition(name, checked_query(warehouse, text), schedule, mode, check_options(given))


@dataclass(frozen=True)
class Analysed:
    """A query with what it reads and the columns it gives."""

    reading: Reading
    schema: StructType
    canonical: str | None
    """The query made definite, when that differs from its text."""
    notices: tuple[str, ...]


def create_stream_table(warehouse: Warehouse, definition: Definition, *, initialize: bool = True) -> StreamTable:
    """Make a stream table, and fill it unless told not to. What cannot be filled is not kept."""
    with warehouse.catalog.read() as tx:
        existing = relations.find(tx, definition.name)
    if existing is not None:
        raise taken(existing)
    check_combination(definition.refresh_mode, definition.options, initialize=initialize)
    analysed = analyse(warehouse, definition.name, definition.query, definition.refresh_mode)
    refuse_hosted(analysed.reading)
    followed = _followed(warehouse, definition.name, definition.refresh_mode, definition.query, analysed)
    location = warehouse.place_for(definition.name)
    create(
        location,
        analysed.schema,
        partition_by=_partition(definition, analysed.schema),
        comment=_text_option(definition.options, "description"),
    )
    try:
        now = warehouse.clock.now()
        with warehouse.catalog.write() as tx:
            pinning.pin(tx, followed, now)
            relation = relations.add(
                tx,
                name=definition.name,
                kind=Kind.STREAM_TABLE,
                uid=uuid.uuid4().hex,
                location=warehouse.relative(location),
                query=definition.query.text,
                comment=_text_option(definition.options, "description"),
                now=now,
            )
            streams.add(
                tx,
                relation.id,
                query=definition.query.text,
                schedule=definition.schedule,
                refresh_mode=definition.refresh_mode,
                options=definition.options,
                always_refresh=definition.query.is_unsteady,
                now=now,
                canonical=analysed.canonical,
            )
            relations.set_dependencies(tx, relation.id, dependencies_of(definition.query, analysed.reading))
    except BaseException:
        drop_unregistered(warehouse, definition.name, location)
        raise
    if initialize:
        try:
            _settle(warehouse, followed)
            _fill(warehouse, [definition.name])
        except BaseException:
            # Where the intent stands, or others have built on it meanwhile, it stays.
            with suppress(TrickleError):
                remove(warehouse, relation, cascade=False, statement="DROP STREAM TABLE")
            raise
    tell(definition.name, [*analysed.notices, *_loose_ends(warehouse, definition.name)])
    return get(warehouse, definition.name)


def create_or_replace(warehouse: Warehouse, definition: Definition, *, initialize: bool = True) -> StreamTable:
    """Make the stream table, or change the one that is there as little as possible."""
    with warehouse.catalog.read() as tx:
        existing = relations.find(tx, definition.name)
        stream = streams.get(tx, definition.name) if existing and existing.kind is Kind.STREAM_TABLE else None
    if existing is None:
        return create_stream_table(warehouse, definition, initialize=initialize)
    if stream is None:
        raise WrongKind(f"{definition.name} is not a stream table", hint="drop it, or choose another name")
    changes: dict[str, object] = {"schedule": definition.schedule, "refresh_mode": definition.refresh_mode}
    changes |= {name: definition.options.get(name) for name in {*stream.options, *definition.options}}
    new_query = None if stream.query == definition.query.text else definition.query.text
    return alter(warehouse, definition.name, new_query, changes, initialize=initialize)


def alter(
    warehouse: Warehouse,
    name: TableName,
    new_query: str | None,
    changes: Mapping[str, object],
    *,
    initialize: bool = True,
) -> StreamTable:
    """Change options (None clears one) or the query. A new query is filled at once unless told not to."""
    stream = get(warehouse, name)
    given = {key.lower(): value for key, value in changes.items()}
    schedule = check_schedule(given.pop("schedule", stream.schedule))
    mode = check_mode(given.pop("refresh_mode", stream.refresh_mode))
    if given.get("partition_by", stream.options.get("partition_by")) != stream.options.get("partition_by"):
        raise InvalidOption(
            "partition_by cannot be changed", hint="drop the stream table and create it with the new partitioning"
        )
    checked = check_options(given)
    options = {k: v for k, v in {**stream.options, **checked}.items() if given.get(k, v) is not None}
    text = None if new_query is None else checked_query(warehouse, new_query)
    check_combination(mode, options, initialize=initialize)
    if mode in BY_CHANGES and text is None:
        refuse_differential(warehouse, stream)
    new_layout = mode is not stream.refresh_mode and RefreshMode.FULL in (mode, stream.refresh_mode)
    new_mode = new_layout or (mode is not stream.refresh_mode and RefreshMode.IMMEDIATE in (mode, stream.refresh_mode))
    kept = parsed(stream.query, DEEPEST) if new_mode and text is None else text
    analysed = None if kept is None else analyse(warehouse, name, kept, mode)
    if analysed is not None:
        refuse_hosted(analysed.reading)
        _keep_partition(stream, analysed.schema)
    followed = {}
    if analysed is not None and kept is not None:
        followed = _followed(warehouse, name, mode, kept, analysed)
    now = warehouse.clock.now()
    fills = analysed is not None and initialize and (text is not None or stream.populated)
    with warehouse.catalog.write() as tx:
        reads = relations.dependencies(tx, stream.relation.id)
        pinning.pin(tx, followed, now)
        if stream.refresh_mode is RefreshMode.IMMEDIATE and mode is not RefreshMode.IMMEDIATE:
            refuse_leaving(tx, stream)
        streams.update(tx, stream.relation.id, now=now, schedule=schedule, refresh_mode=mode, options=options)
        if text is not None and analysed is not None:
            _redefine(warehouse, tx, stream, text, analysed)
        elif new_layout:
            # What is stored differs: by changes, hidden columns are kept beside the visible ones.
            number = streams.lock(tx, stream.relation.id).refresh_number + 1
            streams.update(tx, stream.relation.id, now=now, needs_reinitialize=stream.populated, refresh_number=number)
        left = streams.by_id(tx, stream.relation.id).refresh_number
        back = _WayBack(stream, reads, left) if fills and mode is RefreshMode.IMMEDIATE else None
        if back is None:
            pinning.release(tx)
    if analysed is not None:
        tell(name, [*analysed.notices, *_loose_ends(warehouse, name)])
    if fills:
        _refill(warehouse, stream.relation, followed, back)
    return get(warehouse, name)


@dataclass(frozen=True)
class _WayBack:
    """A stream table before an ALTER that makes or leaves it IMMEDIATE. What it read keeps its pin until it is sure."""

    before: StreamTable
    reads: Sequence[Dependency]
    number: int
    """The refresh number that the ALTER left."""


def _refill(warehouse: Warehouse, relation: Relation, followed: Collection[int], back: _WayBack | None) -> None:
    """Fill a stream table that was changed.

    Other contents are what was asked for: no gate compares them with those of the old definition.
    """
    try:
        _settle(warehouse, followed)
        _fill(warehouse, _with_followers(warehouse, relation))
    except BaseException:
        if back is not None:
            _go_back(warehouse, back)
        raise
    if back is not None:
        # Where a statement is under way, a later change takes the pin off: it is in nobody's way.
        with suppress(ConcurrentModification), warehouse.catalog.write() as tx:
            pinning.release(tx)


def _redefine(warehouse: Warehouse, tx: Session, stream: StreamTable, text: Query, analysed: Analysed) -> None:
    """Give a stream table another query."""
    relation, now = stream.relation, warehouse.clock.now()
    lost = lost_columns(open_snapshot(warehouse.location_of(relation)).schema, analysed.schema)
    if lost:
        guard.protect(tx, relation, lost, f"change the columns of {relation.name}", warehouse.settings(tx), now)
    streams.update(
        tx,
        relation.id,
        now=now,
        query=text.text,
        needs_reinitialize=True,
        refresh_number=streams.lock(tx, relation.id).refresh_number + 1,
        always_refresh=text.is_unsteady,
        canonical=analysed.canonical,
    )
    relations.update(tx, relation.id, now=now, query=text.text)
    before = peers(tx, relation)
    relations.set_dependencies(tx, relation.id, dependencies_of(text, analysed.reading))
    # What is stored differs on a cycle and off it.
    guard.mark(tx, [relations.by_id(tx, node) for node in before ^ peers(tx, relation)], now)


def _followed(
    warehouse: Warehouse, name: TableName, mode: RefreshMode, text: Query, analysed: Analysed
) -> dict[int, pinning.Standing]:
    return followed_by(warehouse, name, text, analysed.reading) if mode is RefreshMode.IMMEDIATE else {}


def _settle(warehouse: Warehouse, followed: Collection[int]) -> None:
    """Take in what was written to tables between the look at them and their pin: readers have seen it."""
    for table in followed:
        with warehouse.catalog.read() as tx:
            relation = relations.by_id(tx, table)
        if warehouse.immediate is not None:
            warehouse.immediate.catch_up(warehouse, relation)
            warehouse.immediate.publish(warehouse, relation)


def _fill(warehouse: Warehouse, names: Sequence[TableName]) -> None:
    """Fill stream tables for the first time or anew. A statement that one of them follows may come first."""
    for attempt in range(1, _FILL_ATTEMPTS + 1):
        try:
            refresh(warehouse, names, initiated_by=Initiator.INITIAL)
            return
        except ConcurrentModification:
            if attempt == _FILL_ATTEMPTS or get(warehouse, names[0]).refresh_mode is not RefreshMode.IMMEDIATE:
                raise


def _with_followers(warehouse: Warehouse, relation: Relation) -> list[TableName]:
    """A stream table and the IMMEDIATE ones that change with it."""
    with warehouse.catalog.read() as tx:
        return [relation.name, *(each.name for each in pinning.followers(tx, [relation.id]))]


def _go_back(warehouse: Warehouse, back: _WayBack) -> None:
    """Have a stream table be what it was, unless its contents have come after all.

    Otherwise every statement on what it follows would fail with it.
    """
    before, table, now = back.before, back.before.relation.id, warehouse.clock.now()
    with suppress(TrickleError):
        with warehouse.catalog.write() as tx:
            stored = streams.lock(tx, table)
            came = stored.refresh_number > back.number and not stored.needs_reinitialize
            if came or intents.pending(tx, [table]):
                return
            behind = before.refresh_mode is RefreshMode.IMMEDIATE and _is_behind(tx, stored)
            streams.update(
                tx,
                table,
                now=now,
                query=before.query,
                canonical=before.canonical,
                always_refresh=before.always_refresh,
                schedule=before.schedule,
                refresh_mode=before.refresh_mode,
                options=before.options,
                status=before.status,
                consecutive_errors=before.consecutive_errors,
                needs_reinitialize=before.needs_reinitialize or behind,
                refresh_number=stored.refresh_number + 1,
            )
            relations.set_dependencies(tx, table, back.reads)
            pinning.release(tx)
        if behind:
            _fill(warehouse, _with_followers(warehouse, before.relation))


def _is_behind(tx: Session, stream: StreamTable) -> bool:
    """Whether a source was moved without the stream table, while that did not follow it."""
    held = {source: pin.version for source, pin in pins.of(tx, stream.frontier).items()}
    held |= {one.relation.id: one.version for one in streams.listing(tx)}
    return any(LakePosition.parse(at).version != held.get(source) for source, at in stream.frontier.items())


def get(warehouse: Warehouse, name: TableName) -> StreamTable:
    """A stream table by name."""
    with warehouse.catalog.read() as tx:
        return streams.get(tx, name)


def drop_stream_table(warehouse: Warehouse, name: TableName, *, cascade: bool = False) -> list[Relation]:
    """Remove a stream table, and with ``cascade`` what is built on it; everything that went."""
    stream = get(warehouse, name)
    return remove(warehouse, stream.relation, cascade=cascade, statement="DROP STREAM TABLE")


def set_suspended(warehouse: Warehouse, name: TableName, *, suspended: bool) -> StreamTable:
    """Suspend a stream table, or resume it with its errors forgotten."""
    now = warehouse.clock.now()
    with warehouse.catalog.write() as tx:
        stream = streams.lock(tx, streams.get(tx, name).relation.id)
        if suspended and stream.refresh_mode is RefreshMode.IMMEDIATE:
            raise WrongKind(
                f"{name} is IMMEDIATE and cannot be suspended",
                detail="what it follows could not be changed without it",
                hint=f"ALTER STREAM TABLE {name} SET (refresh_mode = 'AUTO') first",
            )
        back = Status.ACTIVE if stream.populated else Status.INITIALIZING
        streams.update(
            tx,
            stream.relation.id,
            now=now,
            status=Status.SUSPENDED if suspended else back,
            consecutive_errors=stream.consecutive_errors if suspended else 0,
        )
        if not suspended and stream.status is Status.SUSPENDED:
            alerts.add(
                tx,
                event="resumed",
                relation_id=stream.relation.id,
                severity=Severity.INFO,
                payload={"stream_table": str(name)},
                now=now,
            )
    return get(warehouse, name)


def checked_query(warehouse: Warehouse, text: str) -> Query:
    """A query that a stream table may have, as far as its text tells."""
    with warehouse.catalog.read() as tx:
        depth = warehouse.settings(tx).max_parse_depth
    parsed = query(text, max_depth=depth)
    _refuse_unsteady(parsed)
    return parsed


def _refuse_unsteady(parsed: Query) -> None:
    """Refuse what no refresh could keep, in the query itself or in a view that it reads."""
    if parsed.limit_without_order:
        raise UnsupportedQuery(
            "LIMIT without ORDER BY gives other rows at every refresh", hint="add ORDER BY, or drop the LIMIT"
        )
    if parsed.table_sample:
        raise UnsupportedQuery(
            "TABLESAMPLE gives other rows at every refresh", hint="filter by a hash of a key instead"
        )
    if any(name.is_system for name in parsed.tables):
        raise UnsupportedQuery("a stream table cannot read system views", hint="read the system view itself")
    if any(ref.version is not None for ref in parsed.refs):
        raise UnsupportedQuery("a stream table reads its sources as they are", hint="leave VERSION AS OF out")


def analyse(warehouse: Warehouse, name: TableName, text: Query, mode: RefreshMode) -> Analysed:
    """Spark's verdict on the query: what it reads and which columns it gives. A cycle is refused or checked here.

    So is, in modes DIFFERENTIAL and IMMEDIATE, a query that cannot be kept by changes.
    """
    with warehouse.catalog.read() as tx:
        own = relations.find(tx, name)
        if own is None and name in text.tables:
            raise CycleError(f"stream table {name} would read itself")
        reading = resolve(warehouse, tx, text)
        cycle = None
        if own is not None and warehouse.settings(tx).allow_circular:
            cycle = closed_by(warehouse, tx, own, reading)
        if cycle is None:
            guard.refuse_cycle(tx, name, own, reading.relations.values())
    for view in reading.views.values():
        _refuse_unsteady(view)
    reading = reading.for_columns()
    try:
        canonical, notices = _settled(text, reading, mode)
    except UserError:
        _ = reading.described(text, DEEPEST)  # Spark's words come first.
        raise
    definite = text if canonical is None else query(canonical, max_depth=DEEPEST)
    if cycle is not None:
        cycle.check(Defined(name, definite, reading, mode))
        notices = (*notices, "it is kept in full only (CIRCULAR): it lies on a cycle of stream tables")
    frame = reading.described(definite, DEEPEST)
    check_columns(frame.columns)
    return Analysed(reading, relaxed(frame.schema), canonical, notices)


def refuse_hosted(reading: Reading) -> None:
    """What lives in the lake reads what is in the lake."""
    for relation in reading.tables:
        home = reading.hosted.get(relation.id)
        if home is not None:
            raise UnsupportedQuery(
                f"{relation.name} lives in PostgreSQL, and has no history that a stream table of the lake could follow",
                hint=f"attach {home.schema}.{home.table} with attach_postgres, and read it under its name there",
            )


def _settled(text: Query, reading: Reading, mode: RefreshMode) -> tuple[str | None, tuple[str, ...]]:
    """The query made definite, and what its creator should know."""
    notices = ["ORDER BY without LIMIT has no effect: a table has no order"] if text.order_without_limit else []
    chance = [*text.volatile, *(name for view in reading.views.values() for name in view.volatile)]
    unsteady = bool(chance) or any(view.time_dependent for view in reading.views.values())
    if unsteady and mode in BY_CHANGES:
        raise UnsupportedQuery(
            "a query that depends on chance, or on a view that reads the clock, cannot be kept by changes",
            detail=f"found {', '.join(chance) or 'a view that reads the clock'}",
            hint="use refresh_mode = 'FULL' or 'AUTO'; read the clock in the query itself",
        )
    try:
        found = settled(text.text, reading)
    except UnsupportedError as error:
        if mode in BY_CHANGES:
            raise
        return None, (*notices, f"it is kept in full only (UNSUPPORTED): {error.message}")
    definite = None if found.text == text.text else found.text
    notices += found.notices
    if mode is RefreshMode.AUTO and unsteady:
        notices.append("it is kept in full only (UNSTEADY): the query depends on chance")
    elif mode is not RefreshMode.FULL:
        run = text if definite is None else query(definite, max_depth=DEEPEST)
        try:
            compiled = compile_reading(run, with_settled_views(reading))
            notices += [f"{part} reads its input whole at every refresh" for part in compiled.unrestricted]
        except UnsupportedError as error:
            if mode in BY_CHANGES:
                raise
            notices.append(f"it is kept in full only (UNSUPPORTED): {error.message}")
    return definite, tuple(notices)


def _loose_ends(warehouse: Warehouse, name: TableName) -> list[str]:
    """What several ways from one source bring at different times, because somebody said so."""
    with warehouse.catalog.read() as tx:
        stream = streams.get(tx, name)
        if stream.options.get("diamond_consistency") != "none":
            return []
        shared = load_lineage(tx).met_twice(stream.relation.id)
    return [f"diamond_consistency is none: {', '.join(shared)} may reach it at different times"] if shared else []


def tell(name: TableName, notices: Sequence[str]) -> None:
    """Log what the creator of a stream table should know."""
    for notice in notices:
        _logger.warning("stream table %s: %s", name, notice)


def _partition(definition: Definition, schema: StructType) -> list[str]:
    wanted = definition.options.get("partition_by") or []
    assert isinstance(wanted, list)
    by_key = {column.lower(): column for column in schema.names}
    for column in wanted:
        if column.lower() not in by_key:
            close = nearest(column, schema.names)
            raise UnknownColumn(
                f"partition_by names no column of {definition.name}: {column!r}",
                hint=f"did you mean {close!r}?" if close else "columns: " + ", ".join(schema.names),
            )
    return [by_key[column.lower()] for column in wanted]


def _keep_partition(stream: StreamTable, schema: StructType) -> None:
    """A new query must give the columns that the stored table is partitioned by."""
    wanted = stream.options.get("partition_by") or []
    assert isinstance(wanted, list)
    lost = [column for column in wanted if column.lower() not in (name.lower() for name in schema.names)]
    if lost:
        raise UnknownColumn(
            f"the new query of {stream.relation.name} has no column {lost[0]!r}, by which the table is partitioned",
            hint="drop the stream table and create it with another partition_by",
        )


def _text_option(options: Mapping[str, object], name: str) -> str | None:
    value = options.get(name)
    return value if isinstance(value, str) else None
