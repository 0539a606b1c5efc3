"""What can make certain rows: the tables are restricted, where a column reaches the result unchanged."""

from __future__ import annotations

from sqlglot import parse_one

from trickle.delta.narrow import narrowed
from trickle.operators import Filter, Join, JoinKind, Output, Project, Scan, Step, Values, col, show

WANTED = Step("wanted", (("x", "x"), ("y", "y")))
PATHS = Scan("p", (("a", "a"), ("b", "b")))
EDGES = Scan("e", (("src", "src"), ("dst", "dst")))


def test_both_sides_of_a_join_are_restricted_by_what_comes_from_them():
    tree = Project(
        Join(JoinKind.INNER, PATHS, EDGES, parse_one("b = src")), (Output("f", col("a")), Output("t", col("dst")))
    )
    assert show(narrowed(tree, WANTED)).splitlines() == [
        "project a as f, dst as t",
        "  inner join on b = src",
        "    semi join small right on a IS NOT DISTINCT FROM __trickle_key_0",
        "      scan p new: a, b",
        "      project x as __trickle_key_0",
        "        step wanted: x, y",
        "    semi join small right on dst IS NOT DISTINCT FROM __trickle_key_0",
        "      scan e new: src, dst",
        "      project y as __trickle_key_0",
        "        step wanted: x, y",
    ]


def test_a_computed_column_restricts_nothing():
    tree = Project(PATHS, (Output("f", parse_one("a + 1")), Output("t", parse_one("b * 2"))))
    assert narrowed(tree, WANTED) == tree


def test_the_right_side_of_a_left_join_stays():
    # A row that finds nothing is a row too: with fewer rows on the right there would be more of them.
    tree = Project(
        Join(JoinKind.LEFT, PATHS, EDGES, parse_one("b = src")), (Output("f", col("dst")), Output("t", col("src")))
    )
    assert narrowed(tree, WANTED) == tree


def test_rows_that_are_spelled_out_stay():
    tree = Filter(Values(("f", "t"), ((parse_one("1"), parse_one("2")),)), parse_one("f < t"))
    assert narrowed(tree, WANTED) == tree
