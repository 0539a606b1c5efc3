"""Which queries are monotone, checked against their meaning on DuckDB: more rows below, no fewer rows above."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trickle.algebra.names import TableName
from trickle.operators import Face, Operator, Scan, Step
from trickle.refresh.monotone import increments, obstacle, set_rows, whole
from trickle.sql.build import build_tree
from trickle.sql.rewrites import rewrite
from trickle.testing.duck import Duck

Row = tuple[int | None, int | None]

SCHEMAS = {TableName.of([name]): {"x": "bigint", "y": "bigint"} for name in ("a", "b", "c")}
CYCLE = ("a", "b")

MONOTONE = [
    "SELECT x + 1 AS x, y FROM b WHERE x > 0 OR y IS NULL",
    "SELECT b.x, c.y FROM b JOIN c ON b.y = c.x",
    "SELECT a.x, b.y FROM a CROSS JOIN b",
    "SELECT x, y FROM b UNION ALL SELECT x, y FROM c UNION ALL SELECT y, x FROM b",
    "SELECT x, y FROM c UNION SELECT a.x, b.y FROM a JOIN b ON a.y = b.x",
    "SELECT DISTINCT y FROM b",
    "SELECT x FROM c WHERE y IN (SELECT x FROM b)",
    "SELECT x, y FROM b WHERE EXISTS (SELECT 1 FROM a WHERE a.x = b.x AND a.y > b.y)",
    "SELECT x FROM b WHERE x NOT IN (SELECT y FROM c)",
    "SELECT b.x, c.y FROM b LEFT JOIN c ON b.x = c.x",
    "SELECT x, e AS y FROM b LATERAL VIEW explode(array(x, y)) AS e",
    "SELECT x, (SELECT max(y) FROM c) AS y FROM b",
    "SELECT b.x, n AS y FROM b JOIN (SELECT x, count(*) AS n FROM c GROUP BY x) c ON b.x = c.x",
    "WITH RECURSIVE p(x) AS (SELECT x FROM b UNION SELECT c.y FROM p JOIN c ON p.x = c.x) SELECT x FROM p",
    """WITH RECURSIVE p(x, n) AS (
           SELECT x, 0 FROM c UNION ALL SELECT b.y, n + 1 FROM p JOIN b ON p.x = b.x WHERE n < 3
       ) SELECT x, n FROM p""",
]

NOT_MONOTONE = [
    ("SELECT sum(x) AS x FROM b", "aggregate sum over b"),
    ("SELECT x, count(*) AS n, max(y) FILTER (WHERE y > 0) AS m FROM b GROUP BY x", "aggregate count, max over b"),
    ("SELECT x, (SELECT max(y) FROM b) AS y FROM c", "aggregate max over b"),
    ("SELECT x FROM c WHERE x NOT IN (SELECT x FROM b)", "ANTI JOIN with the right side over b"),
    ("SELECT x FROM c WHERE NOT EXISTS (SELECT 1 FROM a WHERE a.x = c.x)", "ANTI JOIN with the right side over a"),
    ("SELECT x, y FROM c EXCEPT SELECT x, y FROM b", "aggregate sum over b"),
    ("SELECT c.x, b.y FROM c LEFT JOIN b ON b.x = c.x", "LEFT JOIN with the right side over b"),
    ("SELECT b.x, c.y FROM b FULL JOIN c ON b.x = c.x", "ANTI JOIN with the right side over b"),
    ("SELECT x, row_number() OVER (ORDER BY x, y) AS n FROM b", "window function row_number over b"),
    ("SELECT x, y FROM b ORDER BY x, y LIMIT 1", "LIMIT over b"),
    (
        """WITH RECURSIVE p(x) AS (
               SELECT x FROM b UNION SELECT p.x + q.x FROM p JOIN p q ON p.x < q.x WHERE p.x < 9
           ) SELECT x FROM p""",
        "recursion p, whose step has a join of it with itself, over b",
    ),
]
BEFORE: list[Row] = [(1, 2)]
AFTER: list[Row] = [(1, 2), (0, 0), (3, 4), (1, 5)]
"""Enough to show that a query which is not monotone loses a row."""


def tree_of(query: str) -> Operator:
    return rewrite(build_tree(query, SCHEMAS))


def table(rows: Iterable[Row]) -> pa.Table:
    columns = list(zip(*rows, strict=True)) or [(), ()]
    return pa.table({name: pa.array(values, pa.int64()) for name, values in zip("xy", columns, strict=True)})


def multiset(duck: Duck, tree: Operator) -> Counter[tuple[object, ...]]:
    found = duck.run(tree)
    return Counter(zip(*(column.to_pylist() for column in found.columns), strict=True))


@pytest.fixture(scope="module")
def duck() -> Iterator[Duck]:
    with Duck() as duck:
        yield duck


numbers = st.one_of(st.none(), st.integers(-2, 4))
some_rows = st.lists(st.tuples(numbers, numbers), max_size=6)


@pytest.mark.parametrize("query", MONOTONE)
def test_what_is_called_monotone_has_no_obstacle(query: str) -> None:
    assert obstacle(tree_of(query), CYCLE) is None


@pytest.mark.parametrize("query, words", NOT_MONOTONE)
def test_obstacles_are_named(query: str, words: str) -> None:
    tree = tree_of(query)
    assert str(obstacle(tree, CYCLE)) == words
    assert obstacle(tree, ["elsewhere"]) is None


def test_intersect_is_refused_although_it_is_monotone() -> None:
    """It is an aggregate, as the algebra writes it."""
    assert str(obstacle(tree_of("SELECT x FROM c INTERSECT SELECT x FROM b"), CYCLE)) == "aggregate sum over b"


@pytest.mark.parametrize("query, words", [case for case in NOT_MONOTONE if "RECURSIVE" not in case[0]])
def test_obstacles_do_lose_rows(duck: Duck, query: str, words: str) -> None:
    tree = tree_of(query)
    duck.load("c", Face.NEW, table([(1, 2), (3, 4), (9, 9)]))
    counted = []
    for rows in (BEFORE, AFTER):
        for name in CYCLE:
            duck.load(name, Face.NEW, table(rows))
        counted.append(multiset(duck, tree))
    assert not counted[0] <= counted[1], words


@given(query=st.sampled_from(MONOTONE), constant=some_rows, rows=some_rows, more=some_rows)
def test_more_rows_below_are_no_fewer_rows_above(
    duck: Duck, query: str, constant: list[Row], rows: list[Row], more: list[Row]
) -> None:
    tree = tree_of(query)
    duck.load("c", Face.NEW, table(constant))
    counted = []
    for a, b in ((rows, rows), (rows + more, rows), (rows + more, rows + more)):
        duck.load("a", Face.NEW, table(a))
        duck.load("b", Face.NEW, table(b))
        counted.append(multiset(duck, tree))
    assert counted[0] <= counted[1] <= counted[2]


@given(query=st.sampled_from(MONOTONE), constant=some_rows, rows=some_rows, more=st.tuples(some_rows, some_rows))
def test_latest_rows_make_all_that_is_new(
    duck: Duck, query: str, constant: list[Row], rows: list[Row], more: tuple[list[Row], list[Row]]
) -> None:
    tree, latest = tree_of(query), dict(zip(CYCLE, more, strict=True))

    def in_all(scan: Scan) -> Operator:
        return Step(f"all {scan.table}", scan.fields)

    def in_latest(scan: Scan) -> Operator | None:
        return Step(f"latest {scan.table}", scan.fields) if latest[scan.table] else None

    duck.load("c", Face.NEW, table(constant))
    for name in CYCLE:
        duck.bind(f"all {name}", table(rows))
    before = set(multiset(duck, whole(tree, CYCLE, in_all)))
    for name in CYCLE:
        duck.bind(f"all {name}", table(rows + latest[name]))
        duck.bind(f"latest {name}", table(latest[name]))
    after = set(multiset(duck, whole(tree, CYCLE, in_all)))
    made = set[tuple[object, ...]]()
    for one in increments(tree, CYCLE, in_all, in_latest):
        made |= set(multiset(duck, one))
    assert before | made == after


def test_without_latest_rows_there_is_nothing_to_compute() -> None:
    for query in MONOTONE:
        found = increments(tree_of(query), CYCLE, lambda scan: scan, lambda _: None)
        assert found == []


@pytest.mark.parametrize(
    "query",
    [
        "SELECT x, y FROM c UNION SELECT y, x FROM b",
        "SELECT DISTINCT x + y AS z FROM b",
        "SELECT DISTINCT x AS u, x AS v FROM b",
    ],
)
@given(rows=some_rows)
def test_sets_are_told_by_their_shape(duck: Duck, query: str, rows: list[Row]) -> None:
    tree = tree_of(query)
    found = set_rows(tree)
    assert found is not None
    assert found.columns == tree.columns
    for name in ("b", "c"):
        duck.load(name, Face.NEW, table(rows))
    counted = multiset(duck, tree)
    assert set(multiset(duck, found)) == set(counted)
    assert set(counted.values()) <= {1}


@pytest.mark.parametrize(
    "query",
    [
        "SELECT x, y FROM b",
        "SELECT x FROM (SELECT DISTINCT x, y FROM b) d",
        "SELECT x + y AS z FROM (SELECT DISTINCT x, y FROM b) d",
        "SELECT x, count(*) AS n FROM c GROUP BY x",
        "SELECT x, y FROM c UNION ALL (SELECT x, y FROM b UNION SELECT y, x FROM b)",
    ],
)
def test_others_may_have_copies(query: str) -> None:
    assert set_rows(tree_of(query)) is None
