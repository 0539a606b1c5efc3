"""MERGE INTO."""

from __future__ import annotations

import pytest

from tests.scenarios.story import ask, changed, contents, differences, inventory, refused, version_of
from trickle.api import Trickle
from trickle.errors import InvalidData, QueryError, UnknownColumn, UnknownTable


@pytest.fixture
def stock(t: Trickle) -> Trickle:
    """What is in stock, and what was delivered."""
    t.sql("CREATE TABLE stock (item STRING, n INT); INSERT INTO stock VALUES ('pen', 1), ('ink', 2), (NULL, 3)")
    t.sql(
        "CREATE TABLE delivered (item STRING, n INT); INSERT INTO delivered VALUES ('pen', 10), ('pad', 20), (NULL, 30)"
    )
    return t


@pytest.mark.portable
def test_all_kinds_of_clauses_in_one_statement(stock: Trickle) -> None:
    before = version_of(stock, "stock")
    text = """
        MERGE INTO stock AS s USING delivered AS d ON s.item = d.item
        WHEN MATCHED AND d.n > 100 THEN DELETE
        WHEN MATCHED THEN UPDATE SET n = s.n + d.n
        WHEN NOT MATCHED AND d.item IS NULL THEN INSERT (n) VALUES (-d.n)
        WHEN NOT MATCHED THEN INSERT *
        WHEN NOT MATCHED BY SOURCE AND s.item IS NOT NULL THEN UPDATE SET n = 0
        WHEN NOT MATCHED BY SOURCE THEN DELETE
    """
    assert changed(stock, text) == (4, 3)
    assert contents(stock, "stock") == [(None, -30), ("ink", 0), ("pad", 20), ("pen", 11)]
    assert differences(stock, "stock", before) == [
        (None, -30, 1), (None, 3, -1), ("ink", 0, 1), ("ink", 2, -1), ("pad", 20, 1), ("pen", 1, -1), ("pen", 11, 1),
    ]  # fmt: skip


def test_a_null_key_matches_only_when_asked_to(stock: Trickle) -> None:
    text = "MERGE INTO stock s USING delivered d ON s.item {} d.item WHEN MATCHED THEN UPDATE SET *"
    assert changed(stock, text.format("=")) == (1, 1)
    assert changed(stock, text.format("<=>")) == (2, 2)
    assert contents(stock, "stock") == [(None, 30), ("ink", 2), ("pen", 10)]


def test_the_first_clause_that_holds_decides(stock: Trickle) -> None:
    text = """
        MERGE INTO stock USING (SELECT 'pen' AS item, 5 AS n UNION ALL SELECT 'ink', 6) d ON stock.item = d.item
        WHEN MATCHED AND d.n = 6 THEN UPDATE SET stock.n = 60
        WHEN MATCHED AND d.n >= 5 THEN DELETE
    """
    assert changed(stock, text) == (1, 2)
    assert contents(stock, "stock") == [(None, 3), ("ink", 60)]


def test_a_source_that_matches_twice_is_refused_and_nothing_is_changed(stock: Trickle) -> None:
    t = stock
    t.sql("INSERT INTO delivered VALUES ('pen', 11)")
    before = inventory(t)
    text = "MERGE INTO stock s USING delivered d ON s.item = d.item WHEN MATCHED THEN UPDATE SET n = d.n"
    refused(t, text, QueryError, "matches more than one row of the source")
    assert inventory(t) == before
    # A clause that leaves one of the two out makes the choice clear.
    assert changed(t, text.replace("WHEN MATCHED", "WHEN MATCHED AND d.n > 10")) == (1, 1)
    # Rows to insert may be alike.
    assert changed(t, "MERGE INTO stock s USING delivered d ON false WHEN NOT MATCHED THEN INSERT *") == (4, 0)


def test_duplicates_in_the_target_are_all_changed(t: Trickle) -> None:
    t.sql("CREATE TABLE bag (x INT, y INT); INSERT INTO bag VALUES (1, 0), (1, 0), (2, 0)")
    text = "MERGE INTO bag USING (SELECT 1 AS x) AS s ON bag.x = s.x WHEN MATCHED THEN UPDATE SET y = 9"
    assert changed(t, text) == (2, 2)
    assert contents(t, "bag") == [(1, 9), (1, 9), (2, 0)]


def test_the_target_may_be_the_source(stock: Trickle) -> None:
    text = """
        MERGE INTO stock AS a USING (SELECT item, n * 2 AS n FROM stock) AS b ON a.item = b.item
        WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *
    """
    assert changed(stock, text) == (3, 2)
    assert contents(stock, "stock") == [(None, 3), (None, 6), ("ink", 4), ("pen", 2)]


def test_values_take_the_types_of_the_table(t: Trickle) -> None:
    t.sql("CREATE TABLE typed (id INT NOT NULL, amount DECIMAL(10, 2), pair STRUCT<a: INT, b: STRING>)")
    text = """
        MERGE INTO typed USING (SELECT 1L AS id) AS s ON typed.id = s.id
        WHEN NOT MATCHED THEN INSERT (id, amount, pair) VALUES (s.id, 1.005, named_struct('a', 1L, 'b', 'x'))
    """
    assert changed(t, text) == (1, 0)
    assert ask(t, "SELECT id, CAST(amount AS STRING), pair.a FROM typed") == [(1, "1.01", 1)]
    before = inventory(t)
    broken = "MERGE INTO typed USING (SELECT CAST(NULL AS INT) AS id) AS s ON typed.id = s.id"
    refused(t, broken + " WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)", InvalidData, "column 'id' is NOT NULL")
    assert inventory(t) == before


def test_nothing_to_merge_commits_nothing(stock: Trickle) -> None:
    before = inventory(stock)
    text = "MERGE INTO stock s USING delivered d ON s.item = d.item AND d.n > 1000 WHEN MATCHED THEN DELETE"
    assert changed(stock, text) == (0, 0)
    assert inventory(stock) == before


def test_an_empty_table_is_merged_into(t: Trickle) -> None:
    t.sql("CREATE TABLE a (x INT)")
    text = "MERGE INTO a USING (SELECT 1 AS x) AS s ON a.x = s.x"
    assert changed(t, text + " WHEN MATCHED THEN DELETE WHEN NOT MATCHED BY SOURCE THEN DELETE") == (0, 0)
    assert changed(t, text + " WHEN NOT MATCHED THEN INSERT *") == (1, 0)
    assert changed(t, text + " WHEN MATCHED THEN DELETE") == (0, 1)


def test_what_is_not_there_is_refused(stock: Trickle) -> None:
    before = inventory(stock)
    into = "MERGE INTO stock s USING "
    refused(stock, into + "deliverd d ON true WHEN MATCHED THEN DELETE", UnknownTable, "deliverd", hint="delivered")
    refused(stock, into + "delivered d ON s.itm = d.item WHEN MATCHED THEN DELETE", UnknownColumn, "itm", hint="item")
    on = into + "delivered d ON s.item = d.item "
    refused(stock, on + "WHEN MATCHED THEN UPDATE SET m = 1", UnknownColumn, "'m'")
    refused(stock, on + "WHEN NOT MATCHED THEN INSERT (item, m) VALUES (1, 2)", UnknownColumn, "'m'")
    missing = into + "(SELECT 'pen' AS item) d ON s.item = d.item WHEN MATCHED THEN UPDATE SET *"
    refused(stock, missing, UnknownColumn, "has no column 'n'", hint="name the columns")
    assert inventory(stock) == before
