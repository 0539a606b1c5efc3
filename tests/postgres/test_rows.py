from __future__ import annotations

import pytest
from psycopg import sql

from trickle.errors import SourceUnreachable
from trickle.postgres.connect import Connection, connected
from trickle.postgres.rows import copy_texts


def test_batches_hold_whole_rows(connection: Connection) -> None:
    query = sql.SQL("SELECT g, repeat(E'x\\n\"', g % 50) FROM generate_series(1, 5000) g")
    batches = list(copy_texts(connection, query, ["n", "text"], batch_bytes=10_000))
    assert len(batches) > 20
    rows = [row for batch in batches for row in batch.to_pylist()]
    assert rows == [{"n": str(n), "text": 'x\n"' * (n % 50)} for n in range(1, 5001)]


def test_a_single_column_of_nulls_and_empty_texts(connection: Connection) -> None:
    query = sql.SQL("SELECT v FROM (VALUES (1, NULL), (2, ''), (3, NULL), (4, '\\.')) t(n, v) ORDER BY n")
    (batch,) = copy_texts(connection, query, ["v"])
    assert batch.column("v").to_pylist() == [None, "", None, "\\."]


def test_no_rows_no_batch(connection: Connection) -> None:
    assert list(copy_texts(connection, sql.SQL("SELECT 1 WHERE false"), ["v"])) == []


def test_a_row_larger_than_a_batch(connection: Connection) -> None:
    (batch,) = copy_texts(connection, sql.SQL("SELECT repeat('y', 3000000)"), ["v"], batch_bytes=1000)
    assert len(batch.column("v")[0].as_py()) == 3_000_000


def test_a_server_that_goes_away_in_the_middle(dsn: str) -> None:
    with pytest.raises(SourceUnreachable), connected(dsn) as connection:
        query = sql.SQL(
            "SELECT g, CASE WHEN g = 200000 THEN pg_terminate_backend(pg_backend_pid()) END"
            " FROM generate_series(1, 400000) g"
        )
        for _ in copy_texts(connection, query, ["n", "v"], batch_bytes=10_000):
            pass
