"""Random queries mean the same after the rewrites. The seed names the query: RandomQuery(seed).text()."""

from __future__ import annotations

import pytest

from tests.sql.rewrites.random_queries import RandomQuery
from tests.sql.rewrites.relations import database, rows_of, through, typed
from trickle.sql.rewrites import rewrite
from trickle.sql.rewrites.decorrelate import decorrelate

DATABASES = [database(seed, rows) for seed, rows in enumerate([(6, 6, 6), (9, 4, 7), (5, 0, 5), (4, 8, 0)])]


@pytest.mark.parametrize("seed", range(80))
def test_a_random_query_gives_the_same_rows(seed: int) -> None:
    text = RandomQuery(seed).text()
    for rule in (decorrelate, rewrite, typed):
        rewritten = through(text, rule)
        for connection in DATABASES:
            assert rows_of(connection, rewritten) == rows_of(connection, text), text


def test_most_random_queries_find_something() -> None:
    found = [bool(rows_of(DATABASES[0], RandomQuery(seed).text())) for seed in range(80)]
    assert sum(found) > len(found) / 3
