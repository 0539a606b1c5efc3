"""Committing prepared work to one base table, again when another writer came first.

One Delta commit is atomic by itself, so base tables need no intent. Work computed from a snapshot is computed anew on
a conflict; a blind append is committed again as it is, unless the table's shape changed under it. A table with a pin
is followed by IMMEDIATE stream tables and is committed together with them (``Warehouse.immediate``). There an error may
come after the commit: before anything is discarded or tried again, that very commit is looked for.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from weakref import WeakKeyDictionary

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from trickle.algebra.names import TableName, nearest, quote
from trickle.apply.unit import application_id, is_decided, recover
from trickle.catalog import pins, relations
from trickle.catalog.records import Kind, Relation
from trickle.catalog.store import Catalog
from trickle.errors import (
    CatalogUnreachable,
    ConcurrentModification,
    InternalError,
    InvalidData,
    TrickleError,
    UnknownColumn,
    WrongKind,
)
from trickle.lake.commit import TableCommit, commit
from trickle.lake.few import Few
from trickle.lake.prepared import Prepared
from trickle.lake.rewrite import append, overwrite
from trickle.lake.snapshot import Snapshot
from trickle.tables.pinning import Target, opened
from trickle.tables.results import Changed
from trickle.warehouse import Immediate, Warehouse

_queues: WeakKeyDictionary[Catalog, threading.RLock] = WeakKeyDictionary()


def writable(warehouse: Warehouse, name: TableName) -> tuple[Relation, int]:
    """A table that DML may change, and how often a statement is tried on it."""
    with warehouse.catalog.read() as tx:
        relation = relations.get(tx, name)
        attempts = warehouse.settings(tx).commit_attempts
    if relation.kind is Kind.ATTACHED:
        raise WrongKind(f"{name} is an attached table", hint="it is written by its owner, and only read here")
    if relation.kind is not Kind.TABLE:
        hint = "change the tables that its query reads"
        if relation.kind is Kind.REPLICA:
            hint = "change the table in its own database: ingest brings the change here"
        raise WrongKind(f"{name} is {relation.kind.words} and cannot be written to", hint=hint)
    return relation, attempts


def change(warehouse: Warehouse, name: TableName, prepare: Callable[[Snapshot], Prepared]) -> Changed:
    """Prepare work on the newest version of a table and commit it; anew when another writer came first."""
    relation, attempts = writable(warehouse, name)
    with _in_turn(warehouse, relation):
        for attempt in range(1, attempts + 1):
            target = opened(warehouse, relation)
            prepared = prepare(target.snapshot)
            if prepared.is_empty:
                return Changed(str(relation.name), 0, 0, target.snapshot.version)
            try:
                version = _landed(warehouse, target, prepared)
                return Changed(str(relation.name), prepared.inserted, prepared.deleted, version)
            except ConcurrentModification:
                prepared.discard()
                if attempt == attempts:
                    raise
                _wait(attempt)
    raise AssertionError("unreachable")


def append_rows(
    warehouse: Warehouse, name: TableName, rows: Callable[[Snapshot], DataFrame], *, few: Few | None = None
) -> Changed:
    """Add rows to a table.

    The files are written once, however often the commit is tried.
    """
    relation, attempts = writable(warehouse, name)
    with _in_turn(warehouse, relation):
        target = opened(warehouse, relation)
        first = target.snapshot
        prepared = append(warehouse.engine, first, rows(first), few=few)
        if prepared.is_empty:
            return Changed(str(relation.name), 0, 0, first.version)
        for attempt in range(1, attempts + 1):
            try:
                return Changed(str(relation.name), prepared.inserted, 0, _landed(warehouse, target, prepared))
            except ConcurrentModification:
                target = opened(warehouse, relation)
                newest = target.snapshot
                if attempt == attempts or newest.schema != first.schema or newest.table_id != first.table_id:
                    prepared.discard()
                    raise
                prepared = replace(prepared, read_version=newest.version)
                _wait(attempt)
    raise AssertionError("unreachable")


@contextmanager
def _in_turn(warehouse: Warehouse, table: Relation) -> Iterator[None]:
    """Threads of one process change tables with a pin one after the other: of two at once, one would work in vain.

    Afterwards, when the next may go on, what changed is published.
    """
    with warehouse.catalog.read() as tx:
        pinned = pins.find(tx, table.id) is not None
    if not pinned:
        yield
        return
    with _queues.setdefault(warehouse.catalog, threading.RLock()):
        yield
    _immediate(warehouse).publish(warehouse, table)


def _landed(warehouse: Warehouse, target: Target, prepared: Prepared) -> int:
    """Commit prepared work, with everything that follows the table; the new version."""
    if target.pin is None:
        version = commit(prepared.as_commit())
        _follow_up(warehouse, target.relation)
        return version
    relation, pin = target.relation, target.pin
    change = prepared.as_commit(app=(application_id(relation.uid), pin.number + 1))
    try:
        _immediate(warehouse).land(warehouse, relation, pin, target.snapshot, prepared, change)
    except ConcurrentModification:
        recover(warehouse, [relation.id])
        if not is_decided(warehouse, relation.id, change):
            raise
    except BaseException:
        _take_back(warehouse, relation, change, prepared)
        raise
    return change.version


def _immediate(warehouse: Warehouse) -> Immediate:
    if warehouse.immediate is None:
        raise InternalError("a table is followed by IMMEDIATE stream tables, and nothing here can change these")
    return warehouse.immediate


def _follow_up(warehouse: Warehouse, table: Relation) -> None:
    """See to a table that was pinned while the statement ran: nobody sees its rows otherwise.

    The statement has happened whatever comes of it; if this fails, the next one begins with it.
    """
    with suppress(TrickleError):
        with warehouse.catalog.read() as tx:
            pinned = pins.find(tx, table.id) is not None
        if pinned:
            _immediate(warehouse).catch_up(warehouse, table)
            _immediate(warehouse).publish(warehouse, table)


def _take_back(warehouse: Warehouse, table: Relation, change: TableCommit, prepared: Prepared) -> None:
    """Remove what a failed statement staged, unless its unit was decided: then it will happen."""
    try:
        decided = is_decided(warehouse, table.id, change)
    except CatalogUnreachable:
        return  # Whether the intent stands is not known: vacuum removes what nobody refers to.
    if not decided:
        prepared.discard()


def replace_contents(warehouse: Warehouse, name: TableName, rows: Callable[[Snapshot], DataFrame]) -> Changed:
    """Put new contents in the place of a table's old ones."""
    return change(warehouse, name, lambda s: overwrite(warehouse.engine, s, rows(s), difference=False))


def arrange(frame: DataFrame, snapshot: Snapshot, columns: tuple[str, ...] | None, table: TableName) -> DataFrame:
    """Name the columns of an INSERT's rows by their position; columns that are not given are NULL."""
    names = snapshot.schema.names
    given = list(names) if columns is None else [_known(c, names, table) for c in columns]
    if len(set(given)) != len(given):
        raise InvalidData(f"a column is given twice in the INSERT into {table}")
    if len(frame.columns) != len(given):
        raise InvalidData(
            f"INSERT into {table} has {len(frame.columns)} values for {len(given)} columns",
            detail="columns: " + ", ".join(given),
            hint="name the columns: INSERT INTO table (a, b) ...",
        )
    named = frame.toDF(*given)
    kept = [F.col(quote(c)) if c in given else F.lit(None).alias(c) for c in names]
    return named.select(*kept)


def match_names(frame: DataFrame, snapshot: Snapshot, table: TableName) -> DataFrame:
    """Order the columns of written rows by name; columns that are not given are NULL, unknown ones are refused."""
    names = snapshot.schema.names
    given = {_known(column, names, table): column for column in frame.columns}
    if len(given) != len(frame.columns):
        raise InvalidData(f"the rows for {table} have two columns of one name")
    return frame.select(*[F.col(quote(given[c])).alias(c) if c in given else F.lit(None).alias(c) for c in names])


def _known(column: str, names: list[str], table: TableName) -> str:
    for name in names:
        if name.lower() == column.lower():
            return name
    close = nearest(column, names)
    raise UnknownColumn(
        f"table {table} has no column {column!r}",
        hint=f"did you mean {close!r}?" if close else "columns: " + ", ".join(names),
    )


def _wait(attempt: int) -> None:
    """Give way to the other writers; longer each time, and not all alike."""
    time.sleep(min(0.01 * 2**attempt, 1.0) * random.uniform(0.5, 1.0))  # noqa: S311 - no secret depends on it
