"""Changing a table's shape: columns are added in the log alone; all else rewrites the files under a new schema."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError, DeltaError
from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    ShortType,
    StructField,
    StructType,
    TimestampNTZType,
)

from trickle.algebra.names import nearest, quote
from trickle.engine import Engine
from trickle.errors import (
    ConcurrentModification,
    DuplicateName,
    InternalError,
    InvalidData,
    InvalidOption,
    UnknownColumn,
    UnsupportedStatement,
    UnsupportedTable,
)
from trickle.lake.commit import HOOKS, check_writable, commit_properties, open_table, refuse_vectors
from trickle.lake.location import Location
from trickle.lake.prepared import UNCHANGED, Prepared, staging
from trickle.lake.properties import check_properties
from trickle.lake.scan import scan
from trickle.lake.snapshot import Snapshot
from trickle.lake.stage import Target, stage
from trickle.lake.types import delta_schema, storable

_WHOLE_NUMBERS = (ByteType(), ShortType(), IntegerType(), LongType())
_DIGITS = {ByteType(): 3, ShortType(): 5, IntegerType(): 10, LongType(): 20}


def add_columns(snapshot: Snapshot, fields: Iterable[StructField]) -> int:
    """Add nullable columns at the end; rows that are there have NULL in them. Returns the new version."""
    added = storable(StructType(list(fields)))
    required = [field.name for field in added.fields if not field.nullable]
    if required:
        raise InvalidData(
            f"column {required[0]!r} cannot be added as NOT NULL",
            detail="rows that are there would have NULL in it",
            hint="add it without NOT NULL",
        )
    known = {name.lower() for name in snapshot.schema.names}
    taken = [field.name for field in added.fields if field.name.lower() in known]
    if taken:
        raise DuplicateName(f"column {taken[0]!r} is there already")
    table = open_table(snapshot.location, snapshot.version)
    return _altered(
        snapshot.location,
        table,
        lambda: table.alter.add_columns(
            list(delta_schema(added).fields),
            commit_properties=commit_properties({"kind": "add columns", **UNCHANGED}),
            post_commithook_properties=HOOKS,
        ),
    )


def set_properties(snapshot: Snapshot, properties: Mapping[str, str]) -> int:
    """Set table properties. Returns the new version."""
    check_properties(properties)
    table = open_table(snapshot.location, snapshot.version)
    features = table.protocol().reader_features
    if features:
        # delta-rs would add the feature variantType to such a table, which then few can read.
        raise UnsupportedTable(
            "the properties of this table cannot be changed",
            detail=f"{snapshot.location.uri} has the Delta features {', '.join(features)}",
            hint="set the properties when the table is made",
        )
    return _altered(
        snapshot.location,
        table,
        lambda: table.alter.set_table_properties(
            dict(properties),
            raise_if_not_exists=False,
            commit_properties=commit_properties({"kind": "set properties", **UNCHANGED}),
            post_commithook_properties=HOOKS,
        ),
    )


def _altered(location: Location, table: DeltaTable, change: Callable[[], None]) -> int:
    check_writable(location, table)
    version = table.version()
    try:
        change()
    except CommitFailedError:
        raise ConcurrentModification(
            "another writer changed the table first",
            detail=f"{location.uri} is past version {version}",
            hint="run the statement again",
        ) from None
    except DeltaError as error:
        raise InvalidOption("the table cannot be changed so", detail=str(error)) from None
    return version + 1


def select_columns(engine: Engine, snapshot: Snapshot, columns: Sequence[tuple[str, str]]) -> Prepared:
    """The table with some of its columns, in a new order or under new names: pairs of the old name and the new."""
    fields = []
    for old, new in columns:
        field = _column(snapshot, old)
        if field.name in snapshot.partition_by and field.name != new:
            raise _fixed(field.name)
        fields.append(StructField(new, field.dataType, field.nullable, field.metadata))
    kept = {_column(snapshot, old).name for old, _ in columns}
    for name in snapshot.partition_by:
        if name not in kept:
            raise _fixed(name)
    select = [F.col(quote(_column(snapshot, old).name)).alias(new) for old, new in columns]
    return rewrite_schema(engine, snapshot, select, StructType(fields), kind="select columns")


def widen(engine: Engine, snapshot: Snapshot, types: Mapping[str, DataType]) -> Prepared:
    """The table with wider types for some columns, each of which holds every value of the old one."""
    wider = {_column(snapshot, name).name: kind for name, kind in types.items()}
    for field in snapshot.schema.fields:
        if field.name in wider:
            check_widening(field.name, field.dataType, wider[field.name])
    fields = [
        StructField(f.name, wider.get(f.name, f.dataType), f.nullable, f.metadata) for f in snapshot.schema.fields
    ]
    select = [F.col(quote(f.name)).cast(f.dataType).alias(f.name) for f in fields]
    return rewrite_schema(engine, snapshot, select, StructType(fields), kind="widen columns")


def check_widening(name: str, old: DataType, new: DataType) -> None:
    """Refuse a change of type that could lose values."""
    if not widens(old, new):
        raise UnsupportedStatement(
            f"column {name!r} cannot change from {old.simpleString()} to {new.simpleString()}",
            hint="only wider types are possible, for example INT to BIGINT",
        )


def widens(old: DataType, new: DataType) -> bool:
    """Whether the new type holds every value of the old one.

    >>> widens(IntegerType(), LongType()), widens(LongType(), IntegerType()), widens(LongType(), DoubleType())
    (True, False, False)
    """
    if old == new:
        return True
    if old in _WHOLE_NUMBERS and new in _WHOLE_NUMBERS:
        return _WHOLE_NUMBERS.index(new) > _WHOLE_NUMBERS.index(old)
    match old, new:
        case FloatType(), DoubleType():
            return True
        case ((ByteType() | ShortType() | IntegerType()), DoubleType()):
            return True
        case ((ByteType() | ShortType() | IntegerType() | LongType()), DecimalType()):
            return new.precision - new.scale >= _DIGITS[old]
        case DecimalType(), DecimalType():
            return new.scale >= old.scale and new.precision - new.scale >= old.precision - old.scale
        case DateType(), TimestampNTZType():
            return True
        case _:
            return False


def rewrite_schema(
    engine: Engine, snapshot: Snapshot, select: Sequence[Column], schema: StructType, *, kind: str = "rewrite"
) -> Prepared:
    """The same rows under a new schema: every file is written anew, and no reader sees a change of rows."""
    stored = storable(schema)
    refuse_vectors(snapshot.location, snapshot.files)
    if snapshot.partition_by and not set(snapshot.partition_by) <= set(stored.names):
        raise InternalError("a new schema must keep the partition columns")
    with staging(snapshot.location) as stages:
        rows = scan(engine, snapshot).select(*select)
        staged = stage(rows, Target(snapshot.location, stored, snapshot.partition_by))
        stages.append(staged.stage_id)
        return Prepared(
            location=snapshot.location,
            read_version=snapshot.version,
            adds=staged.files,
            removes=snapshot.files,
            info={"kind": kind, **UNCHANGED},
            stage_ids=tuple(stages),
            schema=stored,
        )


def _column(snapshot: Snapshot, name: str) -> StructField:
    found = next((f for f in snapshot.schema.fields if f.name.lower() == name.lower()), None)
    if found is None:
        close = nearest(name, snapshot.schema.names)
        raise UnknownColumn(f"no column {name!r}", hint=f"did you mean {close!r}?" if close else None)
    return found


def _fixed(name: str) -> UnsupportedStatement:
    return UnsupportedStatement(
        f"partition column {name!r} cannot be dropped or renamed",
        hint="make a new table with CREATE TABLE ... AS SELECT",
    )
