"""ALTER TABLE, and DDL on what stream tables are built on."""

from __future__ import annotations

from decimal import Decimal

from deltalake import DeltaTable

from tests.scenarios.story import (
    ask,
    changed,
    contents,
    differences,
    folder,
    inventory,
    listed,
    refreshed,
    refused,
    state,
    version_of,
)
from trickle.api import Trickle
from trickle.errors import (
    DependentsExist,
    DuplicateName,
    InvalidData,
    InvalidName,
    InvalidOption,
    UnknownColumn,
    UnknownTable,
    UnsupportedStatement,
    WrongKind,
)


def test_columns_come_are_renamed_and_go(t: Trickle) -> None:
    t.sql("CREATE TABLE a (id INT, x STRING); INSERT INTO a VALUES (1, 'one')")
    before = version_of(t, "a")
    t.sql("ALTER TABLE a ADD COLUMNS (y INT COMMENT 'second', z ARRAY<INT>)")
    assert contents(t, "a") == [(1, "one", None, None)]
    t.sql("INSERT INTO a VALUES (2, 'two', 22, array(1))")
    t.sql("ALTER TABLE a RENAME COLUMN y TO why")
    t.sql("ALTER TABLE a DROP COLUMN z")
    assert [(c["name"], c["comment"]) for c in listed(t, "DESCRIBE a")] == [
        ("id", None),
        ("x", None),
        ("why", "second"),
    ]
    assert contents(t, "a") == [(1, "one", None), (2, "two", 22)]
    assert changed(t, "UPDATE a SET why = 11 WHERE why IS NULL") == (1, 1)
    assert ask(t, f"SELECT * FROM a VERSION AS OF {before}") == [(1, "one")]
    t.sql("ALTER TABLE a DROP COLUMN IF EXISTS nope")


def test_a_type_is_widened_and_never_narrowed(t: Trickle) -> None:
    t.sql("CREATE TABLE a (n INT, f FLOAT, d DECIMAL(5, 2)); INSERT INTO a VALUES (1, 0.5, 1.25)")
    t.sql("ALTER TABLE a ALTER COLUMN n TYPE BIGINT")
    t.sql("ALTER TABLE a ALTER COLUMN f TYPE DOUBLE")
    t.sql("ALTER TABLE a ALTER COLUMN d TYPE DECIMAL(12, 4)")
    t.sql("INSERT INTO a VALUES (9999999999, 0.1, 12345678.1234)")
    assert contents(t, "a") == [(1, 0.5, Decimal("1.2500")), (9999999999, 0.1, Decimal("12345678.1234"))]
    before = inventory(t)
    refused(t, "ALTER TABLE a ALTER COLUMN n TYPE INT", UnsupportedStatement, "from bigint to int", hint="wider")
    refused(t, "ALTER TABLE a ALTER COLUMN n TYPE STRING", UnsupportedStatement, "from bigint to string")
    assert inventory(t) == before


def test_a_table_gets_another_name_and_properties(t: Trickle) -> None:
    t.sql("CREATE TABLE shop.a (x INT); INSERT INTO shop.a VALUES (1); CREATE TABLE shop.taken (x INT)")
    place = folder(t, "shop.a")
    t.sql("ALTER TABLE shop.a RENAME TO b")
    assert contents(t, "shop.b") == [(1,)]
    assert folder(t, "shop.b") == place
    refused(t, "SELECT * FROM shop.a", UnknownTable, "no table is called shop.a")
    refused(t, "ALTER TABLE shop.b RENAME TO taken", DuplicateName, "shop.taken exists already")
    t.sql("ALTER TABLE shop.b RENAME TO default.c")
    assert contents(t, "c") == [(1,)]
    # The old name is free, also for a folder of the same name.
    t.sql("CREATE TABLE shop.a (y INT)")
    assert contents(t, "shop.a") == []
    assert contents(t, "c") == [(1,)]
    t.sql("ALTER TABLE c SET TBLPROPERTIES ('team' = 'shop')")
    assert DeltaTable(str(folder(t, "c"))).metadata().configuration["team"] == "shop"


def test_what_cannot_be_altered_is_refused_and_left(t: Trickle) -> None:
    t.sql("CREATE TABLE a (id INT, part STRING, n INT, PRIMARY KEY (id)) PARTITIONED BY (part)")
    t.sql("INSERT INTO a VALUES (1, 'p', 1); CREATE VIEW v AS SELECT id FROM a")
    before = inventory(t)
    refused(t, "ALTER TABLE a ADD COLUMN N INT", InvalidName, "there twice")
    refused(t, "ALTER TABLE a ADD COLUMN m INT NOT NULL", InvalidData, "'m' cannot be added as NOT NULL")
    refused(t, "ALTER TABLE a DROP COLUMN m", UnknownColumn, "no column 'm'")
    refused(t, "ALTER TABLE a DROP COLUMN id", InvalidOption, "part of the primary key")
    refused(t, "ALTER TABLE a DROP COLUMN part", UnsupportedStatement, "partition column 'part'")
    refused(t, "ALTER TABLE a RENAME COLUMN n TO part", InvalidName, "there twice")
    refused(t, "ALTER TABLE a RENAME COLUMN nn TO m", UnknownColumn, "no column 'nn'", hint="did you mean 'n'?")
    refused(t, "ALTER TABLE v ADD COLUMN m INT", WrongKind, "v is not a base table")
    refused(t, "ALTER TABLE nope ADD COLUMN m INT", UnknownTable, "no table is called nope")
    t.sql("CREATE TABLE single (x INT)")
    refused(t, "ALTER TABLE single DROP COLUMN x", InvalidOption, "no column left", hint="DROP TABLE single")
    t.sql("DROP TABLE single")
    assert inventory(t) == before


def test_alteration_is_no_change_of_rows_for_those_who_read_the_table(t: Trickle) -> None:
    t.sql("CREATE TABLE a (id INT, n INT, spare INT); INSERT INTO a VALUES (1, 10, 100), (2, 20, 200)")
    t.sql("CREATE STREAM TABLE s AS SELECT id, n FROM a")
    before = version_of(t, "a")
    t.sql("ALTER TABLE a ADD COLUMN more STRING")
    t.sql("ALTER TABLE a RENAME COLUMN spare TO extra")
    t.sql("ALTER TABLE a ALTER COLUMN extra TYPE BIGINT")
    t.sql("ALTER TABLE a DROP COLUMN extra")
    assert differences(t, "a", before) == []
    assert refreshed(t, "s").action == "NO_DATA"
    t.sql("INSERT INTO a VALUES (3, 30, 'x')")
    assert refreshed(t, "s").action == "FULL"
    assert contents(t, "s") == [(1, 10), (2, 20), (3, 30)]


def test_ddl_that_breaks_a_stream_table_is_blocked_with_the_way_out_named(t: Trickle) -> None:
    t.sql("CREATE TABLE a (id INT, n INT); INSERT INTO a VALUES (1, 10)")
    t.sql("CREATE VIEW v AS SELECT n FROM a; CREATE STREAM TABLE s AS SELECT sum(n) AS total FROM v")
    way_out = "SET trickle.block_source_ddl = off"
    before = inventory(t)
    refused(t, "ALTER TABLE a DROP COLUMN n", DependentsExist, "stream table s depends on it", hint=way_out)
    refused(t, "ALTER TABLE a RENAME COLUMN n TO m", DependentsExist, "cannot rename column n of a", hint=way_out)
    refused(t, "ALTER TABLE a ALTER COLUMN n TYPE BIGINT", DependentsExist, "change the type", hint=way_out)
    refused(t, "CREATE OR REPLACE TABLE a (id INT)", DependentsExist, "cannot replace a", hint=way_out)
    refused(t, "CREATE OR REPLACE VIEW v AS SELECT id FROM a", DependentsExist, "replace view v", hint=way_out)
    refused(
        t, "ALTER TABLE a RENAME TO b", DependentsExist, "cannot rename a: stream table s, view v", hint="drop them"
    )
    assert inventory(t) == before
    # The column that nobody reads may go.
    t.sql("ALTER TABLE a DROP COLUMN id")
    assert refreshed(t, "s").action == "NO_DATA"


def test_allowed_ddl_has_stream_tables_rebuilt(t: Trickle) -> None:
    t.sql("CREATE TABLE a (id INT, n INT); INSERT INTO a VALUES (1, 10), (2, 20)")
    t.sql("CREATE STREAM TABLE s AS SELECT sum(n) AS total FROM a")
    t.sql("SET trickle.block_source_ddl = off")
    t.sql("ALTER TABLE a ALTER COLUMN n TYPE DECIMAL(12, 2)")
    assert state(t, "s").needs_reinitialize
    result = refreshed(t, "s")
    assert (result.action, result.reason) == ("REINITIALIZE", "the definition or a source was changed")
    assert [c["type"] for c in listed(t, "DESCRIBE s")] == ["decimal(22,2)"]
    assert contents(t, "s") == [(Decimal("30.00"),)]
    t.sql("RESET trickle.block_source_ddl")
    refused(t, "ALTER TABLE a DROP COLUMN n", DependentsExist, "stream table s")


def test_a_replaced_table_feeds_its_stream_tables_anew(t: Trickle) -> None:
    t.sql("CREATE TABLE a (id INT, n INT); INSERT INTO a VALUES (1, 10), (2, 20)")
    t.sql("CREATE STREAM TABLE s AS SELECT id, n FROM a; CREATE STREAM TABLE top AS SELECT sum(n) AS n FROM s")
    version = state(t, "s").version
    assert version is not None
    t.sql("CREATE OR REPLACE TABLE a AS SELECT 2 AS id, 20 AS n UNION ALL SELECT 3, 30")
    assert refreshed(t, "s").action == "REINITIALIZE"
    # What stayed the same is no change for the consumer.
    assert differences(t, "s", version) == [(1, 10, -1), (3, 30, 1)]
    refreshed(t, "top")
    assert contents(t, "top") == [(50,)]
