"""Random statements, and after each one every IMMEDIATE stream table equals its query over the tables as they are."""

from __future__ import annotations

import pytest

from tests.immediate.lake.checking import agree
from tests.scenarios.test_random_dml import COLUMNS, Statements
from trickle.api import Trickle

QUERIES = {
    "groups": "SELECT k, count(*) AS n, sum(price) AS price, min(word) AS word FROM a GROUP BY k",
    "pairs": "SELECT x.id, y.word FROM a x LEFT JOIN a y ON x.k = y.k AND x.id < y.id",
    "words": "SELECT DISTINCT word FROM a WHERE k IS NOT NULL",
    "first_rows": "SELECT id, price FROM a ORDER BY price DESC NULLS LAST, id LIMIT 5",
    "ranked": "SELECT id, k, row_number() OVER (PARTITION BY k ORDER BY id) AS place FROM a",
    "above": "SELECT g.k, g.n FROM groups g WHERE g.n > (SELECT avg(n) FROM groups)",
    "without": "SELECT id FROM a WHERE NOT EXISTS (SELECT 1 FROM first_rows f WHERE f.id = a.id)",
}
STATEMENTS = 5


@pytest.mark.timeout(400)
@pytest.mark.parametrize("seed", [3])
def test_a_row_of_statements(t: Trickle, seed: int) -> None:
    t.sql(f"CREATE TABLE a ({COLUMNS}) PARTITIONED BY (k)")
    for name, query in QUERIES.items():
        t.create_stream_table(name, query, refresh_mode="IMMEDIATE")
    for number, text in enumerate(Statements(seed)):
        if number == STATEMENTS:
            break
        t.sql(text)
        agree(t)
    t.sql("TRUNCATE TABLE a")
    agree(t)
