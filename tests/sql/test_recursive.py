"""Recursive queries reduced to their starts, for those who ask for columns."""

from __future__ import annotations

import pytest

from trickle.sql.recursive import is_recursive, starts_of


@pytest.mark.parametrize(
    "text",
    [
        "SELECT recursive FROM t",
        "WITH RECURSIVE a AS (SELECT 1 AS x UNION SELECT 2) SELECT x FROM a",
        "WITH p AS (SELECT 1 AS x UNION ALL SELECT x FROM p) SELECT x FROM p",
    ],
)
def test_what_does_not_refer_to_itself_stays_to_the_letter(text):
    assert not is_recursive(text)
    assert starts_of(text) == text


def test_each_recursion_is_its_start_and_the_rest_stays():
    text = """WITH RECURSIVE a AS (SELECT 1 AS x),
        p(a, b) AS (SELECT src, dst FROM edges UNION SELECT p.a, e.dst FROM p JOIN edges e ON p.b = e.src),
        q AS (SELECT a FROM p UNION ALL (SELECT a + 1 FROM q WHERE a < 3))
        SELECT q.a, b FROM p JOIN q ON q.a = p.a JOIN a ON x = q.a"""
    assert starts_of(text) == (
        "WITH RECURSIVE a AS (SELECT 1 AS x), p(a, b) AS (SELECT src, dst FROM edges), q AS (SELECT a FROM p) "
        "SELECT q.a, b FROM p JOIN q ON q.a = p.a JOIN a ON x = q.a"
    )
