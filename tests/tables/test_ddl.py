"""CREATE, replace and DROP of tables and views."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import pytest
from deltalake import DeltaTable

from tests.scenarios.story import ask, changed, contents, folder, inventory, listed, refused
from trickle.api import Trickle
from trickle.errors import (
    CycleError,
    DependentsExist,
    DuplicateName,
    InvalidName,
    InvalidOption,
    QueryError,
    UnknownColumn,
    UnknownTable,
    UnsupportedTable,
    WrongKind,
)

ALL_TYPES = """
CREATE TABLE everything (
    flag BOOLEAN, tiny TINYINT, small SMALLINT, whole INT, id BIGINT NOT NULL COMMENT 'counted from one',
    single FLOAT, double DOUBLE, exact DECIMAL(38, 18), text STRING, bytes BINARY, day DATE, at TIMESTAMP,
    local TIMESTAMP_NTZ, pair STRUCT<a: INT, b: STRING>, list ARRAY<INT>, lookup MAP<STRING, INT>
) COMMENT 'one column of each type' TBLPROPERTIES ('team.owner' = 'data')
"""

VALUES = """
INSERT INTO everything VALUES
    (true, 1, 2, 3, 1, 1.5, 2.5, 1.000000000000000001, 'a', X'00FF', DATE'2024-02-29',
     TIMESTAMP'2024-01-01 00:00:00.123456Z', TIMESTAMP_NTZ'1900-01-01 00:00:00.000001', named_struct('a', 1, 'b', 'x'),
     array(1, NULL), map('k', 1)),
    (NULL, NULL, NULL, NULL, 2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)
"""

FIRST = (
    True, 1, 2, 3, 1, 1.5, 2.5, Decimal("1.000000000000000001"), "a", b"\x00\xff", date(2024, 2, 29),
    datetime(2024, 1, 1, 0, 0, 0, 123456, tzinfo=UTC), datetime(1900, 1, 1, 0, 0, 0, 1), {"a": 1, "b": "x"},
    [1, None], [("k", 1)],
)  # fmt: skip


@pytest.mark.portable
def test_a_table_keeps_values_of_every_type(t: Trickle) -> None:
    t.sql(ALL_TYPES)
    assert changed(t, VALUES) == (2, 0)
    empty = (None,) * 4 + (2,) + (None,) * 11
    assert contents(t, "everything") == [empty, FIRST]
    # A rewrite reads and writes every type once more.
    assert changed(t, "UPDATE everything SET text = 'b', lookup = map('j', 2) WHERE id = 1") == (1, 1)
    assert contents(t, "everything") == [empty, (*FIRST[:8], "b", *FIRST[9:15], [("j", 2)])]


def test_a_declared_table_says_what_was_declared(t: Trickle) -> None:
    t.sql(ALL_TYPES)
    columns = {str(row["name"]): row for row in listed(t, "DESCRIBE everything")}
    assert columns["id"] == {
        "name": "id",
        "type": "bigint",
        "nullable": False,
        "primary_key": False,
        "partition": False,
        "comment": "counted from one",
    }
    assert columns["pair"]["type"] == "struct<a:int,b:string>"
    assert columns["local"]["type"] == "timestamp_ntz"
    table = DeltaTable(str(folder(t, "everything")))
    assert table.metadata().description == "one column of each type"
    assert table.metadata().configuration["team.owner"] == "data"
    assert t.tables()[0].comment == "one column of each type"


def test_a_primary_key_is_not_null_and_partitions_are_kept_apart(t: Trickle) -> None:
    t.sql("CREATE TABLE sales (id BIGINT, day DATE, amount INT, PRIMARY KEY (ID)) PARTITIONED BY (Day)")
    described = {str(row["name"]): row for row in listed(t, "DESCRIBE sales")}
    assert described["id"]["primary_key"] is True
    assert described["id"]["nullable"] is False
    assert described["day"]["partition"] is True
    assert t.tables()[0].primary_key == "id"
    t.sql("INSERT INTO sales VALUES (1, DATE'2024-01-01', 5), (2, NULL, 6), (3, DATE'2024-01-01', 7)")
    log = DeltaTable(str(folder(t, "sales"))).get_add_actions(flatten=True)
    partitions = log.column("partition.day").to_pylist()
    assert set(partitions) == {None, date(2024, 1, 1)}


def test_columns_and_options_that_cannot_be_are_refused_and_leave_nothing(t: Trickle) -> None:
    before = inventory(t)
    refused(t, "CREATE TABLE x (a INT, A STRING)", InvalidName, "column 'A' is there twice")
    refused(t, "CREATE TABLE x (a INT, __trickle_b INT)", InvalidName, "is reserved")
    refused(t, "CREATE TABLE x (`a b` INT)", InvalidName, "'a b'", hint="add an alias")
    refused(t, "CREATE TABLE x (a VARIANT)", UnsupportedTable, "column 'a' cannot be stored")
    refused(t, "CREATE TABLE x AS SELECT NULL AS a", UnsupportedTable, "column 'a' cannot be stored", hint="cast it")
    refused(t, "CREATE TABLE x AS SELECT 1 + 1", InvalidName, "'(1 + 1)'", hint="add an alias")
    refused(t, "CREATE TABLE x (a INT) PARTITIONED BY (b)", UnknownColumn, "'b'")
    refused(t, "CREATE TABLE x (a INT) PARTITIONED BY (a)", InvalidOption, "all columns are partition columns")
    refused(t, "CREATE TABLE x (a INT, m MAP<INT, INT>) PARTITIONED BY (m)", InvalidOption, "'m'")
    refused(t, "CREATE TABLE x (a INT, PRIMARY KEY (b))", UnknownColumn, "'b'")
    refused(t, "CREATE TABLE trickle.x (a INT)", InvalidName, "trickle")
    refused(t, "CREATE TABLE x AS SELECT * FROM nowhere", UnknownTable, "no table is called nowhere")
    refused(t, "CREATE TABLE x AS SELECT 1 / 0 AS a", QueryError, "division by zero")
    assert inventory(t) == before


@pytest.mark.portable
def test_a_table_is_made_from_a_query(t: Trickle) -> None:
    t.sql("CREATE TABLE numbers AS SELECT id, id % 3 AS kind FROM range(6)")
    t.sql("CREATE TABLE kinds PARTITIONED BY (kind) AS SELECT kind, count(*) AS n FROM numbers GROUP BY kind")
    assert contents(t, "kinds") == [(0, 2), (1, 2), (2, 2)]
    t.sql("CREATE TABLE none AS SELECT * FROM numbers WHERE false")
    assert contents(t, "none") == []
    assert [row["type"] for row in listed(t, "DESCRIBE none")] == ["bigint", "bigint"]


def test_a_name_is_taken_only_once(t: Trickle) -> None:
    t.sql("CREATE TABLE a (x INT); INSERT INTO a VALUES (1)")
    refused(t, "CREATE TABLE A (y INT)", DuplicateName, "a exists already", hint="choose another name")
    refused(t, "CREATE VIEW a AS SELECT 1 AS x", DuplicateName, "a exists already")
    refused(t, "CREATE OR REPLACE VIEW a AS SELECT 1 AS x", WrongKind, "a is not a view")
    refused(t, "CREATE STREAM TABLE a AS SELECT 1 AS x", DuplicateName, "a exists already")
    t.sql("CREATE TABLE IF NOT EXISTS a (y INT)")
    assert contents(t, "a") == [(1,)]
    t.sql("CREATE VIEW v AS SELECT x FROM a; CREATE VIEW IF NOT EXISTS v AS SELECT 2 AS x")
    assert contents(t, "v") == [(1,)]
    refused(t, "CREATE OR REPLACE TABLE v (x INT)", WrongKind, "v is not a base table")


def test_a_replaced_table_is_new_and_its_old_files_are_gone(t: Trickle) -> None:
    t.sql("CREATE TABLE a (x INT); INSERT INTO a VALUES (1)")
    before = folder(t, "a")
    t.sql("CREATE OR REPLACE TABLE a (y STRING) COMMENT 'new'")
    assert contents(t, "a") == []
    assert [row["name"] for row in listed(t, "DESCRIBE a")] == ["y"]
    assert not before.exists() or before == folder(t, "a")
    # The query may read the table that it replaces.
    t.sql("INSERT INTO a VALUES ('q'); CREATE OR REPLACE TABLE a AS SELECT y, 1 AS n FROM a")
    assert contents(t, "a") == [("q", 1)]
    assert sum(1 for _ in before.parent.iterdir()) == 1


def test_a_replacement_that_fails_leaves_the_old_table(t: Trickle) -> None:
    t.sql("CREATE TABLE a (x INT); INSERT INTO a VALUES (0)")
    before = inventory(t)
    refused(t, "CREATE OR REPLACE TABLE a AS SELECT 1 / x AS y FROM a", QueryError, "division by zero")
    assert inventory(t) == before
    assert contents(t, "a") == [(0,)]


def test_views_stand_on_tables_and_on_views(t: Trickle) -> None:
    t.sql("CREATE TABLE a (x INT, y INT); INSERT INTO a VALUES (1, 10), (2, 20)")
    t.sql("CREATE VIEW pairs (left, right) COMMENT 'both' AS SELECT x, y FROM a")
    t.sql("CREATE VIEW big AS SELECT p.right FROM pairs AS p WHERE p.left > 1")
    assert ask(t, "SELECT * FROM big") == [(20,)]
    t.sql("INSERT INTO a VALUES (3, 30)")
    assert contents(t, "big") == [(20,), (30,)]
    assert [(d.name, d.source, d.direct) for d in t.dependencies()] == [
        ("big", "a", False),
        ("big", "pairs", True),
        ("pairs", "a", True),
    ]
    assert [row["name"] for row in listed(t, "DESCRIBE pairs")] == ["left", "right"]


def test_a_view_is_replaced_unless_that_breaks_what_reads_it(t: Trickle) -> None:
    t.sql("CREATE TABLE a (x INT); INSERT INTO a VALUES (1)")
    t.sql("CREATE VIEW low AS SELECT x FROM a; CREATE VIEW high AS SELECT x FROM low")
    refused(t, "CREATE OR REPLACE VIEW low AS SELECT x AS z FROM a", DependentsExist, "view high depends on it")
    refused(t, "CREATE OR REPLACE VIEW low AS SELECT * FROM high", CycleError, "low would depend on itself")
    t.sql("CREATE OR REPLACE VIEW low AS SELECT x + 1 AS x, 'more' AS y FROM a")
    assert contents(t, "high") == [(2,)]


def test_views_that_cannot_be_are_refused(t: Trickle) -> None:
    t.sql("CREATE TABLE a (x INT)")
    before = inventory(t)
    refused(t, "CREATE VIEW v AS SELECT nope FROM a", UnknownColumn, "unknown column nope")
    refused(t, "CREATE VIEW v AS SELECT 1 AS x FROM nowhere", UnknownTable, "no table is called nowhere")
    refused(t, "CREATE VIEW v (p, q) AS SELECT x FROM a", QueryError, "does not match")
    refused(t, "CREATE VIEW v AS SELECT * FROM v", UnknownTable, "no table is called v")
    assert inventory(t) == before


def test_drop_takes_what_is_named_and_with_cascade_what_stands_on_it(t: Trickle) -> None:
    t.sql("CREATE TABLE a (x INT); CREATE VIEW v AS SELECT x FROM a")
    t.sql("CREATE STREAM TABLE s AS SELECT count(*) AS n FROM v; CREATE VIEW w AS SELECT n FROM s")
    t.sql("CREATE TABLE other (x INT)")
    refused(t, "DROP TABLE v", WrongKind, "v is not a table", hint="DROP VIEW v")
    refused(t, "DROP VIEW a", WrongKind, "a is not a view", hint="DROP TABLE a")
    refused(t, "DROP TABLE s", WrongKind, "s is not a table", hint="DROP STREAM TABLE s")
    refused(t, "DROP TABLE a", DependentsExist, "cannot drop a", hint="DROP TABLE a CASCADE")
    refused(t, "DROP TABLE nope", UnknownTable, "no table is called nope")
    t.sql("DROP TABLE IF EXISTS nope; DROP VIEW IF EXISTS nope; DROP STREAM TABLE IF EXISTS nope")
    places = [folder(t, "a"), folder(t, "s")]
    t.sql("DROP TABLE a CASCADE")
    assert [row.name for row in t.tables()] == ["other"]
    assert not any(place.exists() for place in places)
    assert t.dependencies() == []
