"""Queries whose groups are made for chosen rows, kept through random changes of every table."""

from __future__ import annotations

import random
from typing import Any

import pytest

from trickle.operators import Aggregate, Join, JoinKind, walk
from trickle.testing.keeping import Bench, Keeping, arrow_table

SCHEMAS = {name: {"id": "int", "a": "int", "b": "int", "s": "string"} for name in ("t", "u", "v")}
BATCHES = 12

QUERIES = [
    (
        "SELECT sum(t.b) AS n FROM t JOIN u ON t.a = u.a"
        " WHERE u.s = 'x' AND t.b < (SELECT 2 * avg(w.b) FROM t w WHERE w.a = u.a)"
    ),
    (
        "SELECT t.id, u.b FROM t, u, v WHERE t.a = u.a AND u.b = v.b AND t.s LIKE 'x%' AND v.s = 'y'"
        " AND u.id = (SELECT min(w.id) FROM u w JOIN v m ON w.b = m.b WHERE m.s = 'y' AND w.a = t.a)"
    ),
    (
        "SELECT id FROM t WHERE a IN (SELECT a FROM v WHERE s = 'x')"
        " AND b >= (SELECT sum(b) FROM u WHERE u.a = t.a AND u.id = t.id)"
    ),
    "SELECT id, (SELECT count(*) FROM u WHERE u.a = t.a) AS n FROM t WHERE s IN ('x', 'z')",
    "SELECT id FROM t WHERE s = 'x' AND NOT EXISTS (SELECT 1 FROM u WHERE u.a = t.a GROUP BY u.a HAVING count(*) > 1)",
    "SELECT id FROM t WHERE s = 'x' AND a NOT IN (SELECT a FROM u WHERE a IS NOT NULL GROUP BY a HAVING count(*) > 2)",
    "SELECT x.a, x.n, t.id FROM (SELECT a, max(b) AS n FROM u GROUP BY a) x JOIN t ON t.a = x.a WHERE t.s = 'x'",
    (
        "SELECT t.id, x.n FROM t JOIN (SELECT a, count(*) AS n FROM"
        " (SELECT a FROM u WHERE b > 1 UNION ALL SELECT b FROM v) w GROUP BY a) x ON x.a = t.a WHERE t.s = 'x'"
    ),
    (
        "SELECT t.id, x.n FROM t JOIN (SELECT v.a, count(*) AS n FROM u LEFT JOIN v ON v.b = u.b GROUP BY v.a) x"
        " ON x.a = t.a WHERE t.s = 'x'"
    ),
]


def _row(draw: random.Random) -> tuple[Any, ...]:
    return (*(draw.choice((None, 1, 1, 2, 3)) for _ in range(3)), draw.choice((None, "x", "x", "y", "z")))


@pytest.mark.parametrize("number", range(len(QUERIES)))
def test_groups_come_and_go_with_the_rows_that_ask(bench: Bench, number: int) -> None:
    draw = random.Random(number)
    rows = {name: [_row(draw) for _ in range(8)] for name in SCHEMAS}
    start = {name: arrow_table(SCHEMAS[name], some) for name, some in rows.items()}
    keeping = Keeping(bench, QUERIES[number], SCHEMAS, start)
    groups = [node for node in walk(keeping.tree) if isinstance(node, Aggregate)]
    below = [node for group in groups for node in walk(group.input) if isinstance(node, Join)]
    assert any(join.kind is JoinKind.SEMI for join in below), "groups are made for chosen rows"
    changes = 0
    for _ in range(BATCHES):
        for name in draw.sample(list(rows), draw.randint(1, 3)):
            some = rows[name]
            draw.shuffle(some)
            rows[name] = some[draw.randint(0, 3) :] + [_row(draw) for _ in range(draw.randint(0, 4))]
        batch = {name: arrow_table(SCHEMAS[name], some) for name, some in rows.items()}
        changes += bool(keeping.refresh(batch).rows_changed)
    assert changes > 1
