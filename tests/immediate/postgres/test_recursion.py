"""Recursive queries inside PostgreSQL: kept by what changed, and given up when they do not end."""

from __future__ import annotations

import psycopg
import pytest

from tests.immediate.postgres.story import Story
from trickle.errors import UnsupportedQuery
from trickle.settings import Settings

GRAPH = """
    CREATE TABLE edges (src int NOT NULL, dst int NOT NULL, PRIMARY KEY (src, dst));
    CREATE TABLE roots (node int PRIMARY KEY);
    CREATE INDEX ON edges (dst);
    INSERT INTO edges SELECT n, n * 2 FROM generate_series(1, 40) n;
    INSERT INTO edges SELECT n, n * 2 + 1 FROM generate_series(1, 40) n;
    INSERT INTO roots VALUES (1), (3);
"""
REACHED = """
    WITH RECURSIVE reached(node) AS (
        SELECT node FROM roots UNION SELECT e.dst FROM reached r JOIN edges e ON e.src = r.node
    ) SELECT node FROM reached
"""
PATHS = """
    WITH RECURSIVE paths(a, b, hops) AS (
        SELECT src, dst, 1 FROM edges
        UNION SELECT p.a, e.dst, p.hops + 1 FROM paths p JOIN edges e ON e.src = p.b WHERE p.hops < 4
    ) SELECT a, b, hops FROM paths
"""
COUNTED = f"SELECT count(*) AS n, max(node) AS top FROM ({REACHED}) AS x"
STATEMENTS = (
    "INSERT INTO edges VALUES (80, 200), (200, 201), (201, 80)",
    "DELETE FROM edges WHERE src = 1 AND dst = 2",
    "INSERT INTO edges VALUES (3, 2)",
    "DELETE FROM roots WHERE node = 1",
    "UPDATE edges SET dst = dst + 1 WHERE src IN (6, 7) AND dst % 2 = 1",
    "DELETE FROM edges WHERE src = 40",
    "INSERT INTO roots SELECT n FROM generate_series(10, 14) n",
    "DELETE FROM edges WHERE src % 5 = 2",
    "TRUNCATE roots",
    "INSERT INTO roots VALUES (1)",
    "DELETE FROM edges",
)


@pytest.fixture
def graph(story: Story) -> Story:
    story.connection.execute(GRAPH)
    return story


@pytest.mark.parametrize("query", [REACHED, PATHS, COUNTED], ids=["reached", "paths", "counted"])
def test_a_recursion_is_kept(graph: Story, query: str) -> None:
    graph.install("result", query)
    graph.run(*STATEMENTS)


def test_a_circle_that_holds_itself_up_goes(graph: Story) -> None:
    graph.install("result", REACHED)
    graph.run(
        "INSERT INTO edges VALUES (500, 501), (501, 502), (502, 500), (1, 500)",
        "DELETE FROM edges WHERE dst = 500 AND src = 1",
    )
    assert graph.rows("SELECT node FROM result WHERE node >= 500") == []


def test_one_that_does_not_end_is_given_up(graph: Story) -> None:
    endless = """
        WITH RECURSIVE r(n) AS (SELECT node FROM roots UNION SELECT n + 1 FROM r WHERE n <> 900) SELECT n FROM r
    """
    graph.install("result", endless)
    with pytest.raises(psycopg.errors.ProgramLimitExceeded, match="did not end after 1000 rounds"):
        graph.connection.execute("INSERT INTO roots VALUES (901)")
    graph.check("what was given up")
    graph.run("INSERT INTO roots VALUES (500)")
    with pytest.raises(psycopg.errors.ProgramLimitExceeded, match="after 50 rounds"):
        graph.install("second", endless, settings=Settings(ivm_recursive_max_depth=50))


@pytest.mark.parametrize(
    "query, reason",
    [
        (REACHED.replace("UNION", "UNION ALL"), "UNION ALL"),
        (
            (
                "WITH RECURSIVE r(a) AS (SELECT src FROM edges UNION SELECT a + 1 FROM (SELECT a FROM r LIMIT 3) AS x)"
                " SELECT a FROM r"
            ),
            "LIMIT",
        ),
    ],
)
def test_recursions_that_are_not_kept_by_changes(graph: Story, query: str, reason: str) -> None:
    with pytest.raises(UnsupportedQuery, match=reason):
        graph.install("result", query)
