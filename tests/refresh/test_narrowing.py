"""Big tables are read by the ranges of the keys that a change has, and nothing is lost by it."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from pyspark.sql import DataFrame

from tests.scenarios.big import read_all_as_big
from trickle import Trickle
from trickle.delta.reach import given_by, narrowed
from trickle.engine import Engine
from trickle.lake.lookup import Lookups
from trickle.operators import Face, Filter, Join, JoinKind, Operator, Project, Scan, Step, col, equal, walk
from trickle.operators.expressions import Output
from trickle.refresh import narrowing
from trickle.testing import check

ROWS = 400


@pytest.fixture
def small(t: Trickle) -> Trickle:
    """Orders and their lines, each in files by ranges of their keys."""
    t.sql("CREATE TABLE orders (id BIGINT, customer INT, day DATE)")
    t.sql("CREATE TABLE lines (id BIGINT, n INT, amount DECIMAL(9,2))")
    t.sql("CREATE TABLE customers (id INT, name STRING)")
    t.sql("INSERT INTO customers SELECT CAST(id AS INT), concat('c', id) FROM range(20)")
    for start in range(0, ROWS, 100):
        t.sql(
            f"INSERT INTO orders SELECT id, CAST(id % 20 AS INT), date_add(DATE '2024-01-01', CAST(id AS INT))"
            f" FROM range({start}, {start + 100})"
        )
        t.sql(f"INSERT INTO lines SELECT id, 1, CAST(id AS DECIMAL(9,2)) FROM range({start}, {start + 100})")
    t.sql("INSERT INTO lines VALUES (NULL, 7, 7.00)")
    return t


@pytest.fixture
def shop(small: Trickle, monkeypatch: pytest.MonkeyPatch) -> Trickle:
    """The same, taken for big tables."""
    read_all_as_big(monkeypatch)
    return small


JOINED = """
    SELECT c.name, count(*) AS n, sum(l.amount) AS total
    FROM customers c JOIN orders o ON o.customer = c.id LEFT JOIN lines l ON l.id = o.id
    GROUP BY c.name
"""
MATCHED = "SELECT o.id, o.day FROM orders o WHERE EXISTS (SELECT 1 FROM lines l WHERE l.id = o.id AND l.amount > 3)"
SAFE = "SELECT a.n, b.amount FROM lines a JOIN lines b ON a.id <=> b.id"


@pytest.mark.parametrize("query", [JOINED, MATCHED, SAFE])
def test_refreshes_equal_recomputation(shop: Trickle, query: str) -> None:
    shop.create_stream_table("s", query, refresh_mode="DIFFERENTIAL")
    dice = random.Random(3)
    for turn in range(4):
        first = dice.randrange(ROWS - 10)
        shop.sql(f"UPDATE lines SET amount = amount + 1 WHERE id BETWEEN {first} AND {first + 5}")
        shop.sql(f"DELETE FROM orders WHERE id IN ({first + 3}, {dice.randrange(ROWS)})")
        shop.sql(f"INSERT INTO orders VALUES ({1000 + turn}, {turn}, DATE '2025-01-01'), (NULL, 1, NULL)")
        shop.sql(f"INSERT INTO lines VALUES ({1000 + turn}, 1, 5.00), (NULL, {turn}, 1.00)")
        shop.sql(f"UPDATE customers SET name = 'other' WHERE id = {turn}")
        assert shop.refresh_stream_table("s").action == "DIFFERENTIAL"
        check(shop)


def test_files_without_the_keys_are_not_read(shop: Trickle) -> None:
    shop.create_stream_table("s", MATCHED, refresh_mode="DIFFERENTIAL")
    shop.sql("INSERT INTO orders VALUES (350, 1, DATE '2024-05-05')")
    shop.refresh_stream_table("s")
    check(shop)
    details = json.loads(shop.refresh_history("s")[0].details)
    # Of five files of lines the one with key 350, and of those of NULL keys none.
    assert details["files_read"] == 1


@pytest.mark.parametrize("page, files", [(0, 4), (20_000, 5)])
def test_a_condition_that_would_skip_little_is_left_out(
    shop: Trickle, monkeypatch: pytest.MonkeyPatch, page: int, files: int
) -> None:
    monkeypatch.setattr(narrowing, "PAGE_ROWS", page)
    shop.create_stream_table("s", MATCHED, refresh_mode="DIFFERENTIAL")
    rows = ", ".join(f"({key}, 1, DATE '2024-05-05')" for key in (50, 150, 250, 350))
    shop.sql(f"INSERT INTO orders VALUES {rows}")
    shop.refresh_stream_table("s")
    check(shop)
    # Four of five files have such keys: where a page is as large as a file, nearly all rows would be read anyway.
    assert json.loads(shop.refresh_history("s")[0].details)["files_read"] == files


def _scans(tree: Operator) -> list[Scan]:
    return [node for node in walk(tree) if isinstance(node, Scan)]


ORDERS = Scan("orders", (("id", "o_id"), ("customer", "o_customer")))
LINES = Scan("lines", (("id", "l_id"), ("amount", "l_amount")))
CHANGE = Scan("orders", (("id", "d_id"),), Face.CHANGE)
KEYS = Step("keys", (("k", "key"),))


def _marked(scan: Scan, column: str) -> Operator:
    return Scan(f"{scan.table} by {column}", scan.fields, scan.face)


@pytest.mark.parametrize(
    "tree, column, expected",
    [
        (ORDERS, "o_id", ["orders by id"]),
        (Filter(ORDERS, equal("o_id", "o_customer")), "o_customer", ["orders by customer"]),
        (Project(ORDERS, (Output("x", col("o_id")),)), "x", ["orders by id"]),
        (Join(JoinKind.INNER, ORDERS, LINES, equal("o_id", "l_id")), "o_id", ["orders by id", "lines by id"]),
        (Join(JoinKind.INNER, ORDERS, LINES, equal("o_id", "l_id")), "l_id", ["orders by id", "lines by id"]),
        (Join(JoinKind.LEFT, ORDERS, LINES, equal("o_id", "l_id")), "o_id", ["orders by id", "lines"]),
        # NULLs come in on the right: rows would be lost.
        (Join(JoinKind.LEFT, ORDERS, LINES, equal("o_id", "l_id")), "l_id", ["orders", "lines"]),
        (Join(JoinKind.ANTI, ORDERS, LINES, equal("o_id", "l_id")), "o_id", ["orders by id", "lines"]),
    ],
)
def test_which_tables_a_column_reaches(tree: Operator, column: str, expected: list[str]) -> None:
    assert [scan.table for scan in _scans(narrowed(tree, column, _marked))] == expected


def test_what_bounds_the_values_of_a_column() -> None:
    assert given_by(CHANGE, "d_id") == ((CHANGE, "id"),)
    assert given_by(ORDERS, "o_id") is None
    assert given_by(Join(JoinKind.INNER, CHANGE, ORDERS, equal("d_id", "o_id")), "d_id") == ((CHANGE, "id"),)
    assert given_by(Join(JoinKind.INNER, CHANGE, ORDERS, equal("d_id", "o_id")), "o_id") is None
    assert given_by(Join(JoinKind.LEFT, CHANGE, KEYS, equal("d_id", "key")), "key") is None
    assert given_by(Project(KEYS, (Output("x", col("key")),)), "x") == ((KEYS, "k"),)


def test_dates_that_python_does_not_have_are_no_ranges(shop: Trickle) -> None:
    shop.sql("CREATE TABLE days (day DATE, name STRING)")
    shop.sql("INSERT INTO days VALUES (DATE '2024-02-01', 'a day')")
    shop.create_stream_table(
        "s", "SELECT d.name, o.id FROM days d JOIN orders o ON o.day = d.day", refresh_mode="DIFFERENTIAL"
    )
    shop.sql("INSERT INTO days VALUES (DATE '+12024-01-01', 'far'), (DATE '2024-03-01', 'another')")
    assert shop.refresh_stream_table("s").action == "DIFFERENTIAL"
    check(shop)


def test_days_that_python_does_not_have_hide_no_others(t: Trickle) -> None:
    t.sql("CREATE TABLE a (id INT, day DATE); CREATE TABLE b (id INT, day DATE)")
    t.sql("INSERT INTO b VALUES (9, DATE '2024-05-05')")
    t.sql("INSERT INTO b VALUES (2, date_add(DATE '9999-12-31', 2))")
    query = "SELECT a.id AS a, b.id AS b FROM a JOIN b ON a.day = b.day"
    t.create_stream_table("s", query, refresh_mode="DIFFERENTIAL")
    t.sql("INSERT INTO a VALUES (7, date_add(DATE '9999-12-31', 2)), (8, DATE '2024-05-05')")
    assert t.refresh_stream_table("s").action == "DIFFERENTIAL"
    assert sorted((row.a, row.b) for row in t.table("s").collect()) == [(7, 2), (8, 9)]


def test_a_table_is_looked_up_by_the_key_that_leaves_least(t: Trickle, monkeypatch: pytest.MonkeyPatch) -> None:
    t.sql("CREATE TABLE offers (kind INT, part INT, price INT); CREATE TABLE wanted (kind INT, part INT)")
    t.sql("INSERT INTO offers SELECT id % 4, id, id FROM range(1000)")
    query = "SELECT price FROM wanted w JOIN offers o ON w.kind = o.kind AND w.part = o.part"
    t.create_stream_table("prices", query, refresh_mode="DIFFERENTIAL")
    keys: list[str] = []
    find = Lookups.find

    def noted(self: Lookups, *given: Any, **options: Any) -> Any:
        keys.append(given[2].name)
        return find(self, *given, **options)

    monkeypatch.setattr(Lookups, "find", noted)
    t.sql("INSERT INTO wanted SELECT id % 4, id FROM range(50)")
    t.refresh_stream_table("prices")
    check(t)
    assert keys == ["part"]


@pytest.mark.parametrize(
    "query, joins",
    [
        # Stored groups are looked up by all of their keys: that they are among those that changed need not be asked.
        ("SELECT id, n, sum(amount) AS total FROM lines WHERE id > 3 GROUP BY id, n", 0),
        # NULL is no key that is looked up together with others.
        ("SELECT id, n, sum(amount) AS total FROM lines GROUP BY id, n", 1),
    ],
)
def test_what_was_looked_up_is_not_asked_again(
    small: Trickle, monkeypatch: pytest.MonkeyPatch, query: str, joins: int
) -> None:
    small.create_stream_table("s", query, refresh_mode="DIFFERENTIAL")
    asked: list[str] = []
    ask = Engine.sql

    def noted(engine: Engine, text: str, *, most: int | None = None) -> DataFrame:
        asked.append(text)
        return ask(engine, text, most=most)

    monkeypatch.setattr(Engine, "sql", noted)
    for turn in range(3):
        small.sql(f"INSERT INTO lines VALUES ({5 + turn}, 1, 1.00), (77, {turn}, 2.00), (NULL, 7, 1.00)")
        small.sql(f"DELETE FROM lines WHERE id = {9 + turn}")
        asked.clear()
        assert small.refresh_stream_table("s").action == "DIFFERENTIAL"
        assert sum(text.count("SEMI JOIN") for text in asked) == joins
        check(small)
