"""TPC-H as a story: the 22 queries as stream tables, and cycles of changes over all eight tables."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import duckdb
import duckdb_extension_tpch
import pyarrow as pa

from tests.tpch.schemas import SCHEMAS
from trickle import Trickle
from trickle.algebra.names import TableName
from trickle.testing import check

SCALE = float(os.environ.get("TRICKLE_TPCH_SCALE", "0.01"))
"""The size of the data: 0.01 in the suite, 1 with ``make tpch``."""

QUERIES = {path.stem: path.read_text() for path in sorted((Path(__file__).parent / "queries").glob("q*.sql"))}

TABLES = ("region", "nation", "supplier", "customer", "part", "partsupp", "orders", "lineitem")

CYCLES: tuple[tuple[str, ...], ...] = (
    # New orders with their lines, as the benchmark's own refresh function does.
    (
        (
            "INSERT INTO orders SELECT o_orderkey + 1000000 AS o_orderkey, * EXCEPT (o_orderkey) FROM orders"
            " WHERE o_orderkey % 40 = 1"
        ),
        (
            "INSERT INTO lineitem SELECT l_orderkey + 1000000 AS l_orderkey, * EXCEPT (l_orderkey) FROM lineitem"
            " WHERE l_orderkey % 40 = 1"
        ),
    ),
    # Deletions on both sides of a join, and values that move rows across the filters.
    (
        "DELETE FROM orders WHERE o_orderkey % 50 = 2",
        "DELETE FROM lineitem WHERE l_orderkey % 100 = 2 OR l_partkey % 300 = 7",
        "UPDATE lineitem SET l_quantity = l_quantity + 30, l_discount = 0.06 WHERE l_orderkey % 90 = 3",
    ),
    # Parts and suppliers that the selective queries look for.
    (
        "UPDATE part SET p_brand = 'Brand#23', p_container = 'MED BOX' WHERE p_partkey % 12 = 0",
        "UPDATE part SET p_name = 'forest green', p_type = 'ECONOMY ANODIZED STEEL' WHERE p_partkey % 9 = 1",
        "UPDATE supplier SET s_nationkey = 20 WHERE s_suppkey % 5 = 1",
        "UPDATE supplier SET s_nationkey = 3 WHERE s_suppkey % 5 = 2",
        (
            "UPDATE partsupp SET ps_supplycost = ps_supplycost / 2, ps_availqty = ps_availqty + 500"
            " WHERE ps_partkey % 7 = 3"
        ),
    ),
    # Customers come, go and move; large orders.
    (
        "DELETE FROM customer WHERE c_custkey % 37 = 5",
        "UPDATE customer SET c_acctbal = c_acctbal - 3000, c_mktsegment = 'BUILDING' WHERE c_custkey % 11 = 4",
        (
            "INSERT INTO customer SELECT c_custkey + 100000 AS c_custkey, * EXCEPT (c_custkey) FROM customer"
            " WHERE c_custkey % 29 = 3"
        ),
        "UPDATE lineitem SET l_quantity = 90 WHERE l_orderkey % 131 = 6",
    ),
    # Keys change, and the small tables too.
    (
        "UPDATE orders SET o_custkey = o_custkey + 1 WHERE o_orderkey % 33 = 7",
        "UPDATE lineitem SET l_suppkey = 1 + l_suppkey % 100, l_shipmode = 'AIR' WHERE l_orderkey % 77 = 4",
        "UPDATE nation SET n_regionkey = 3 WHERE n_name = 'CANADA'",
        "DELETE FROM partsupp WHERE ps_partkey % 61 = 9",
        "INSERT INTO region VALUES (9, 'MIDDLE EAST', 'another of the name')",
    ),
    # The same rows come and go in one cycle; what was inserted goes.
    (
        "DELETE FROM lineitem WHERE l_orderkey > 1000000 AND l_linenumber = 1",
        "DELETE FROM orders WHERE o_orderkey > 1000000 AND o_orderkey % 3 = 0",
        "INSERT INTO partsupp SELECT p_partkey, 1, 10, 1.00, 'cheap' FROM part WHERE p_partkey % 50 = 4",
        "DELETE FROM partsupp WHERE ps_comment = 'cheap' AND ps_partkey % 100 = 4",
        "DELETE FROM region WHERE r_regionkey = 9",
        "UPDATE supplier SET s_comment = 'Customer of many Complaints' WHERE s_suppkey % 9 = 2",
    ),
)


def tables(scale: float) -> Iterator[tuple[str, pa.Table]]:
    """The eight tables of the benchmark."""
    folder = Path(duckdb_extension_tpch.__file__).parent
    with duckdb.connect() as db:
        db.execute(f"LOAD '{next(folder.rglob('*.duckdb_extension'))}'")
        db.execute(f"CALL dbgen(sf = {scale})")
        for name in TABLES:
            yield name, db.table(name).to_arrow_table()


def load(t: Trickle, scale: float) -> None:
    """Make and fill the tables."""
    for name, rows in tables(scale):
        columns = ", ".join(f"{column} {kind}" for column, kind in SCHEMAS[TableName.of([name])].items())
        t.sql(f"CREATE TABLE {name} ({columns})")
        t.write(name, rows)


def keep(t: Trickle, queries: Iterable[str], cycles: Sequence[Sequence[str]] = CYCLES) -> None:
    """The queries as stream tables, kept by changes through all cycles, each compared with recomputation."""
    names = list(queries)
    for name in names:
        t.create_stream_table(name, QUERIES[name], refresh_mode="DIFFERENTIAL")
        check(t, name)
    for statements in cycles:
        for statement in statements:
            t.sql(statement)
        for name in names:
            done = t.refresh_stream_table(name)
            assert done.action in ("DIFFERENTIAL", "NO_DATA"), f"{name}: {done.action}, {done.reason}"
            check(t, name)
