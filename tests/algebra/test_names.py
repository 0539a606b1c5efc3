"""Names: one or two parts, compared without case, quoted so that nothing in them is code."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlglot import exp, parse_one

from trickle.algebra.names import TableName, check_columns, nearest, quote
from trickle.errors import InvalidName

HOSTILE = [
    "a`b",
    "a;DROP TABLE t",
    "a'b",
    'a"b',
    "a.b",
    "größe",
    "表",
    "a b",
    "--a",
    "/*a",
    "${x}",
    "%s",
    "../up",
    "{x}",
]


@given(st.text(st.characters(exclude_categories=("Cc", "Cs")), min_size=1))
def test_quoting_keeps_any_identifier_whole(identifier: str) -> None:
    parsed = parse_one(f"SELECT * FROM {quote(identifier)}", dialect="spark").find(exp.Table)
    assert parsed is not None
    assert parsed.name == identifier


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_are_names(name: str) -> None:
    assert TableName.of([name]).quoted == f"`default`.{quote(name)}"


def test_the_default_schema_may_be_left_out() -> None:
    assert TableName.of(["orders"]) == TableName.of(["default", "orders"])
    assert str(TableName.of(["default", "orders"])) == "orders"
    assert str(TableName.of(["Sales", "big orders"])) == "Sales.`big orders`"


def test_case_is_kept_for_display_and_ignored_in_comparison() -> None:
    small, large = TableName.of(["sales", "orders"]), TableName.of(["SALES", "Orders"])
    assert small == large
    assert len({small, large}) == 1
    assert str(large) == "SALES.Orders"


def test_names_are_ordered_by_schema_and_table() -> None:
    names = [TableName.of(p) for p in (["b", "a"], ["a", "B"], ["A", "a"])]
    assert [str(n) for n in sorted(names)] == ["A.a", "a.B", "b.a"]


@pytest.mark.parametrize(
    "parts, complaint",
    [
        ([], "one or two parts, not 0"),
        (["a", "b", "c"], "one or two parts, not 3"),
        ([""], "empty table name"),
        (["  "], "empty table name"),
        (["", "t"], "empty schema name"),
        (["t\n"], "control character"),
        (["t\0"], "control character"),
        (["\ud800"], "control character"),
        (["__Trickle_x"], "reserved"),
        (["x" * 129], "too long"),
    ],
)
def test_a_name_that_cannot_be_stored_is_refused(parts: list[str], complaint: str) -> None:
    with pytest.raises(InvalidName, match=complaint):
        TableName.of(parts)


def test_system_views_are_known_by_their_schema() -> None:
    assert TableName.of(["Trickle", "status"]).is_system
    assert not TableName.of(["trickle"]).is_system


def test_good_columns_pass() -> None:
    check_columns(["id", "größe", "a`b", "a.b", "x" * 128])


@pytest.mark.parametrize(
    "column", ["a b", "a,b", "a;b", "a{", "a}", "a(", "a)", "a=b", "a\tb", "a\nb", "", "__trickle_w"]
)
def test_columns_that_delta_cannot_hold_are_refused(column: str) -> None:
    with pytest.raises(InvalidName):
        check_columns(["id", column])


def test_two_columns_may_not_differ_in_case_only() -> None:
    with pytest.raises(InvalidName, match="'ID' is there twice"):
        check_columns(["id", "ID"])


def test_the_nearest_name_is_found_without_regard_to_case() -> None:
    assert nearest("ORDRES", ["customers", "Orders"]) == "Orders"
    assert nearest("zzz", ["customers", "orders"]) is None
    assert nearest("x", []) is None
