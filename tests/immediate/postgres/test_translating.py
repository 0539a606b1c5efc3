"""Trickle's SQL as PostgreSQL's: the same rows, or a refusal that names what is not known to be the same."""

from __future__ import annotations

import re

import psycopg
import pytest

from trickle.algebra.names import TableName
from trickle.errors import UnsupportedQuery
from trickle.immediate.postgres.translating import Face, FaceColumn, to_postgres

ORDERS = Face(
    "public",
    'the "odd" orders',
    (
        FaceColumn("id", "bigint", "id"),
        FaceColumn("Customer", "string", "Customer"),
        FaceColumn("amount", "decimal(12,2)", "amount"),
        FaceColumn("placed", "date", "placed"),
        FaceColumn("unit_price", "float", "Unit Price"),
        FaceColumn("key", "string", "key", cast="text"),
        FaceColumn("code", "string", "code", refused="its type is character(3)"),
    ),
)
FACES = {TableName.of(["shop", "orders"]): ORDERS}
VIEWS = {TableName.of(["big"]): "SELECT id, amount FROM shop.orders WHERE amount > 10"}
TABLE = """
    CREATE TABLE public."the ""odd"" orders" (
        id bigint PRIMARY KEY, "Customer" text, amount numeric(12, 2), placed date, "Unit Price" real, key uuid,
        code char(3));
    INSERT INTO public."the ""odd"" orders" VALUES
        (1, 'ada', 10, '2024-01-31', 0.1, '00000000-0000-0000-0000-000000000001', 'a'),
        (2, 'bob', 20.55, '2024-02-29', 0.2, NULL, 'b'), (3, 'ada', NULL, NULL, 0.3, NULL, 'c'),
        (4, NULL, -7.25, '2023-12-31', NULL, NULL, NULL);
"""


def translated(text: str, *result: tuple[str, str], by_bytes: bool = True) -> str:
    return to_postgres(text, FACES, VIEWS, result or [("x", "text")], by_bytes=by_bytes)


@pytest.mark.parametrize(
    "text, rows",
    [
        ("SELECT count(*) AS n FROM shop.orders", ["4"]),
        ("SELECT CUSTOMER FROM shop.Orders WHERE ID = 1", ["ada"]),
        ("SELECT o.id FROM shop.orders o LEFT ANTI JOIN big b ON o.id <=> b.id", ["1", "3", "4"]),
        ("SELECT sum(amount) AS s FROM big", ["20.55"]),
        ("SELECT key FROM shop.orders WHERE key LIKE '%1'", ["00000000-0000-0000-0000-000000000001"]),
        ("SELECT amount / 3 AS q FROM shop.orders WHERE id = 1", ["3.333333"]),
        ("SELECT id / 3 AS q FROM shop.orders WHERE id = 2", ["0.6666666666666666"]),
        ("SELECT 7 div 2 + id % 3 AS q FROM shop.orders WHERE id = 2", ["5"]),
        ("SELECT avg(amount) AS a FROM shop.orders", ["7.766667"]),
        ("SELECT CAST(amount AS INT) AS a FROM shop.orders WHERE id IN (2, 4)", ["-7", "20"]),
        ("SELECT round(sum(amount), 1) AS a FROM shop.orders", ["23.3"]),
        ("SELECT sum(unit_price) AS a FROM shop.orders WHERE id = 1", ["0.10000000149011612"]),
        ("SELECT concat(customer, '-', 'x') AS a FROM shop.orders WHERE id > 2", [None, "ada-x"]),
        ("SELECT year(placed) * 100 + month(placed) AS a FROM shop.orders WHERE id = 2", ["202402"]),
        ("SELECT datediff(date_add(placed, 1), DATE '2024-01-01') AS a FROM shop.orders WHERE id = 1", ["31"]),
        ("SELECT CAST(placed + INTERVAL 1 MONTH AS DATE) AS a FROM shop.orders WHERE id = 1", ["2024-02-29"]),
        ("SELECT id AS a FROM shop.orders ORDER BY customer LIMIT 1", ["4"]),
        ("SELECT a FROM (SELECT id AS a FROM shop.orders) WHERE a NOT IN (SELECT id FROM big)", ["1", "3", "4"]),
        (
            "WITH RECURSIVE r(n) AS (SELECT id FROM big UNION SELECT n + 1 FROM r WHERE n < 3) SELECT n FROM r",
            ["2", "3"],
        ),
        ("SELECT substring(customer, 2, 1) AS a FROM shop.orders WHERE id = 1", ["d"]),
        ("SELECT if(id > 3, 'many', 'it\\'s') AS a FROM shop.orders WHERE id > 2", ["it's", "many"]),
    ],
)
def test_what_is_translated(url: str, text: str, rows: list[str | None]) -> None:
    with psycopg.connect(url) as connection:
        connection.execute(TABLE)
        found = connection.execute(translated(text)).fetchall()
    assert sorted((row[0] for row in found), key=str) == rows


@pytest.mark.parametrize(
    "text, reason",
    [
        ("SELECT upper(customer) FROM shop.orders", r"UPPER\(.*\) is not known to mean the same"),
        ("SELECT rand() FROM shop.orders", "RAND"),
        ("SELECT current_date() FROM shop.orders", "CURRENT_DATE"),
        ("SELECT code FROM shop.orders", "column 'code' of public.the \"odd\" orders cannot be used"),
        ("SELECT id IN (SELECT id FROM big) AS a FROM shop.orders", "is used as a value"),
        ("SELECT count(DISTINCT id, amount) FROM shop.orders", "COUNT"),
        ("SELECT customer FROM shop.orders GROUP BY ROLLUP (customer)", "ROLLUP"),
        ("SELECT placed - DATE '2024-01-01' FROM shop.orders", "datediff"),
        ("SELECT CAST(unit_price AS STRING) FROM shop.orders", "CAST"),
        ("SELECT round(unit_price, 1) FROM shop.orders", "ROUND"),
        ("SELECT explode(array(1, 2)) FROM shop.orders", "ARRAY"),
        ("SELECT substring(customer, 0, 2) FROM shop.orders", "SUBSTRING"),
    ],
)
def test_what_is_refused(text: str, reason: str) -> None:
    with pytest.raises(UnsupportedQuery) as caught:
        translated(text)
    assert re.search(reason, f"{caught.value.message} {caught.value.detail}")


@pytest.mark.parametrize(
    "text",
    [
        "SELECT max(customer) FROM shop.orders",
        "SELECT id FROM shop.orders ORDER BY customer LIMIT 2",
        "SELECT id FROM shop.orders WHERE customer < 'b'",
        "SELECT id FROM shop.orders WHERE customer BETWEEN 'a' AND 'b'",
        "SELECT row_number() OVER (PARTITION BY id ORDER BY customer) AS n FROM shop.orders",
    ],
)
def test_an_order_of_text_needs_bytes(text: str) -> None:
    translated(text)
    with pytest.raises(UnsupportedQuery, match="orders text"):
        translated(text, by_bytes=False)
    # A date is none, also when it is compared with one.
    translated("SELECT id FROM shop.orders WHERE placed < '2024-01-01' AND customer = 'ada'", by_bytes=False)


def test_columns_have_the_names_and_types_of_the_result(url: str) -> None:
    text = translated("SELECT id, amount FROM shop.orders", ('Odd "name"', "integer"), ("b", "numeric(20, 4)"))
    with psycopg.connect(url) as connection:
        connection.execute(TABLE)
        found = connection.execute(text)
        assert found.description is not None
        columns = [(column.name, column.type_display) for column in found.description]
    assert columns == [('Odd "name"', "int4"), ("b", "numeric(20,4)")]
