"""Results of statements as pages and records. Needs Spark's modules: imported when there is a result."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import assert_never

import pyarrow as pa
from pyspark.sql import DataFrame

from trickle.cli.page import Page, Record, Shown
from trickle.engine.failures import spark_errors
from trickle.refresh.outcome import RefreshResult
from trickle.statements import Result
from trickle.tables.results import Changed, Done, Listing


def shown(result: Result, limit: int) -> Shown:
    """What a statement gave; of a query at most ``limit`` rows, all of them where it is 0."""
    match result:
        case DataFrame():
            return page_of(result, limit)
        case Listing():
            return Page(result.columns, result.rows)
        case Changed():
            return Record(asdict(result), _changed(result))
        case Done():
            return Record(asdict(result), result.message)
        case RefreshResult():
            return Record(asdict(result), _refreshed(result))
        case None:
            return Record({"message": "done"}, "done")
        case _:
            assert_never(result)


def page_of(frame: DataFrame, limit: int) -> Page:
    """The first rows of a query. One row more than shown is fetched: that there are more is known without counting."""
    with spark_errors():
        table = (frame.limit(limit + 1) if limit else frame).toArrow()
    more = 0 < limit < table.num_rows
    columns = [_values(column) for column in (table.slice(0, limit) if limit else table).columns]
    return Page(tuple(table.column_names), tuple(zip(*columns, strict=True)), more)


def _values(column: pa.ChunkedArray) -> Iterable[object]:
    try:
        values: list[object] = column.to_pylist(maps_as_pydicts="strict")
    except (ValueError, OverflowError):
        # Spark knows years that Python does not.
        values = column.cast(pa.string()).to_pylist()
    return values


def _changed(changed: Changed) -> str:
    return (
        f"{changed.table}: inserted {changed.rows_inserted}, deleted {changed.rows_deleted} (version {changed.version})"
    )


def _refreshed(result: RefreshResult) -> str:
    jobs = "" if result.spark_jobs is None else f", {result.spark_jobs} Spark jobs"
    return (
        f"{result.name}: {result.action}, inserted {result.rows_inserted}, deleted {result.rows_deleted}, "
        f"{result.duration_ms:.0f} ms{jobs}: {result.reason}"
    )
