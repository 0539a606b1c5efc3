"""INSERT, UPDATE, DELETE and TRUNCATE."""

from __future__ import annotations

import pytest
from deltalake import DeltaTable

from tests.scenarios.story import ask, changed, contents, differences, folder, inventory, refused, version_of
from trickle.api import Trickle
from trickle.errors import (
    InvalidData,
    InvalidName,
    QueryError,
    UnknownColumn,
    UnknownTable,
    UnsupportedStatement,
    WrongKind,
)


@pytest.fixture
def items(t: Trickle) -> Trickle:
    """A warehouse with one small table."""
    t.sql("CREATE TABLE items (id BIGINT NOT NULL, name STRING, price DECIMAL(10, 2))")
    t.sql("INSERT INTO items VALUES (1, 'pen', 1.50), (2, 'ink', 7.25), (3, NULL, NULL)")
    return t


@pytest.mark.portable
def test_rows_come_change_and_go(items: Trickle) -> None:
    assert changed(items, "INSERT INTO items VALUES (4, 'pad', 3.00)") == (1, 0)
    assert changed(items, "UPDATE items SET price = price * 2 WHERE id <= 2") == (2, 2)
    assert changed(items, "DELETE FROM items WHERE name = 'pad'") == (0, 1)
    assert ask(items, "SELECT id, name, CAST(price AS STRING) FROM items") == [
        (1, "pen", "3.00"),
        (2, "ink", "14.50"),
        (3, None, None),
    ]
    assert changed(items, "TRUNCATE TABLE items") == (0, 3)
    assert contents(items, "items") == []


def test_insert_takes_a_query_a_column_list_and_its_own_table(items: Trickle) -> None:
    assert changed(items, "INSERT INTO items (NAME, id) VALUES ('cap', 5)") == (1, 0)
    assert changed(items, "INSERT INTO items SELECT id + 10, name, price FROM items WHERE id < 3") == (2, 0)
    assert changed(items, "INSERT INTO items (id) WITH a AS (SELECT 20 AS n) SELECT n FROM a") == (1, 0)
    assert changed(items, "INSERT INTO items SELECT * FROM items WHERE false") == (0, 0)
    assert ask(items, "SELECT id, name FROM items") == [
        (1, "pen"), (2, "ink"), (3, None), (5, "cap"), (11, "pen"), (12, "ink"), (20, None),
    ]  # fmt: skip


def test_insert_overwrite_may_read_what_it_overwrites(items: Trickle) -> None:
    before = version_of(items, "items")
    assert changed(items, "INSERT OVERWRITE items SELECT id * 10, name, price FROM items WHERE id > 1") == (2, 3)
    assert ask(items, "SELECT id, name FROM items") == [(20, "ink"), (30, None)]
    assert changed(items, "INSERT OVERWRITE items SELECT * FROM items WHERE false") == (0, 2)
    assert contents(items, "items") == []
    assert len(differences(items, "items", before)) == 3


def test_insert_refuses_what_does_not_fit(items: Trickle) -> None:
    before = inventory(items)
    refused(items, "INSERT INTO items VALUES (1)", InvalidData, "has 1 values for 3 columns", hint="name the columns")
    refused(items, "INSERT INTO items (id) VALUES (1, 2)", InvalidData, "has 2 values for 1 columns")
    refused(items, "INSERT INTO items (id, nam) VALUES (1, 2)", UnknownColumn, "'nam'", hint="did you mean 'name'?")
    refused(items, "INSERT INTO items (id, ID) VALUES (1, 2)", InvalidName, "is there twice")
    refused(items, "INSERT INTO items (name) VALUES ('x')", InvalidData, "column 'id' is NOT NULL")
    refused(items, "INSERT INTO items (id) VALUES ('x')", InvalidData, "column 'id' takes bigint, not string")
    refused(items, "INSERT INTO items (id, price) VALUES (1, 123456789.5)", InvalidData, "123456789.5")
    refused(items, "INSERT INTO items (id) SELECT 1 / (id - 1) FROM items", QueryError, "division by zero")
    refused(items, "INSERT INTO item VALUES (1)", UnknownTable, "no table is called item", hint="did you mean items?")
    assert inventory(items) == before


def test_a_null_inside_several_rows_is_found_too(items: Trickle) -> None:
    before = inventory(items)
    refused(items, "INSERT INTO items VALUES (8, 'a', 1), (NULL, 'b', 2)", InvalidData, "column 'id' is NOT NULL")
    refused(items, "UPDATE items SET id = nullif(id, 2)", InvalidData, "column 'id' is NOT NULL")
    assert inventory(items) == before


def test_update_computes_from_the_old_row(items: Trickle) -> None:
    t = items
    t.sql("CREATE TABLE pairs (a INT, b INT, c INT); INSERT INTO pairs VALUES (1, 2, 0), (5, NULL, 0)")
    assert changed(t, "UPDATE pairs SET a = b, b = a, c = a + coalesce(b, 100)") == (2, 2)
    assert contents(t, "pairs") == [(None, 5, 105), (2, 1, 3)]


def test_update_with_an_alias_and_subqueries(items: Trickle) -> None:
    t = items
    t.sql("CREATE TABLE prices (item BIGINT, price DECIMAL(10, 2)); INSERT INTO prices VALUES (1, 9.00), (3, 8.00)")
    text = """
        UPDATE items AS i SET price = (SELECT max(p.price) FROM prices p WHERE p.item = i.id)
        WHERE i.id IN (SELECT item FROM prices) AND i.price IS NULL
    """
    assert changed(t, text) == (1, 1)
    assert ask(t, "SELECT id, CAST(price AS STRING) FROM items") == [(1, "1.50"), (2, "7.25"), (3, "8.00")]
    assert changed(t, "UPDATE items SET name = (SELECT upper(max(name)) FROM items) WHERE items.id = 3") == (1, 1)
    assert ask(t, "SELECT name FROM items WHERE id = 3") == [("PEN",)]


def test_update_in_vain_commits_nothing(items: Trickle) -> None:
    before = inventory(items)
    assert changed(items, "UPDATE items SET name = 'x' WHERE id = 99") == (0, 0)
    assert changed(items, "UPDATE items SET name = 'x' WHERE name <> 'pen' AND name = 'pen'") == (0, 0)
    assert changed(items, "DELETE FROM items WHERE name = 'nobody'") == (0, 0)
    assert inventory(items) == before


def test_chance_is_thrown_once(t: Trickle) -> None:
    t.sql("CREATE TABLE dice (id BIGINT, thrown DOUBLE)")
    t.sql("INSERT INTO dice SELECT id, 0.0 FROM range(20)")
    before = version_of(t, "dice")
    assert changed(t, "UPDATE dice SET thrown = rand() WHERE id < 10") == (10, 10)
    told = {(row[0], row[1]) for row in differences(t, "dice", before) if row[2] > 0}
    assert told == {row for row in contents(t, "dice") if row[0] < 10}
    deleted = changed(t, "DELETE FROM dice WHERE rand() < 0.5")[1]
    assert len(contents(t, "dice")) == 20 - deleted


def test_update_and_delete_refuse_what_is_not_there(items: Trickle) -> None:
    before = inventory(items)
    refused(items, "UPDATE items SET nam = 'x'", UnknownColumn, "'nam'", hint="did you mean 'name'?")
    refused(items, "UPDATE items SET name = nam", UnknownColumn, "nam", hint="name")
    refused(items, "UPDATE items SET name = 'a', NAME = 'b'", InvalidName, "is there twice")
    refused(items, "UPDATE items SET name = 'x' WHERE prize > 1", UnknownColumn, "prize", hint="price")
    refused(items, "UPDATE items SET price = 1 / (id - 2)", QueryError, "division by zero")
    refused(items, "DELETE FROM items WHERE nam = 'x'", UnknownColumn, "nam", hint="name")
    refused(items, "DELETE FROM items WHERE id IN (SELECT id FROM nope)", UnknownTable, "no table is called nope")
    refused(items, "UPDATE items SET name = 'x' FROM other", UnsupportedStatement, "FROM", hint="MERGE INTO")
    refused(items, "WITH a AS (SELECT 1) DELETE FROM items", UnsupportedStatement, "WITH before DELETE")
    assert inventory(items) == before


def test_delete_keeps_rows_for_which_the_condition_is_unknown(items: Trickle) -> None:
    assert changed(items, "DELETE FROM items WHERE name <> 'pen'") == (0, 1)
    assert ask(items, "SELECT id FROM items") == [(1,), (3,)]
    assert changed(items, "DELETE FROM items WHERE NOT (price > 100)") == (0, 1)
    assert ask(items, "SELECT id FROM items") == [(3,)]
    assert changed(items, "DELETE FROM items WHERE id NOT IN (SELECT CAST(NULL AS BIGINT))") == (0, 0)
    assert changed(items, "DELETE FROM items AS i WHERE EXISTS (SELECT 1 FROM items j WHERE j.id = i.id)") == (0, 1)
    assert contents(items, "items") == []


def test_delete_without_a_condition_empties_the_table(items: Trickle) -> None:
    assert changed(items, "DELETE FROM items") == (0, 3)
    # An empty table takes every statement.
    for text in (
        "DELETE FROM items",
        "TRUNCATE TABLE items",
        "UPDATE items SET name = 'x'",
        "DELETE FROM items WHERE id = 1",
    ):
        assert changed(items, text) == (0, 0)
    assert changed(items, "INSERT INTO items VALUES (1, 'pen', 1.50)") == (1, 0)


def test_duplicates_are_rows_of_their_own(t: Trickle) -> None:
    t.sql("CREATE TABLE bag (x INT); INSERT INTO bag VALUES (1), (1), (1), (2), (NULL), (NULL)")
    assert changed(t, "UPDATE bag SET x = 2 WHERE x = 1") == (3, 3)
    assert changed(t, "DELETE FROM bag WHERE x IS NULL") == (0, 2)
    assert contents(t, "bag") == [(2,)] * 4


@pytest.mark.portable
def test_rows_move_between_partitions(t: Trickle) -> None:
    t.sql("CREATE TABLE events (id BIGINT, kind STRING) PARTITIONED BY (kind)")
    t.sql("INSERT INTO events VALUES (1, 'a/b=c'), (2, ' '), (3, NULL), (4, 'ü %20'), (5, 'a/b=c')")
    assert contents(t, "events") == [(1, "a/b=c"), (2, " "), (3, None), (4, "ü %20"), (5, "a/b=c")]
    assert changed(t, "UPDATE events SET kind = nullif(kind, ' ') WHERE id = 2") == (1, 1)
    assert changed(t, "UPDATE events SET kind = concat(kind, '!') WHERE kind LIKE 'a%'") == (2, 2)
    assert changed(t, "DELETE FROM events WHERE kind IS NULL AND id = 3") == (0, 1)
    assert contents(t, "events") == [(1, "a/b=c!"), (2, None), (4, "ü %20"), (5, "a/b=c!")]


def test_an_empty_text_is_no_partition(t: Trickle) -> None:
    t.sql("CREATE TABLE events (id BIGINT, kind STRING) PARTITIONED BY (kind); INSERT INTO events VALUES (1, 'a')")
    before = inventory(t)
    refused(t, "INSERT INTO events VALUES (2, '')", InvalidData, "'kind' holds an empty text", hint="write NULL")
    refused(t, "UPDATE events SET kind = ''", InvalidData, "'kind' holds an empty text")
    assert inventory(t) == before


def test_only_touched_files_are_written_anew(t: Trickle) -> None:
    t.sql("CREATE TABLE wide (part INT, id BIGINT, text STRING) PARTITIONED BY (part)")
    t.sql("INSERT INTO wide SELECT CAST(id % 80 AS INT), id, 'x' FROM range(320)")
    files = len(DeltaTable(str(folder(t, "wide"))).file_uris())
    assert files >= 64

    def touched(text: str) -> tuple[int, int]:
        before = set(DeltaTable(str(folder(t, "wide"))).file_uris())
        t.sql(text)
        after = set(DeltaTable(str(folder(t, "wide"))).file_uris())
        return len(after - before), len(before - after)

    assert touched("UPDATE wide SET text = 'y' WHERE part = 3 AND id = 3") == (1, 1)
    assert touched("DELETE FROM wide WHERE id = 84") == (1, 1)
    assert touched("DELETE FROM wide WHERE part = 5") == (0, files // 80)
    assert touched("INSERT INTO wide VALUES (1, 1000, 'z')") == (1, 0)
    assert ask(t, "SELECT count(*), count_if(text = 'y'), max(id) FROM wide") == [(320 - 1 - 4 + 1, 1, 1000)]


def test_only_base_tables_are_written(items: Trickle) -> None:
    t = items
    t.sql("CREATE VIEW v AS SELECT id FROM items; CREATE STREAM TABLE s AS SELECT id FROM items")
    for text in (
        "INSERT INTO {} VALUES (1)",
        "INSERT OVERWRITE {} VALUES (1)",
        "UPDATE {} SET id = 1",
        "DELETE FROM {} WHERE id = 1",
        "TRUNCATE TABLE {}",
        "MERGE INTO {} USING items ON false WHEN NOT MATCHED THEN INSERT (id) VALUES (1)",
    ):
        refused(t, text.format("v"), WrongKind, "v is a view and cannot be written to")
        refused(t, text.format("s"), WrongKind, "s is a stream table and cannot be written to")
