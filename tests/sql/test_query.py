"""A query is one SELECT-like statement."""

from __future__ import annotations

import contextlib
import logging
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from trickle.errors import ParseError, SetupError, UnsupportedQuery
from trickle.sql import query, trees

NESTED = {
    "parentheses": ("(", ")", "1"),
    "calls": ("f(", ")", "1"),
    "structs": ("struct(", ")", "1"),
    "dates": ("date(", ")", "1"),
    "cases": ("CASE WHEN a THEN 1 ELSE ", " END", "1"),
    "scalar subqueries": ("(SELECT ", ")", "1"),
    "subqueries": ("(SELECT * FROM ", ")", "t"),
    "brackets": ("array[", "]", "1"),
    "lambdas": ("transform(a, x -> ", ")", "1"),
    "prefixes": ("- ", "", "1"),
}


def nested(shape: str, depth: int) -> str:
    opening, closing, inner = NESTED[shape]
    return "SELECT " + opening * depth + inner + closing * depth


@pytest.mark.parametrize("text", ["", " ", "-- x", ";"])
def test_an_empty_query_is_refused(text: str) -> None:
    with pytest.raises(ParseError, match="empty"):
        query(text)


@pytest.mark.parametrize(
    "text", ["DROP TABLE t", "selec 1", "EXPLAIN SELECT 1", "'x'", "1 + 1", "FROM a INSERT INTO b SELECT 1"]
)
def test_other_statements_are_no_query(text: str) -> None:
    with pytest.raises(ParseError, match="a query is expected"):
        query(text)


def test_one_query_only() -> None:
    assert query("SELECT 1 ; ;").text == "SELECT 1"
    with pytest.raises(ParseError, match="one query"):
        query("SELECT 1; SELECT 2")


def test_the_text_stays_as_typed() -> None:
    text = "select  A,b -- why\n\n from\tT where X  =  'y' /* z */ and 1=1"
    assert query(f"  {text}  ; -- end").text == text


@pytest.mark.parametrize("shape", NESTED)
def test_nesting_up_to_the_limit(shape: str) -> None:
    query(nested(shape, 64))
    with pytest.raises(UnsupportedQuery, match="nested too deeply") as caught:
        query(nested(shape, 65))
    assert caught.value.detail is not None
    assert "65" in caught.value.detail
    assert "64" in caught.value.detail
    assert caught.value.hint is not None
    assert "max_parse_depth" in caught.value.hint


@pytest.mark.parametrize("shape", NESTED)
def test_the_highest_limit_of_the_setting_can_be_reached(shape: str) -> None:
    query(nested(shape, 200), max_depth=200)


def test_a_low_limit() -> None:
    query("SELECT (1)", max_depth=1)
    with pytest.raises(UnsupportedQuery):
        query("SELECT ((1))", max_depth=1)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT CAST(x AS " + "ARRAY<" * 5000 + "INT" + ">" * 5000 + ")",
        "SELECT " + "INTERVAL " * 5000 + "1",
        "SELECT " + "array " * 5000,
    ],
)
def test_recursion_that_tokens_do_not_show_is_refused_too(text: str) -> None:
    with pytest.raises(UnsupportedQuery, match="nested too deeply"):
        query(text)


@pytest.mark.parametrize("opening, closing", [("UNION(", ")"), ("IF[", "]"), ("NULL [", "]")])
def test_nonsense_that_could_be_read_in_many_ways_is_given_up(opening: str, closing: str) -> None:
    with pytest.raises(UnsupportedQuery, match="nested too deeply"):
        query("SELECT " + opening * 40 + "1" + closing * 40)


@pytest.mark.parametrize("function", ["sort_array", "zeroifnull", "nvl2", "trunc", "date_format"])
def test_functions_of_functions_are_read_once(function: str) -> None:
    query("SELECT " + f"{function}(a, " * 60 + "1" + ")" * 60)


def test_the_recursion_limit_is_put_back() -> None:
    before = sys.getrecursionlimit()
    texts = [nested(shape, 60) for shape in NESTED] + ["SELECT ("]
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(_try, texts * 5))
    assert sys.getrecursionlimit() == before


def _try(text: str) -> None:
    with contextlib.suppress(ParseError):
        query(text)


def test_sqlglot_does_not_log_while_trickle_reads(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        query("SELECT get_json_object(a, '$[2.5') FROM t")
    assert caplog.records == []


def test_sqlglot_may_log_for_others(caplog: pytest.LogCaptureFixture) -> None:
    import sqlglot

    query("SELECT 1")
    sqlglot.parse_one("SELECT get_json_object(a, '$[2.5') FROM t", dialect="spark")
    assert caplog.records


def test_a_compiled_sqlglot_is_named_as_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    def compiled(_: int) -> None:
        raise TypeError("interpreted classes cannot inherit from compiled")

    monkeypatch.setattr(trees, "_Parser", compiled)
    with pytest.raises(SetupError, match="compiled form") as caught:
        query("SELECT x FROM a")
    assert caught.value.hint == "pip uninstall sqlglotc"
