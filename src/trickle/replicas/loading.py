"""Loading replicas: all rows of their sources as one snapshot sees them, and from there on what is captured.

Capture is armed before the snapshot is taken, so whatever is written meanwhile is either in the snapshot or captured
after it, and the position of the replica is the snapshot itself: no gap and no overlap. The snapshot is exported and
its transaction held open until the last task has read its part, with a lock that keeps the tables as they are. Small
tables are read on the driver, in batches; the others by Spark tasks, range by range (``source.py``).

Tables that are loaded together are committed as one unit. A replica that is loaded anew is overwritten with the rows
that differ, so that what reads it sees a change and not another table.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import pyarrow as pa
from psycopg import sql
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import StructField, StructType
from sqlalchemy.orm import Session

from trickle import errors
from trickle.apply.unit import PinnedMember, application_id, commit_unit
from trickle.catalog import databases, relations
from trickle.catalog.outside import Database, Replica, ReplicaStatus
from trickle.engine import spark_errors
from trickle.engine.arrow import for_spark
from trickle.errors import ConcurrentModification, TrickleError
from trickle.lake.few import THREADS
from trickle.lake.keyed import in_order
from trickle.lake.prepared import Prepared, note
from trickle.lake.rewrite import overwrite
from trickle.lake.snapshot import Snapshot, open_snapshot
from trickle.lake.stage import Staged, stage_made
from trickle.postgres.connect import Connection, connected
from trickle.postgres.tables import Relkind, SourceTable, describe_oids
from trickle.replicas import shape
from trickle.replicas.giving_up import give_up
from trickle.replicas.source import (
    FAILURE,
    FORMAT,
    OPTION,
    PostgresSource,
    Range,
    plan_of,
    ranges,
    read_range,
    stored_bytes,
)
from trickle.sources.postgres.capture import Capture
from trickle.warehouse import Warehouse

DRIVER_BYTES = 32 << 20
"""Up to this size a table is read on the driver, all of it at once: a Spark job takes longer to start."""

Progress = Callable[[str, int], None]
"""Told the name of a table and its number of rows when it is loaded."""

Fence = Callable[[Session], None]


@dataclass(frozen=True)
class Source:
    """A replica and the table that it is loaded from, as that is now."""

    replica: Replica
    table: SourceTable


def lake_schema(table: SourceTable) -> StructType:
    """The columns of a replica."""
    names = shape.lake_names(column.name for column in table.columns)
    return StructType(
        [
            StructField(
                name,
                from_arrow_type(column.mapped.arrow, prefer_timestamp_ntz=True),
                nullable=column.name not in table.key,
            )
            for name, column in zip(names, table.columns, strict=True)
        ]
    )


def lake_key(table: SourceTable) -> tuple[str, ...]:
    """The key of a replica."""
    own = [column.name for column in table.columns]
    names = dict(zip(own, shape.lake_names(own), strict=True))
    return tuple(names[column] for column in table.key)


def nullable(schema: StructType) -> StructType:
    """The columns without what they promise: NULL where NOT NULL is declared is refused where rows are staged."""
    return StructType([StructField(field.name, field.dataType) for field in schema.fields])


def load(
    warehouse: Warehouse,
    database: Database,
    sources: Sequence[Source],
    capture: Capture,
    *,
    fence: Fence | None = None,
    progress: Progress = lambda _name, _rows: None,
) -> dict[int, int]:
    """Load replicas whose sources are armed by a capture; the number of rows of each, by relation."""
    if not sources:
        return {}
    prepared: dict[int, Prepared] = {}
    counts: dict[int, int] = {}
    try:
        with exported(database.dsn, [source.table for source in sources]) as (connection, name, snapshot):
            position = capture.loaded(snapshot)
            for source in sources:
                made, rows = _prepare(warehouse, database, connection, name, source)
                prepared[source.replica.relation.id] = made
                counts[source.replica.relation.id] = rows
                progress(str(source.replica.relation.name), rows)
        commit_unit(warehouse, [_member(s.replica, prepared, position) for s in sources], fence=fence)
    except BaseException:
        give_up(warehouse, [source.replica for source in sources], prepared)
        raise
    now = warehouse.clock.now()
    with warehouse.catalog.write() as tx:
        for source in sources:
            key = lake_key(source.table)
            if source.replica.relation.key != key:
                relations.update(tx, source.replica.relation.id, now=now, key=key)
            databases.update_replica(
                tx,
                source.replica.relation.id,
                status=ReplicaStatus.ACTIVE,
                problem=None,
                loaded_at=now,
                shape=shape.to_json(source.table),
                schema_name=source.table.schema,
                table_name=source.table.name,
            )
    return counts


def _member(replica: Replica, prepared: dict[int, Prepared], position: str) -> PinnedMember:
    made, number = prepared[replica.relation.id], replica.pin.number + 1
    if made.is_empty:
        return PinnedMember(replica.relation.id, number, None, made.read_version, position)
    commit = made.as_commit(app=(application_id(replica.relation.uid), number))
    return PinnedMember(replica.relation.id, number, commit, commit.version, position)


@contextmanager
def exported(dsn: str, tables: Sequence[SourceTable]) -> Iterator[tuple[Connection, str, str]]:
    """A connection inside a snapshot, the name under which others can take it, and what it sees. The tables are locked
    as a reader locks them, and are as described: VACUUM FULL would move rows between two ranges, and another table of
    the same name would be read for this one.
    """
    with connected(dsn) as connection:
        connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        for table in tables:
            _lock(connection, table)
        now = describe_oids(connection, [table.oid for table in tables])
        for table in tables:
            if not _is_as_described(table, now.get(table.oid)):
                raise ConcurrentModification(
                    f"{table.shown} was changed when it was about to be loaded",
                    detail="it has another name, other columns or other partitions",
                    hint="try again",
                )
        found = connection.execute("SELECT pg_export_snapshot(), pg_current_snapshot()::text").fetchone()
        assert found is not None
        yield connection, found[0], found[1]
        connection.execute("COMMIT")


def _lock(connection: Connection, table: SourceTable) -> None:
    """Lock a table and all of its parts."""
    if table.kind in (Relkind.TABLE, Relkind.PARTITIONED):
        connection.execute(sql.SQL("LOCK TABLE {} IN ACCESS SHARE MODE").format(table.quoted))
    else:
        # The others cannot be locked by name, but a reader locks them.
        connection.execute(sql.SQL("SELECT FROM {} LIMIT 0").format(table.quoted))


def _is_as_described(table: SourceTable, now: SourceTable | None) -> bool:
    if now is None or shape.difference(table, now) is not None:
        return False
    return (table.schema, table.name, set(table.parts)) == (now.schema, now.name, set(now.parts))


def _prepare(
    warehouse: Warehouse, database: Database, connection: Connection, name: str, source: Source
) -> tuple[Prepared, int]:
    """The next contents of a replica, staged, and their number of rows."""
    snapshot = open_snapshot(warehouse.location_of(source.replica.relation))
    wanted = lake_schema(source.table)
    pieces = ranges(connection, source.table)
    size = stored_bytes(connection, source.table)
    if size is not None and size <= DRIVER_BYTES and not snapshot.files and snapshot.schema == wanted:
        staged = _on_driver(connection, source.table, pieces, snapshot)
        return _first(snapshot, staged), staged.rows
    frame = _in_spark(warehouse, plan_of(database.dsn, name, source.table, pieces), wanted)
    schema = None if snapshot.schema == wanted else wanted
    try:
        made = overwrite(
            warehouse.engine, snapshot, frame, difference=schema is None, schema=schema, order=lake_key(source.table)
        )
    except TrickleError as error:
        raise _from_task(error) from None
    return made, sum(file.rows or 0 for file in made.adds)


def _first(snapshot: Snapshot, staged: Staged) -> Prepared:
    return Prepared(
        location=snapshot.location,
        read_version=snapshot.version,
        adds=staged.files,
        info=note("load", staged.rows, 0),
        inserted=staged.rows,
        stage_ids=(staged.stage_id,),
    )


def _on_driver(connection: Connection, table: SourceTable, pieces: Sequence[Range], snapshot: Snapshot) -> Staged:
    batches = [rows for piece in pieces for rows in read_range(connection, table, piece)]
    if not batches:
        return stage_made([], snapshot)
    rows = for_spark(pa.concat_tables(batches), nullable(snapshot.schema))
    return stage_made(in_order(rows, lake_key(table)), snapshot, THREADS)


def _in_spark(warehouse: Warehouse, plan: str, schema: StructType) -> DataFrame:
    spark = warehouse.engine.spark
    with spark_errors():
        spark.dataSource.register(PostgresSource)
        return spark.read.format(FORMAT).schema(nullable(schema)).option(OPTION, plan).load()


def _from_task(error: TrickleError) -> TrickleError:
    """The error of ours that a task sent in the text of its exception, or the one that Spark made of it."""
    cause: BaseException | None = error
    while cause is not None:
        _, found, rest = str(cause).partition(FAILURE)
        if found:
            sent, _ = json.JSONDecoder().raw_decode(rest)
            return _rebuilt(sent["code"], sent["message"], sent["detail"], sent["hint"])
        cause = cause.__context__
    return error


def _rebuilt(code: str, message: str, detail: str | None, hint: str | None) -> TrickleError:
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, TrickleError)]
    kind = next((kind for kind in kinds if kind.code == code), TrickleError)
    return kind(message, detail=detail, hint=hint)
