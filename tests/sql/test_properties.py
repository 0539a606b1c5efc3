"""What holds for all texts."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlglot.tokenizer_core import Token

from trickle.algebra.names import TableName, quote
from trickle.errors import TrickleError
from trickle.sql import parse, query, split
from trickle.sql.tokens import read_source

NAMES = st.sampled_from(["a", "B", "orders", "`x y`", "`q``t`", "größe", "s.a", "S . `t.u`", "/* c */ default.a"])
ALIASES = st.sampled_from(["", " x", " AS y", " AS `z w`", " AS v(k)"])
GAPS = st.sampled_from([" ", "\n", "  ", " /* FROM no /* é */ */ ", " -- FROM no\n"])
VALUES = st.sampled_from(
    ["1", "a.k", "'FROM t; --'", "f(k, 2)", "CASE WHEN k THEN 1 END", "10L", "`日`", "date(k)", "k[0]"]
)


@st.composite
def _select(draw: st.DrawFn, queries: st.SearchStrategy[str]) -> str:
    gap = draw(GAPS)
    relations = st.one_of(
        st.builds("{}{}".format, NAMES, ALIASES),
        st.builds("({}) q".format, queries),
        st.sampled_from(["range(3)", "VALUES (1) w(k)", "explode(array(1)) e"]),
    )
    tables = draw(st.lists(relations, min_size=1, max_size=3))
    join = draw(st.sampled_from([", ", " JOIN ", " LEFT JOIN ", " CROSS JOIN "]))
    text = f"SELECT{gap}{draw(VALUES)}{gap}FROM{gap}{join.join(tables)}"
    if draw(st.booleans()):
        text += f"{gap}WHERE{gap}{draw(VALUES)} IN ({draw(queries)})"
    return text


def _larger(queries: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        _select(queries),
        st.builds("{} UNION ALL {}".format, queries, _select(queries)),
        st.builds("WITH a AS ({}), c AS ({}) SELECT * FROM a, c, b".format, queries, queries),
        st.builds("({})".format, queries),
    )


QUERIES = st.recursive(
    st.sampled_from(["SELECT 1", "TABLE orders", "SELECT * FROM s.a", "VALUES (1)"]), _larger, max_leaves=6
)


def _spelled(text: str) -> list[tuple[str, str]]:
    return [(token.token_type.name, token.text) for token in read_source(text).tokens]


def _is_inside(token: Token, start: int, end: int) -> bool:
    return start <= token.start and token.end < end


@given(QUERIES)
def test_binding_changes_nothing_but_the_references(text: str) -> None:
    found = query(text)
    bound = found.bind(lambda name: f"view of {name}")
    kept = [
        (token.token_type.name, token.text)
        for token in read_source(found.text).tokens
        if not any(_is_inside(token, ref.start, ref.end) for ref in found.refs)
    ]
    added: list[tuple[str, str]] = []
    for ref in found.refs:
        added.append(("IDENTIFIER", f"view of {ref.name}"))
        if ref.alias_needed:
            added += [("ALIAS", "AS"), ("IDENTIFIER", ref.name.table)]
    assert sorted(_spelled(bound)) == sorted(kept + added)


@given(QUERIES)
def test_a_bound_query_reads_the_views_and_nothing_else(text: str) -> None:
    found = query(text)
    again = query(found.bind(lambda name: f"{name.schema_key}/{name.table_key}"))
    views = [TableName.of([f"{ref.name.schema_key}/{ref.name.table_key}"]) for ref in found.refs]
    assert [ref.name for ref in again.refs] == views
    assert not any(ref.alias_needed for ref in again.refs)


@given(QUERIES)
def test_references_are_names_in_the_text(text: str) -> None:
    for ref in query(text).refs:
        spelled = ref.name.table if ref.name.table.isalnum() else quote(ref.name.table)
        assert query(text).text[ref.start : ref.end].endswith(spelled)


@given(st.lists(QUERIES, max_size=4), st.sampled_from([";", " ; ", ";;", ";\n-- ; \n"]))
def test_pieces_are_the_statements_that_were_joined(texts: list[str], separator: str) -> None:
    whole = separator.join(texts)
    pieces = split(whole)
    assert [_spelled(piece.text) for piece in pieces] == [_spelled(text) for text in texts]
    assert all(whole.startswith(piece.text, piece.offset) for piece in pieces)


KEYWORDS = """
    SELECT FROM WHERE GROUP BY ORDER LIMIT JOIN LEFT ON USING AS WITH RECURSIVE UNION ALL VALUES TABLE IN EXISTS NOT AND
    CASE WHEN THEN END CAST INT DATE STRUCT MAP INTERVAL NULL BETWEEN IS OVER LATERAL VIEW PIVOT FOR TABLESAMPLE VERSION
    TIMESTAMP OF CREATE REPLACE STREAM MATERIALIZED IF INSERT INTO UPDATE SET DELETE MERGE MATCHED TRUNCATE DROP ALTER
    ADD COLUMN RENAME TO TYPE TBLPROPERTIES DESCRIBE SHOW TABLES CALL EXPLAIN REFRESH PRIMARY KEY PARTITIONED
"""
OTHERS = """
    trickle.x a t s.t s.t.c `x` `a``b` 'str' "dq" 1 2.5 10L x'1F' ( ) ( ) , . ; = => -> :: + - * / < > <> || [ ] { }
    @ : ? $ ! ~ % & | ^ # -- /* */ /*+ é \\ ' " ` rand() |>
"""
WORDS = [*KEYWORDS.split(), *OTHERS.split()]
HEADS = st.sampled_from(
    ["", "SELECT", "SELECT * FROM", "WITH a AS (", "CREATE TABLE t (", "MERGE INTO t USING u ON", "UPDATE t SET a =",
     "DELETE FROM t WHERE", "INSERT INTO t", "CREATE STREAM TABLE s AS", "ALTER TABLE t", "CALL trickle.f("]
)  # fmt: skip
SOUP = st.builds(
    lambda head, words, gap: head + " " + gap.join(words),
    HEADS,
    st.lists(st.sampled_from(WORDS), max_size=16),
    st.sampled_from([" ", "", "\n"]),
)


@pytest.mark.parametrize("read", [parse, query, split])
@given(text=st.one_of(SOUP, st.text(max_size=60), st.text("SELECTFROM abc'\"`;-/*()\\\0\n", max_size=60)))
@settings(max_examples=400)
def test_any_text_is_read_or_refused(read: Callable[[str], object], text: str) -> None:
    with contextlib.suppress(TrickleError):
        read(text)
