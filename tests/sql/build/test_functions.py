from __future__ import annotations

from tests.sql.build.given import shown


def test_range_counts() -> None:
    tree = shown("SELECT id FROM range(3)")
    assert (
        tree
        == """\
project id
  generate EXPLODE(SEQUENCE(CAST(0 AS BIGINT), CAST(2 AS BIGINT), CAST(1 AS BIGINT))) as id
    values one: (1)"""
    )


def test_range_counts_in_steps_and_backwards() -> None:
    tree = shown("SELECT id FROM range(9, 1, -3)")
    assert (
        tree
        == """\
project id
  generate EXPLODE(SEQUENCE(CAST(9 AS BIGINT), CAST(3 AS BIGINT), CAST(-3 AS BIGINT))) as id
    values one: (1)"""
    )


def test_an_empty_range_has_no_rows() -> None:
    tree = shown("SELECT id FROM range(5, 5)")
    assert (
        tree
        == """\
project id
  filter FALSE
    generate EXPLODE(SEQUENCE(CAST(5 AS BIGINT), CAST(5 AS BIGINT), CAST(1 AS BIGINT))) as id
      values one: (1)"""
    )


def test_explode_is_a_relation() -> None:
    tree = shown("SELECT x FROM explode(array(1, 2)) AS e(x)")
    assert (
        tree
        == """\
project col as x
  generate EXPLODE(ARRAY(1, 2)) as col
    values one: (1)"""
    )
