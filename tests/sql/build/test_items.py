from __future__ import annotations

from tests.sql.build.given import shown


def test_an_earlier_alias_can_be_used() -> None:
    tree = shown("SELECT a + b AS total, total * 2 AS twice, -total AS less FROM t")
    assert (
        tree
        == """\
project a + b as total, (a + b) * 2 as twice, -(a + b) as less
  scan t new: a, b"""
    )


def test_a_column_of_the_input_hides_an_alias() -> None:
    tree = shown("SELECT a + 1 AS b, b * 2 AS twice FROM t")
    assert (
        tree
        == """\
project a + 1 as b, b * 2 as twice
  scan t new: a, b"""
    )


def test_stars_can_leave_out_columns() -> None:
    tree = shown("SELECT t.* EXCEPT (arr, m, st), u.* EXCEPT (a) FROM t JOIN u USING (a)")
    assert (
        tree
        == """\
project a, b, c, d, e
  inner join on a = a_1
    scan t new: a, b, c
    scan u new: a as a_1, d, e"""
    )


def test_the_fields_of_a_struct_can_be_spread() -> None:
    tree = shown("SELECT st.* FROM t")
    assert (
        tree
        == """\
project st.x as x, st.y as y
  scan t new: st"""
    )


def test_a_star_inside_a_function_is_spread() -> None:
    tree = shown("SELECT struct(u.*) AS s, count(*) AS n FROM u GROUP BY ALL")
    assert (
        tree
        == """\
project key as s, count as n
  aggregate by key: COUNT(*) as count
    project STRUCT(a, d, e) as key
      scan u new: a, d, e"""
    )


def test_a_column_listed_twice_is_computed_once() -> None:
    tree = shown("SELECT x.p + x.q AS both FROM (SELECT a + 1 AS p, a + 1 AS q FROM t) x")
    assert (
        tree
        == """\
project p + p as both
  project a + 1 as p
    scan t new: a"""
    )


def test_names_of_casts_and_fields_are_those_of_the_column() -> None:
    tree = shown("SELECT CAST(a AS STRING), st.y.z FROM t")
    assert (
        tree
        == """\
project CAST(a AS STRING) as a, st.y.z as z
  scan t new: a, st"""
    )


def test_parameters_of_lambdas_stay_apart_from_columns() -> None:
    tree = shown("SELECT transform(arr, a_1 -> a_1 + u.a) AS plus FROM t, u")
    assert (
        tree
        == """\
project TRANSFORM(arr, a_1 -> a_1 + a_2) as plus
  inner join
    scan t new: arr
    scan u new: a as a_2"""
    )
