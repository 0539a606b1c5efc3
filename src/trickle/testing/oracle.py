"""The oracle: a stream table equals its query at its frontier, as a multiset, both ways.

It runs the user's own text over the versions that the frontier names, and has delta-rs read the stream table: another
reader tells what is stored. Only floating-point columns have a tolerance.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from trickle.algebra.names import quote, visible
from trickle.algebra.weights import WEIGHT
from trickle.api import Trickle
from trickle.catalog import streams
from trickle.errors import UserError
from trickle.lake.commit import open_table
from trickle.lake.scan import pick
from trickle.lake.snapshot import open_snapshot
from trickle.sources.lake import LakePosition
from trickle.sql import query
from trickle.sql.clock import at_time
from trickle.sql.names import table_name
from trickle.sql.query import DEFAULT_MAX_DEPTH
from trickle.sql.recursive import is_recursive
from trickle.tables.reading import resolve
from trickle.testing.multisets import weighted_difference
from trickle.testing.recursive import expected_rows

RELATIVE_TOLERANCE = 1e-9
_SHOWN = 10


class Mismatch(AssertionError):
    """A stream table differs from its query."""


def check(t: Trickle, *names: str) -> None:
    """Compare stream tables (all of the lake by default) with recomputation; Mismatch shows the rows that differ."""
    for name in names or [row.name for row in t.status() if row.populated and row.version is not None]:
        _check_one(t, name)


def _check_one(t: Trickle, name: str) -> None:
    warehouse = t.warehouse
    with warehouse.catalog.read() as tx:
        stream = streams.get(tx, table_name(name))
        text = query(stream.text)
        if stream.version is None or text.volatile:
            raise UserError(f"{name} cannot be compared with its query", detail="it is empty or depends on chance")
        if text.time_dependent and stream.data_timestamp is not None:
            text = query(at_time(stream.text, stream.data_timestamp, DEFAULT_MAX_DEPTH))
        reading = resolve(warehouse, tx, text)
    positions = {source: LakePosition.parse(position) for source, position in stream.frontier.items()}
    reading.versions = {source: position.version for source, position in positions.items()}
    location, engine = warehouse.location_of(stream.relation), warehouse.engine
    schema = open_snapshot(location, stream.version).schema
    columns = visible(schema.names)
    if is_recursive(text.text):
        expected = expected_rows(reading, text, pick(schema, columns))
    else:
        with engine.tuned(reading.load):
            expected = engine.collect(reading.bind(text).select(*[quote(c) for c in columns]))
    leftover = differences(expected, open_table(location, stream.version).to_pyarrow_table(columns=columns))
    if leftover:
        shown = "\n".join(f"  {weight:+d} {row}" for row, weight in leftover[:_SHOWN])
        raise Mismatch(f"{name} differs from its query in {len(leftover)} rows (+ missing, - too many):\n{shown}")


def differences(expected: pa.Table, stored: pa.Table) -> list[tuple[dict[str, Any], int]]:
    """Rows with what is missing (+) or too many (-) in ``stored``, floating-point noise left out.

    Mismatch when they have other types, as a conversion could make them agree.
    """
    shape, found = _shape(expected), _shape(stored)
    if shape != found:
        raise Mismatch(f"columns differ:\n  expected {_columns(shape)}\n  stored {_columns(found)}")
    counts: dict[str, tuple[dict[str, Any], int]] = {}
    for row in weighted_difference(stored.cast(shape), expected.cast(shape)).to_pylist():
        weight = row.pop(WEIGHT)
        counts[repr(row)] = (row, counts.get(repr(row), (row, 0))[1] + weight)
    leftover = list(counts.values())
    floats = [field.name for field in shape if pa.types.is_floating(field.type)]
    return _without_noise(leftover, floats) if floats and leftover else leftover


def _shape(table: pa.Table) -> pa.Schema:
    """Its columns. What cannot be NULL may be so by mistake, which is to be seen."""
    return pa.schema([pa.field(field.name, _relaxed(field.type)) for field in table.schema])


def _relaxed(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(field.name, _relaxed(field.type)) for field in kind.fields])
    if pa.types.is_map(kind):
        return pa.map_(_relaxed(kind.key_type), _relaxed(kind.item_type))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return pa.list_(_relaxed(kind.value_type))
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return pa.string()
    return pa.binary() if pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind) else kind


def _columns(shape: pa.Schema) -> str:
    return ", ".join(f"{field.name} {field.type}" for field in shape)


def _without_noise(rows: Sequence[tuple[dict[str, Any], int]], floats: list[str]) -> list[tuple[dict[str, Any], int]]:
    """Pair rows that agree in all exact columns and are close in the others."""
    groups: dict[str, tuple[list[dict[str, Any]], list[dict[str, Any]]]] = defaultdict(lambda: ([], []))
    for row, weight in rows:
        exact = repr({k: v for k, v in row.items() if k not in floats})
        groups[exact][0 if weight > 0 else 1].extend([row] * abs(weight))
    left: list[tuple[dict[str, Any], int]] = []
    for missing, surplus in groups.values():
        for row in missing:
            match = next((other for other in surplus if _close(row, other, floats)), None)
            if match is None:
                left.append((row, 1))
            else:
                surplus.remove(match)
        left += [(row, -1) for row in surplus]
    return left


def _close(one: Mapping[str, Any], other: Mapping[str, Any], floats: list[str]) -> bool:
    def near(a: float | None, b: float | None) -> bool:
        if a is None or b is None:
            return a is b
        return (math.isnan(a) and math.isnan(b)) or math.isclose(a, b, rel_tol=RELATIVE_TOLERANCE, abs_tol=1e-300)

    return all(near(one[c], other[c]) for c in floats)
