from __future__ import annotations

import json

import pytest

from trickle.cli.failures import RefreshesFailed, StatementFailed, problem_of, report
from trickle.errors import CatalogUnreachable, ParseError, QueryError, UnknownTable, was_interrupted

Told = pytest.CaptureFixture[str]
WRONG = UnknownTable("no table is called ordres", detail="looked everywhere", hint="did you mean orders?")


def test_an_error_is_told_in_lines(capsys: Told) -> None:
    assert report(WRONG, as_json=False) == 2
    assert capsys.readouterr().err.splitlines() == [
        "error: no table is called ordres [UNKNOWN_TABLE]",
        "detail: looked everywhere",
        "hint: did you mean orders?",
    ]


def test_an_error_is_told_as_json(capsys: Told) -> None:
    assert report(CatalogUnreachable("no answer"), as_json=True) == 4
    told = capsys.readouterr()
    assert told.out == ""
    assert json.loads(told.err) == {
        "error": {"code": "CATALOG_UNREACHABLE", "message": "no answer", "detail": None, "hint": None}
    }


def test_one_of_several_statements_is_named() -> None:
    problem = problem_of(StatementFailed(2, 3, 14, ParseError("unexpected word")))
    assert problem.message == "statement 2 of 3 (line 14): unexpected word"
    assert problem.as_json()["statement"] == 2
    assert problem.exit_code == 2


def test_failed_refreshes_are_counted_and_named() -> None:
    problem = problem_of(RefreshesFailed({"a": "no [X]", "b": "never [Y]"}, of=5))
    assert (problem.message, problem.detail) == ("refreshes failed: 2 of 5", "a: no [X]; b: never [Y]")
    assert (problem.code, problem.hint, problem.exit_code) == ("REFRESH_FAILED", "trickle why a", 3)


def test_a_defect_is_one_line_and_a_way_to_learn_more(capsys: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    defect = ValueError("first line\nsecond line")
    assert report(defect, as_json=False) == 70
    assert capsys.readouterr().err.splitlines() == [
        "internal error: ValueError: first line",
        "hint: run again with TRICKLE_DEBUG=1 to see where it happened",
    ]
    monkeypatch.setenv("TRICKLE_DEBUG", "1")
    try:
        raise defect
    except ValueError as error:
        report(error, as_json=False)
    assert "Traceback" in capsys.readouterr().err


def test_an_interrupt_is_found_behind_the_error_that_it_caused() -> None:
    """Spark answers Ctrl-C by cancelling its jobs, and the cancelled job is the error that arrives."""
    assert not was_interrupted(WRONG)
    with pytest.raises(StatementFailed) as caught:
        try:
            try:
                raise KeyboardInterrupt
            finally:
                raise QueryError("job 0 cancelled")
        except QueryError as error:
            raise StatementFailed(1, 2, 1, error) from None
    assert was_interrupted(caught.value)
