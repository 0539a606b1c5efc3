from __future__ import annotations

import pytest

from tests.scenarios.fixtures import t as t
from trickle.api import Trickle
from trickle.cli.failures import StatementFailed
from trickle.cli.page import Page, Record
from trickle.cli.running import run_text
from trickle.errors import ParseError, UnknownTable


def test_every_statement_has_its_result(t: Trickle) -> None:
    made, filled, rows, shown = run_text(
        t, "CREATE TABLE a (n INT); INSERT INTO a VALUES (1), (2); SELECT n FROM a ORDER BY n; SHOW TABLES", 1
    )
    assert made == Record({"message": "table a created"}, "table a created")
    assert isinstance(filled, Record)
    assert (filled.values["rows_inserted"], filled.values["rows_deleted"]) == (2, 0)
    assert rows == Page(("n",), ((1,),), more=True)
    assert shown == Page(("schema", "name", "kind"), (("default", "a", "TABLE"),))


def test_the_first_error_ends_it_and_is_placed(t: Trickle) -> None:
    results = run_text(t, "SELECT 1 AS one;\n\nSELECT * FROM missing;\nCREATE TABLE never (n INT)", 10)
    assert next(results) == Page(("one",), ((1,),))
    with pytest.raises(StatementFailed) as failed:
        next(results)
    assert (failed.value.number, failed.value.of, failed.value.line) == (2, 3, 3)
    assert isinstance(failed.value.cause, UnknownTable)
    assert t.tables() == []


def test_nothing_runs_when_a_later_statement_cannot_be_parsed(t: Trickle) -> None:
    with pytest.raises(ParseError):
        list(run_text(t, "CREATE TABLE a (n INT); CREATE TABLE (", 10))
    assert t.tables() == []


def test_a_limit_of_zero_shows_everything(t: Trickle) -> None:
    (page,) = run_text(t, "SELECT id FROM range(250)", 0)
    assert isinstance(page, Page)
    assert (len(page.rows), page.more) == (250, False)


def test_values_of_every_type_arrive(t: Trickle) -> None:
    (page,) = run_text(
        t,
        """SELECT map(1, array('x')) AS m, named_struct('a', X'0A') AS s, CAST(1.50 AS DECIMAL(38, 18)) AS d,
                  TIMESTAMP_NTZ'2024-02-29 12:00:00' AS ntz, INTERVAL '1' DAY AS i, DATE'9999-12-31' AS far,
                  CAST('NaN' AS DOUBLE) AS nan, 1 AS twice, 2 AS twice, timestamp'+12024-01-01 00:00:00' AS later""",
        10,
    )
    assert page.as_json() == [
        {
            "m": {"1": ["x"]},
            "s": {"a": "Cg=="},
            "d": "1.500000000000000000",
            "ntz": "2024-02-29T12:00:00",
            "i": "1 day, 0:00:00",
            "far": "9999-12-31",
            "nan": "NaN",
            "twice": 1,
            "twice_2": 2,
            "later": "12024-01-01 00:00:00.000000Z",
        }
    ]
