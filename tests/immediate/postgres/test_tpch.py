"""TPC-H inside PostgreSQL: all 22 queries, compared with PostgreSQL's own answer after every statement.

A few statements for each query, all of them with ``make test-postgres-long``.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import psycopg
import pytest

from tests.immediate.postgres.story import Story
from tests.postgres import Postgres
from tests.tpch.schemas import SCHEMAS
from tests.tpch.story import QUERIES, tables
from trickle.algebra.names import TableName
from trickle.immediate.postgres.translating import Face, FaceColumn, to_postgres

LONG = bool(os.environ.get("TRICKLE_POSTGRES_LONG"))
A_FEW = 4
SCALE = 0.01
KEYS = {
    "part": "p_partkey",
    "supplier": "s_suppkey",
    "partsupp": "ps_partkey, ps_suppkey",
    "customer": "c_custkey",
    "orders": "o_orderkey",
    "lineitem": "l_orderkey, l_linenumber",
    "nation": "n_nationkey",
    "region": "r_regionkey",
}
INDEXES = (("lineitem", "l_partkey"), ("lineitem", "l_suppkey"), ("orders", "o_custkey"), ("partsupp", "ps_suppkey"))


def _copies(table: str, key: str, added: int, condition: str) -> str:
    """An INSERT of rows like those that are there, with other keys."""
    columns = list(SCHEMAS[TableName.of([table])])
    values = ", ".join(f"{column} + {added}" if column == key else column for column in columns)
    return f"INSERT INTO {table} SELECT {values} FROM {table} WHERE {condition}"


STATEMENTS = (
    _copies("orders", "o_orderkey", 5_000_000, "o_orderkey = 7"),
    _copies("lineitem", "l_orderkey", 5_000_000, "l_orderkey = 7 AND l_linenumber = 1"),
    (
        "UPDATE lineitem SET l_quantity = 400, l_extendedprice = l_extendedprice * 9 WHERE l_orderkey = 7"
        " AND l_linenumber = 2"
    ),
    "DELETE FROM lineitem WHERE l_orderkey = 7 AND l_linenumber = 1",
    "UPDATE orders SET o_orderdate = '1995-01-05' WHERE o_orderkey = 7",
    "DELETE FROM orders WHERE o_orderkey = 7",
    "UPDATE customer SET c_nationkey = 6 WHERE c_custkey = 10",
    _copies("customer", "c_custkey", 900_000, "c_custkey = 10"),
    "DELETE FROM customer WHERE c_custkey = 10",
    "UPDATE part SET p_size = 15, p_type = 'PROMO BRASS' WHERE p_partkey = 5",
    "DELETE FROM part WHERE p_partkey = 6",
    _copies("part", "p_partkey", 90_000, "p_partkey = 5"),
    "UPDATE supplier SET s_acctbal = 9999 WHERE s_suppkey = 5",
    "DELETE FROM supplier WHERE s_suppkey = 6",
    _copies("supplier", "s_suppkey", 9_000, "s_suppkey = 5"),
    "UPDATE partsupp SET ps_supplycost = 1 WHERE ps_partkey = 5",
    "DELETE FROM partsupp WHERE ps_partkey = 7",
    "INSERT INTO partsupp VALUES (8, 9005, 5, 0.5, 'x')",
    "UPDATE nation SET n_name = 'GERMANY2' WHERE n_name = 'GERMANY'",
    "UPDATE nation SET n_name = 'GERMANY' WHERE n_name = 'GERMANY2'",
    "DELETE FROM nation WHERE n_nationkey = 4",
    "INSERT INTO nation VALUES (4, 'EGYPT', 4, 'x') ON CONFLICT DO NOTHING",
    "UPDATE region SET r_name = 'EUROPA' WHERE r_name = 'EUROPE'",
    "UPDATE region SET r_name = 'EUROPE' WHERE r_name = 'EUROPA'",
    "DELETE FROM region WHERE r_regionkey = 4",
    "INSERT INTO region VALUES (4, 'MIDDLE EAST', 'y') ON CONFLICT DO NOTHING",
    _copies("orders", "o_orderkey", 1_000_000, "o_orderkey % 40 = 1"),
    _copies("lineitem", "l_orderkey", 1_000_000, "l_orderkey % 40 = 1"),
    "DELETE FROM orders WHERE o_orderkey % 50 = 2",
    "DELETE FROM lineitem WHERE l_orderkey % 100 = 2 OR l_partkey % 300 = 7",
    "UPDATE lineitem SET l_quantity = l_quantity + 30, l_discount = 0.06 WHERE l_orderkey % 90 = 3",
    "UPDATE part SET p_brand = 'Brand#23', p_container = 'MED BOX' WHERE p_partkey % 12 = 0",
    "UPDATE part SET p_name = 'forest green', p_type = 'ECONOMY ANODIZED STEEL' WHERE p_partkey % 9 = 1",
    "UPDATE supplier SET s_nationkey = 20 WHERE s_suppkey % 5 = 1",
    "UPDATE supplier SET s_nationkey = 3 WHERE s_suppkey % 5 = 2",
    "UPDATE partsupp SET ps_supplycost = ps_supplycost / 2, ps_availqty = ps_availqty + 500 WHERE ps_partkey % 7 = 3",
    "DELETE FROM customer WHERE c_custkey % 37 = 5",
    "UPDATE customer SET c_acctbal = c_acctbal - 3000, c_mktsegment = 'BUILDING' WHERE c_custkey % 11 = 4",
    "UPDATE orders SET o_custkey = o_custkey + 1 WHERE o_orderkey % 33 = 7",
    "UPDATE lineitem SET l_suppkey = 1 + l_suppkey % 100, l_shipmode = 'AIR' WHERE l_orderkey % 77 = 4",
    "UPDATE nation SET n_regionkey = 3 WHERE n_name = 'CANADA'",
    "DELETE FROM partsupp WHERE ps_partkey % 61 = 9",
    "DELETE FROM lineitem WHERE l_orderkey > 1000000 AND l_linenumber = 1",
    "DELETE FROM orders WHERE o_orderkey > 1000000 AND o_orderkey % 3 = 0",
    "UPDATE supplier SET s_comment = 'Customer of many Complaints' WHERE s_suppkey % 9 = 2",
)


@pytest.fixture(scope="module")
def loaded(postgres: Postgres) -> Iterator[str]:
    """A database with the eight tables, to be copied."""
    with postgres.database() as url:
        with psycopg.connect(url, autocommit=True) as connection:
            for name, rows in tables(SCALE):
                columns = ", ".join(
                    f"{column} {kind.replace('string', 'text')}"
                    for column, kind in SCHEMAS[TableName.of([name])].items()
                )
                connection.execute(f"CREATE TABLE {name} ({columns}, PRIMARY KEY ({KEYS[name]}))")
                with connection.cursor().copy(f"COPY {name} FROM STDIN") as copy:
                    for row in zip(*(column.to_pylist() for column in rows.columns), strict=True):
                        copy.write_row(row)
            for table, column in INDEXES:
                connection.execute(f"CREATE INDEX ON {table} ({column})")
            connection.execute("VACUUM ANALYZE")
        yield url.split("@/")[1].split("?")[0]


@pytest.mark.parametrize("name", QUERIES)
def test_all_22_are_kept(postgres: Postgres, loaded: str, name: str) -> None:
    with postgres.database(loaded) as url, psycopg.connect(url, autocommit=True) as connection:
        story = Story(connection)
        story.install("result", QUERIES[name])
        wanted = [statement for statement in STATEMENTS if _table(statement) in QUERIES[name].lower()]
        story.run(*(wanted if LONG else wanted[:: len(wanted) // A_FEW]))


@pytest.mark.parametrize("name", QUERIES)
def test_all_22_in_trickles_own_sql(postgres: Postgres, loaded: str, name: str) -> None:
    """Translated, they have the same answers, up to the digits that Spark gives to quotients and means."""
    faces = {
        table: Face("public", table.table, tuple(FaceColumn(column, kind, column) for column, kind in columns.items()))
        for table, columns in SCHEMAS.items()
    }
    with psycopg.connect(postgres.url(loaded), autocommit=True) as connection:
        own = connection.execute(QUERIES[name])
        assert own.description is not None
        columns = [(column.name, column.type_display) for column in own.description]
        text = to_postgres(QUERIES[name], faces, {}, columns, by_bytes=True)
        assert _rounded(connection.execute(text).fetchall()) == _rounded(own.fetchall())


def _rounded(rows: list[tuple[Any, ...]]) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(round(v, 4) if isinstance(v, Decimal | float) else v for v in row) for row in rows)


def _table(statement: str) -> str:
    found = re.match(r"(?:INSERT INTO|UPDATE|DELETE FROM) (\w+)", statement)
    assert found is not None
    return found[1]
