"""Few rows, written by the driver: to every reader the same as what Spark writes."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.lake.tables import (
    Row,
    clustered,
    committed,
    contents,
    delta,
    delta_rs_contents,
    duckdb_contents,
    filled,
    frame,
    net_changes,
    shape,
)
from trickle.engine import Engine
from trickle.errors import InvalidData, NegativeMultiplicity
from trickle.lake import few, merge
from trickle.lake.few import Few
from trickle.lake.location import Location
from trickle.lake.merge import merge_rows
from trickle.lake.rewrite import append, overwrite, replace_rows
from trickle.lake.scan import scan
from trickle.lake.snapshot import Snapshot

ALL = shape(
    "i integer, l long, sh short, b byte, f float, d double, m decimal(9;2), big decimal(30;4), s string, bin binary,"
    "yes boolean, day date, at timestamp, local timestamp_ntz"
)
NAN = float("nan")
FIRST: Row = (
    1, 2**62, -3, 4, 0.5, NAN, Decimal("1.25"), Decimal("12345678901234567890.5"), "ü'\"\n", b"\x00\xff", True,
    date(2024, 2, 29), datetime(2024, 3, 31, 1, 30, 0, 123456, tzinfo=UTC), datetime(1969, 12, 31, 23, 59, 59, 1),
)  # fmt: skip
SECOND: Row = (
    -1, -(2**62), 3, -4, -0.0, -0.0, Decimal("-99.99"), Decimal("-0.0001"), "", b"", False,
    date(1, 1, 1), datetime(1900, 1, 1, tzinfo=UTC), datetime(2999, 12, 31),
)  # fmt: skip
NOTHING: Row = (None,) * len(ALL)


@pytest.fixture(params=["driver", "Spark"])
def way(request: pytest.FixtureRequest, engine: Engine, monkeypatch: pytest.MonkeyPatch) -> Few | None:
    """Both ways that rows are written and looked up."""
    if request.param == "driver":
        return Few(engine)
    monkeypatch.setattr(merge, "places_of", lambda *_: None)
    return None


@pytest.mark.portable
def test_every_type_reads_back_the_same(engine: Engine, tmp_path: Path, way: Few | None) -> None:
    table = filled(engine, tmp_path, ALL, [])
    table = committed(append(engine, table, frame(engine, ALL, [FIRST, SECOND, NOTHING, SECOND]), few=way))
    written = contents(engine, table)
    assert sum(written.values()) == 4
    assert written == delta_rs_contents(table.location) == duckdb_contents(table.location)
    assert len(table.files) == 1 if way else True
    low, high = table.files[0].minimum, table.files[0].maximum
    if way:
        assert (low["i"], high["i"], low["m"], high["m"]) == (-1, 1, Decimal("-99.99"), Decimal("1.25"))
        assert table.files[0].nulls["s"] == 1


@pytest.mark.portable
def test_rows_of_every_type_are_found_and_deleted(engine: Engine, tmp_path: Path, way: Few | None) -> None:
    table = filled(engine, tmp_path, ALL, [FIRST, SECOND, SECOND, NOTHING, NOTHING])
    before = table.version
    zero = (*SECOND[:4], 0.0, 0.0, *SECOND[6:])
    change = [(FIRST, -1), (zero, -1), (NOTHING, -2), ((*FIRST[:8], "new", *FIRST[9:]), 1)]
    prepared = merge_rows(engine, table, delta(engine, ALL, change), few=way)
    assert (prepared.inserted, prepared.deleted) == (1, 4)
    table = committed(prepared)
    left = contents(engine, table)
    assert sum(left.values()) == 2
    assert left == delta_rs_contents(table.location)
    assert sum(net_changes(engine, table, before).values()) == -3
    with pytest.raises(NegativeMultiplicity, match="does not hold"):
        merge_rows(engine, table, delta(engine, ALL, [(NOTHING, -1)]), few=way)


def _changed(engine: Engine, table: Snapshot, where: str, way: Few | None) -> Snapshot:
    old = scan(engine, table, located=True).where(where)
    new = old.selectExpr("k", "'new' AS v", "__trickle_file", "__trickle_row")
    rows = old.selectExpr("*", "-1 AS __trickle_weight").union(new.selectExpr("*", "1 AS __trickle_weight"))
    return committed(replace_rows(engine, table, rows, few=way))


def test_only_touched_files_are_replaced_each_by_one(engine: Engine, tmp_path: Path, way: Few | None) -> None:
    table = clustered(engine, tmp_path, files=8, rows_each=5)
    newer = _changed(engine, table, "k IN (3, 4, 22)", way)
    old, new = ({file.path for file in snapshot.files} for snapshot in (table, newer))
    assert (len(new - old), len(new & old)) == (2, 6)
    assert {row for row in contents(engine, newer) if row[1] == "new"} == {(3, "new"), (4, "new"), (22, "new")}
    assert contents(engine, newer) == delta_rs_contents(newer.location) == duckdb_contents(newer.location)


def test_new_contents_and_their_difference(engine: Engine, tmp_path: Path, way: Few | None) -> None:
    table = filled(engine, tmp_path, shape("k long"), [(1,), (2,), (2,)])
    newer = committed(overwrite(engine, table, frame(engine, table.schema, [(2,), (3,)]), difference=True, few=way))
    assert contents(engine, newer) == {(2,): 1, (3,): 1}
    assert net_changes(engine, newer, table.version) == {(1,): -1, (2,): -1, (3,): 1}


def test_null_in_a_column_that_takes_none_is_refused_and_nothing_stays(
    engine: Engine, tmp_path: Path, way: Few | None
) -> None:
    table = filled(engine, tmp_path, shape("k long NOT NULL"), [(1,)])
    with pytest.raises(InvalidData, match="NOT NULL"):
        append(engine, table, frame(engine, table.schema, [(None,)]), few=way)
    assert [path.name for path in tmp_path.glob("data-*")] == [table.files[0].path.split("/")[0]]


def test_nested_types_partitions_and_many_rows_are_left_to_spark(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    way = Few(engine)
    assert way.collected(engine.sql("SELECT array(1, 2) AS a")) is None
    monkeypatch.setattr(few, "MOST_COLLECTED", 10)
    assert way.collected(engine.sql("SELECT id FROM range(11)")) is None
    assert (found := way.collected(engine.sql("SELECT id FROM range(10)"))) is not None
    assert found.num_rows == 10
    table = filled(engine, tmp_path, shape("k long, p string"), [(1, "a"), (2, "b")], ["p"])
    newer = committed(append(engine, table, frame(engine, table.schema, [(3, "b")]), few=way))
    assert contents(engine, newer) == {(1, "a"): 1, (2, "b"): 1, (3, "b"): 1} == delta_rs_contents(newer.location)


def test_a_small_change_of_a_table_takes_one_job(engine: Engine, tmp_path: Path) -> None:
    table = clustered(engine, tmp_path, files=4, rows_each=5)
    with engine.count_jobs() as count:
        _changed(engine, table, "k = 3", Few(engine))
    assert count.jobs == 1


def test_settings_are_put_back(engine: Engine) -> None:
    watched = ("spark.sql.adaptive.enabled", "spark.sql.codegen.wholeStage", "spark.sql.shuffle.partitions")
    before = {name: engine.spark.conf.get(name, None) for name in watched}
    with engine.tuned("change"), engine.tuned("light"):
        assert engine.spark.conf.get("spark.sql.codegen.wholeStage") == "false"
        with engine.tuned("any"):
            assert {name: engine.spark.conf.get(name, None) for name in watched} == before
    assert {name: engine.spark.conf.get(name, None) for name in watched} == before


def test_timestamps_of_twelve_bytes_are_read_as_they_are(tmp_path: Path) -> None:
    """So Spark writes them unless it is told otherwise. As nanoseconds they would end in the year 2262."""
    times = [datetime(9999, 12, 31, 23, 59, 59, 999999, UTC), datetime(1, 1, 1, tzinfo=UTC), None]
    table = pa.table({"at": pa.array(times, pa.timestamp("us", "UTC"))})
    pq.write_table(table, tmp_path / "part.parquet", use_deprecated_int96_timestamps=True)
    found = few.read_few(Location.of(tmp_path), "part.parquet", shape("at timestamp"))
    assert found.column("at").to_pylist() == times
