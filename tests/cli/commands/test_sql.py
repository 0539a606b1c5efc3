from __future__ import annotations

import json

from tests.cli.runner import Cli


def test_one_statement_is_one_document(shop: Cli) -> None:
    assert shop.document("sql", "SELECT COUNT(*) AS n FROM orders") == [{"n": 3}]
    assert shop.document("sql", "DELETE FROM orders WHERE id = 3")["rows_deleted"] == 1
    assert shop.document("sql", "CREATE TABLE x (n INT)") == {"message": "table x created"}
    assert shop.document("sql", "REFRESH STREAM TABLE grand")["name"] == "grand"
    assert shop.document("sql", "") == []


def test_several_statements_are_one_array(shop: Cli) -> None:
    assert shop.document("sql", "SELECT 1 AS a; SELECT 2 AS b") == [[{"a": 1}], [{"b": 2}]]


def test_a_failure_keeps_what_was_done_and_names_the_statement(shop: Cli) -> None:
    ran = shop("sql", "SELECT 1 AS a;\nSELECT nope FROM orders;\nSELECT 3", "--json")
    assert ran.code == 2
    assert ran.document == [[{"a": 1}]]
    assert (ran.error["code"], ran.error["statement"]) == ("UNKNOWN_COLUMN", 2)
    plain = shop("sql", "SELECT 1 AS a;\nSELECT nope FROM orders;\nSELECT 3")
    assert plain.err.startswith("error: statement 2 of 3 (line 2): unknown column nope")
    assert "1 row" in plain.out


def test_sql_that_is_broken_is_placed(cli: Cli) -> None:
    ran = cli("sql", "SELECT 'never ends", "--json")
    assert ran.code == 2
    assert ran.out == ""
    assert ran.error["code"] == "PARSE_ERROR"
    assert "unterminated string" in ran.error["message"]


def test_rows_are_cut_at_the_limit(shop: Cli) -> None:
    ran = shop("sql", "SELECT id FROM range(1000)", "--limit", "5", "--json")
    assert ran.document == [{"id": i} for i in range(5)]
    assert ran.err == "only the first 5 rows are printed; --limit 0 prints all\n"
    assert len(json.loads(shop("sql", "SELECT id FROM range(1000)", "--json").out)) == 100
