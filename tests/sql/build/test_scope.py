from __future__ import annotations

from tests.sql.build.given import shown


def test_a_table_answers_to_its_name_with_and_without_its_schema() -> None:
    tree = shown(
        "SELECT Sales.Orders.ID, orders.amount, o.id AS other FROM sales.orders JOIN sales.orders o ON o.id = orders.id"
    )
    assert (
        tree
        == """\
project Id as ID, Amount as amount, Id_1 as other
  inner join on Id_1 = Id
    scan Sales.Orders new: Id, Amount
    scan Sales.Orders new: Id as Id_1"""
    )


def test_a_dotted_name_is_a_table_before_it_is_a_struct() -> None:
    tree = shown("SELECT st.x, t.st.y.z, ST.y FROM t")
    assert (
        tree
        == """\
project st.x as x, st.y.z as z, st.y as y
  scan t new: st"""
    )


def test_a_name_of_two_parts_is_a_field_when_no_table_is_called_so() -> None:
    tree = shown("SELECT m.k, st.y.z FROM t m0")
    assert (
        tree
        == """\
project m.k as k, st.y.z as z
  scan t new: m, st"""
    )


def test_an_unknown_name_is_looked_up_outside() -> None:
    tree = shown("SELECT a FROM t WHERE EXISTS (SELECT 1 FROM u WHERE e = c AND u.a = b)")
    assert (
        tree
        == """\
project a
  apply semi
    scan t new: a, b, c
    project 1 as literal
      filter e = c AND a_1 = b
        scan u new: a as a_1, e"""
    )


def test_a_column_inside_hides_the_one_outside() -> None:
    tree = shown("SELECT a FROM t WHERE EXISTS (SELECT 1 FROM u WHERE a > 0)")
    assert (
        tree
        == """\
project a
  apply semi
    scan t new: a
    project 1 as literal
      filter a_1 > 0
        scan u new: a as a_1"""
    )
