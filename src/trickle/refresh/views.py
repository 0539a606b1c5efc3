"""The leaves of plans on their way into Spark.

To hand rows over takes some 20 ms, however few they are: for the DataFrame, for its view, to drop the view again. A
plan of changes has up to ten leaves of some hundred rows. So those that a single task reads travel together: one row
with an array for each leaf, which the text of the plan takes apart again.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import ArrayType, DataType, MapType, NullType, StructField, StructType

from trickle.engine import Engine
from trickle.engine.arrow import for_spark

MOST_BYTES = 16 << 20
"""Bytes of all leaves that travel together: to Spark they are one row."""

Rows = tuple[pa.Table, StructType]
"""Rows at hand, and the types that they have for Spark."""


@dataclass(frozen=True)
class View:
    """Where the text of a plan finds a leaf: a view, or an array of structs in the one row of a view."""

    name: str
    column: str | None = None


@dataclass
class Views:
    """The views of one refresh, each known by what it shows; dropped at the end."""

    engine: Engine
    _open: ExitStack = field(default_factory=ExitStack)
    _known: dict[Hashable, View] = field(default_factory=dict)

    def __contains__(self, key: Hashable) -> bool:
        return key in self._known

    def __getitem__(self, key: Hashable) -> View:
        return self._known[key]

    def show(self, key: Hashable, frame: DataFrame, *, alone: bool) -> None:
        """Make a view of a frame; ``alone`` for a single task."""
        name = self._open.enter_context(self.engine.temp_view(frame.coalesce(1) if alone else frame))
        self._known[key] = View(name)

    def show_rows(self, found: Mapping[Hashable, Rows], *, alone: bool) -> None:
        """Make views of rows at hand: for a single task one view of all that are few."""
        few = list(_fitting(found)) if alone else []
        if len(few) > 1:
            name = self._open.enter_context(self.engine.temp_view(self._together([found[key] for key in few])))
            self._known.update({key: View(name, _column(place)) for place, key in enumerate(few)})
        for key, rows in found.items():
            if key not in self._known:
                self.show(key, self.engine.from_arrow(*rows), alone=alone)

    def _together(self, parts: Sequence[Rows]) -> DataFrame:
        """One row that has all rows of each part in an array."""
        shape = StructType([StructField(_column(place), ArrayType(part[1])) for place, part in enumerate(parts)])
        arrays = [_as_one(for_spark(*part)) for part in parts]
        return self.engine.from_arrow(pa.table(arrays, names=shape.names), shape).coalesce(1)

    def close(self) -> None:
        """Drop the views."""
        self._open.close()


def _fitting(found: Mapping[Hashable, Rows]) -> Iterator[Hashable]:
    """Those that travel together, the smallest first, up to the bound."""
    room = MOST_BYTES
    for key, (table, schema) in sorted(found.items(), key=lambda one: one[1][0].nbytes):
        room -= table.nbytes
        if room < 0:
            return
        # Arrow does not cast arrays of structs with a column that has no type.
        if not _has_void(schema):
            yield key


def _has_void(kind: DataType) -> bool:
    match kind:
        case StructType():
            return any(_has_void(field.dataType) for field in kind.fields)
        case ArrayType():
            return _has_void(kind.elementType)
        case MapType():
            return _has_void(kind.keyType) or _has_void(kind.valueType)
        case _:
            return isinstance(kind, NullType)


def _column(place: int) -> str:
    return f"leaf_{place}"


def _as_one(table: pa.Table) -> pa.ListArray:
    """An array with one element: all rows."""
    columns = [column.combine_chunks() for column in table.columns]
    rows = pa.StructArray.from_arrays(columns, fields=list(table.schema))
    return pa.ListArray.from_arrays(
        pa.array([0, len(rows)], pa.int32()), rows, type=pa.list_(pa.field("element", rows.type))
    )
