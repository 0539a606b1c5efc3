"""Random graphs of stream tables over random changes: every refresh equals the oracle."""

from __future__ import annotations

import random

import pytest

from trickle.algebra.names import TableName
from trickle.api import Trickle
from trickle.refresh.execute import refresh
from trickle.testing import check

QUERIES = (
    "SELECT k, v FROM {x} WHERE v > 2",
    "SELECT k, CAST(v * 2 - 1 AS BIGINT) AS v FROM {x}",
    "SELECT k, CAST(sum(v) AS BIGINT) AS v FROM {x} GROUP BY k",
    "SELECT k, count(DISTINCT v) AS v FROM {x} GROUP BY k",
    "SELECT max(k) AS k, count(*) AS v FROM {x}",
    "SELECT DISTINCT k, v FROM {x}",
    "SELECT l.k, CAST(l.v + r.v AS BIGINT) AS v FROM {x} AS l JOIN {y} AS r ON l.k = r.k",
    "SELECT l.k, coalesce(r.v, -1L) AS v FROM {x} AS l LEFT JOIN {y} AS r ON l.k <=> r.k AND l.v <= r.v",
    "SELECT coalesce(l.k, r.k) AS k, l.v FROM {x} AS l FULL JOIN {y} AS r ON l.k = r.k",
    "SELECT k, v FROM {x} UNION ALL SELECT v % 3, v FROM {y}",
    "SELECT k, v FROM {x} EXCEPT ALL SELECT k, v FROM {y}",
    "SELECT k, v FROM {x} AS l WHERE NOT EXISTS (SELECT 1 FROM {y} AS r WHERE r.k = l.k AND r.v > 3)",
    "SELECT k, v FROM {x} WHERE v IN (SELECT v FROM {y})",
    "SELECT k, CAST(rank() OVER (PARTITION BY k ORDER BY v DESC) AS BIGINT) AS v FROM {x}",
    "SELECT k, v FROM {x} ORDER BY v DESC, k LIMIT 3",
    "WITH w AS (SELECT k, max(v) AS v FROM {x} GROUP BY k) SELECT w.k, {y}.v FROM w, {y} WHERE w.v = {y}.v",
)


def change(chance: random.Random) -> str:
    """A statement on one of the two base tables."""
    table, key, value = chance.choice("ab"), chance.choice(["NULL", "0", "1", "2"]), chance.randint(0, 5)
    merge = f"MERGE INTO {table} USING (SELECT {value} AS v) AS s ON {table}.v = s.v WHEN MATCHED THEN DELETE"
    rows = ", ".join(f"({chance.choice(['NULL', '0', '1', '2'])}, {chance.randint(0, 5)})" for _ in range(3))
    return chance.choice(
        [
            f"INSERT INTO {table} VALUES {rows}",
            f"UPDATE {table} SET v = v + 1 WHERE k = {value % 3}",
            f"UPDATE {table} SET k = {key} WHERE v = {value}",
            f"DELETE FROM {table} WHERE v = {value}",
            f"DELETE FROM {table} WHERE k <=> {key}",
            f"{merge} WHEN NOT MATCHED THEN INSERT (k, v) VALUES ({key}, s.v)",
        ]
    )


@pytest.mark.parametrize("seed", range(6))
def test_a_random_graph_always_equals_its_queries(t: Trickle, seed: int) -> None:
    chance = random.Random(seed)
    t.sql("CREATE TABLE a (k BIGINT, v BIGINT); INSERT INTO a VALUES (0, 1), (1, 2), (1, 4), (NULL, 3), (2, 5)")
    t.sql("CREATE TABLE b (k BIGINT, v BIGINT); INSERT INTO b VALUES (0, 2), (1, 4), (1, 4), (NULL, NULL)")
    relations, made = ["a", "b"], []
    for number in range(chance.randint(3, 4) if seed else 6):
        x, y = chance.choice(relations), chance.choice(relations)
        text = chance.choice(QUERIES).format(x=x, y=y)
        if chance.random() < 0.2:
            t.sql(f"CREATE VIEW v{number} AS {text}")
            text = f"SELECT k, v FROM v{number}"
        t.sql(f"CREATE STREAM TABLE s{number} AS {text}")
        made.append(f"s{number}")
        relations.append(f"s{number}")
    check(t)
    for _ in range(2):
        t.sql("; ".join(change(chance) for _ in range(chance.randint(1, 2))))
        wanted = [name for name in made if chance.random() < 0.8] or made
        if chance.random() < 0.5:
            refresh(t.warehouse, [TableName.of([name]) for name in wanted])
        else:
            for name in wanted:
                t.refresh_stream_table(name)
        check(t)
