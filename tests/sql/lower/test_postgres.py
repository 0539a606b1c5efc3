"""PostgreSQL gives the rows that DuckDB gives."""

from __future__ import annotations

import psycopg
import pyarrow as pa
import pytest

from tests.sql.lower.given import e, out, scan
from trickle.operators import (
    Aggregate,
    Face,
    Filter,
    Generate,
    Join,
    JoinKind,
    Operator,
    Output,
    Project,
    Scan,
    Step,
    TopK,
    UnionAll,
    Values,
    Window,
    WindowOrder,
)
from trickle.sql.lower import lower
from trickle.testing.duck import Duck, multiset

ROWS = [(1, 10, True), (1, None, False), (2, 7, None), (None, 3, True), (3, -7, None)]
L = scan("l", "k", "v", "b")
R = scan("r", "c", "w", "d")
COUNTS = out(n="count(*)", p="count_if(v > 5)", s="sum(v)", a="avg(v)", every="every(b)", some="any(b)", m="max(v)")

TREES: dict[str, Operator] = {
    "expressions": Project(
        L, out(q="v / 2", r="v % 4", p="pmod(v, 4)", c="coalesce(v, 0)", i="if(b, 1, 2)", z="isnull(v)")
    ),
    "aggregate": Aggregate(L, ("k",), COUNTS),
    "no rows": Aggregate(Filter(L, e("v > 99")), (), COUNTS),
    "inner join": Join(JoinKind.INNER, L, R, e("k <=> c AND v > 0")),
    "left join": Join(JoinKind.LEFT, L, R, e("k = c AND w > 5")),
    "semi join": Filter(Join(JoinKind.SEMI, L, R, e("k <=> c AND w <= v")), e("v > 0")),
    "anti join": Join(JoinKind.ANTI, L, R, e("k = c")),
    "anti join without condition": Join(JoinKind.ANTI, L, Filter(R, e("w > 99"))),
    "window": Window(L, ("k",), (Output("o", e("row_number() OVER (PARTITION BY k ORDER BY v)")),)),
    "top k": TopK(Project(L, out(v="v")), (WindowOrder("v"),), 2, 1),
    "explode": Project(Generate(L, e("explode(array(v, k))"), ("x",)), out(k="k", x="x")),
    "union": UnionAll((Project(L, out(x="v")), Project(R, out(x="w")), Values(("x",), ((e("1"),), (e("2"),))))),
}


@pytest.fixture(scope="module")
def connection(postgres):
    with postgres.database() as url, psycopg.connect(url) as connection:
        for name, columns in (("l", "k int, v int, b boolean"), ("r", "c int, w int, d boolean")):
            connection.execute(f"CREATE TABLE {name} ({columns})")
            connection.cursor().executemany(f"INSERT INTO {name} VALUES (%s, %s, %s)", ROWS)
        yield connection


@pytest.fixture(scope="module")
def duck():
    with Duck() as given:
        for name, columns in (("l", "kvb"), ("r", "cwd")):
            given.load(name, Face.NEW, [dict(zip(columns, row, strict=True)) for row in ROWS])
        yield given


def name_of(leaf: Scan | Step) -> str:
    assert isinstance(leaf, Scan)
    return leaf.table


@pytest.mark.parametrize("name", TREES)
def test_postgres_and_duckdb_agree(name, connection, duck):
    tree = TREES[name]
    found = connection.execute(lower(tree, name_of, "postgres")).fetchall()
    columns = [[float(v) if hasattr(v, "as_tuple") else v for v in column] for column in zip(*found, strict=True)]
    assert multiset(pa.table(dict(zip(tree.columns, columns, strict=True)))) == multiset(duck.run(tree))
