"""Random statements on one table, the same in DuckDB: an oracle that shares no code with Trickle or Spark."""

from __future__ import annotations

import random
from collections.abc import Iterator

import duckdb
import pytest

from tests.scenarios.story import Row, contents, differences, order_of, refreshed, version_of
from trickle.api import Trickle

COLUMNS = "id INT, k INT, word STRING, price DECIMAL(10, 2)"
STATEMENTS = 18


class Statements:
    """Statements that mean the same in both dialects."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.next_id = 0

    def __iter__(self) -> Iterator[str]:
        yield self.insert()
        makers = (self.insert, self.insert_select, self.update, self.update, self.delete, self.merge, self.merge)
        for _ in range(STATEMENTS - 1):
            yield self.random.choice(makers)()

    def row(self) -> str:
        self.next_id += 1
        key = self.random.choice(["NULL", "0", "1", "2", "3"])
        word = self.random.choice(["NULL", "''", "'a'", "'b'", "'ü'"])
        price = self.random.choice(["NULL", "0.00", "1.25", "-3.10"])
        return f"({self.next_id}, {key}, {word}, CAST({price} AS DECIMAL(10, 2)))"

    def rows(self) -> str:
        return ", ".join(self.row() for _ in range(self.random.randint(1, 5)))

    def condition(self, prefix: str = "") -> str:
        number = self.random.randint(0, 3)
        simple = [
            f"{prefix}k = {number}",
            f"{prefix}k <> {number}",
            f"{prefix}k IS NULL",
            f"{prefix}k IS NOT DISTINCT FROM {self.random.choice(['NULL', '1'])}",
            f"{prefix}id % 4 = {number}",
            f"{prefix}word IN ('a', 'ü')",
            f"NOT ({prefix}price > 0)",
            f"{prefix}id < {self.random.randint(0, self.next_id + 1)}",
            f"{prefix}price = (SELECT min(price) FROM a)",
            f"{prefix}k IN (SELECT k FROM a WHERE id > {self.next_id - 3})",
        ]
        return f" {self.random.choice(['AND', 'OR'])} ".join(self.random.sample(simple, self.random.randint(1, 2)))

    def value(self) -> str:
        return self.random.choice(
            [
                "k = coalesce(k, -1) + 1",
                "k = NULL, word = 'n'",
                "word = word || 'x', k = id % 3",
                "price = price + 0.25, word = NULL",
                "price = CAST(k AS DECIMAL(10, 2))",
                "k = CASE WHEN price > 0 THEN 1 ELSE 2 END",
            ]
        )

    def insert(self) -> str:
        return f"INSERT INTO a VALUES {self.rows()}"

    def insert_select(self) -> str:
        self.next_id += 1000
        chosen = self.random.randint(0, 6)
        return f"INSERT INTO a (id, word) SELECT id + {self.next_id}, word FROM a WHERE id % 7 = {chosen}"

    def update(self) -> str:
        return f"UPDATE a SET {self.value()} WHERE {self.condition()}"

    def delete(self) -> str:
        return f"DELETE FROM a WHERE ({self.condition()}) AND id % 3 = {self.random.randint(0, 2)}"

    def merge(self) -> str:
        """The source has one row per key, so that no row of the target matches twice."""
        source = f"(SELECT id, k, word, price FROM (VALUES {self.rows()}) AS s(id, k, word, price)) AS s"
        shift = self.random.randint(0, 8)
        clauses = [
            f"WHEN MATCHED AND {self.condition('a.')} THEN UPDATE SET k = s.k, word = s.word",
            "WHEN MATCHED AND s.price > 0 THEN DELETE",
            "WHEN NOT MATCHED AND s.k IS NOT NULL THEN INSERT (id, k, word, price) VALUES (s.id, s.k, s.word, s.price)",
            f"WHEN NOT MATCHED BY SOURCE AND a.id % 5 = {shift % 5} THEN UPDATE SET price = 9",
            "WHEN NOT MATCHED BY SOURCE AND a.word = 'n' THEN DELETE",
        ]
        chosen = sorted(self.random.sample(range(len(clauses)), self.random.randint(1, 4)))
        return f"MERGE INTO a USING {source} ON a.id = s.id - {shift} {' '.join(clauses[n] for n in chosen)}"


@pytest.mark.parametrize("seed", [1, 20])
def test_a_row_of_statements_leaves_what_duckdb_has(t: Trickle, seed: int) -> None:
    other = duckdb.connect()
    other.execute(f"CREATE TABLE a ({COLUMNS})")
    t.sql(f"CREATE TABLE a ({COLUMNS}) {'PARTITIONED BY (k)' if seed % 2 == 0 else ''}")
    t.sql("CREATE STREAM TABLE s AS SELECT k, count(*) AS n, sum(price) AS price FROM a GROUP BY k")
    start = version_of(t, "a")
    for number, text in enumerate(Statements(seed)):
        other.execute(text)
        t.sql(text)
        expected: list[Row] = sorted(other.execute("SELECT * FROM a").fetchall(), key=order_of)
        assert contents(t, "a") == expected, f"after statement {number}: {text}"
        if number % 9 == 8:
            refreshed(t, "s")
    assert len(expected) > 3
    # The changes since the empty table add up to the table.
    told = [row[:-1] for row in differences(t, "a", start) for _ in range(row[-1])]
    assert told == expected
