"""Every subquery means what it meant: the rewritten tree on DuckDB beside DuckDB's own evaluation of the text."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.sql.rewrites.relations import database, rows_of, through, tree_of, typed
from trickle.operators import Apply, Operator, walk
from trickle.sql.rewrites import rewrite
from trickle.sql.rewrites.decorrelate import decorrelate

DATABASES = [
    database(seed, rows)
    for seed, rows in enumerate(
        [(9, 9, 9), (12, 3, 5), (5, 20, 2), (6, 0, 6), (6, 6, 0), (0, 5, 5), (4, 0, 0), (15, 15, 15)]
    )
]

QUERIES = [line for line in (Path(__file__).parent / "queries.sql").read_text().splitlines() if line[:6] == "SELECT"]


@pytest.mark.parametrize("rule", [decorrelate, rewrite, typed])
@pytest.mark.parametrize("text", QUERIES)
def test_a_rewritten_query_gives_the_same_rows(text: str, rule: Callable[[Operator], Operator]) -> None:
    text, _, spelled = text.partition(" ==> ")
    rewritten = through(text, rule)
    for connection in DATABASES:
        assert rows_of(connection, rewritten) == rows_of(connection, spelled or text)


@pytest.mark.parametrize("text", QUERIES)
def test_no_subquery_is_left_and_the_columns_are_the_same(text: str) -> None:
    tree = tree_of(text.partition(" ==> ")[0])
    rewritten = rewrite(tree)
    assert not [node for node in walk(rewritten) if isinstance(node, Apply)]
    assert rewritten.columns == tree.columns
