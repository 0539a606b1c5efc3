"""System views hold the rows of the Python functions of the same name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

import pytest

from tests.scenarios.story import ask, refused
from trickle.api import PROCEDURES, Trickle
from trickle.errors import InvalidName, QueryError, UnsupportedQuery
from trickle.tables.system import SYSTEM_VIEWS


@pytest.mark.portable
def test_every_system_view_equals_its_python_function(t: Trickle) -> None:
    t.sql("CREATE TABLE a (x INT) COMMENT 'ours'; INSERT INTO a VALUES (0); CREATE VIEW v AS SELECT x FROM a")
    t.sql("CREATE STREAM TABLE s WITH (schedule = '5s', tier = 'hot') AS SELECT 1 / (x + 1) AS y FROM v")
    t.sql("UPDATE a SET x = -1")
    with pytest.raises(QueryError):
        t.refresh_stream_table("s")
    python: dict[str, Callable[[], Sequence[Any]]] = {
        "alerts": t.alerts,
        "dependencies": t.dependencies,
        "refresh_history": t.refresh_history,
        "settings": t.settings,
        "stream_tables": t.status,
        "tables": t.tables,
    }
    assert set(python) == set(SYSTEM_VIEWS)
    for name, rows in python.items():
        expected = [asdict(row) for row in rows()]
        assert expected, name
        found = t.table(f"trickle.{name}").toArrow().to_pylist()
        assert found == expected


def test_an_empty_system_view_keeps_its_columns(t: Trickle) -> None:
    assert ask(t, "SELECT name, started_at, duration_ms FROM trickle.refresh_history") == []


def test_system_views_are_read_only_and_no_source(t: Trickle) -> None:
    for text in ("INSERT INTO trickle.tables VALUES (1)", "DROP TABLE trickle.tables", "DELETE FROM trickle.tables"):
        refused(t, text, InvalidName, "trickle")
    refused(t, "CREATE STREAM TABLE s AS SELECT * FROM trickle.tables", UnsupportedQuery, "cannot read system views")


def test_procedures_are_methods_that_say_what_they_do() -> None:
    for name in PROCEDURES:
        assert getattr(Trickle, name).__doc__, name
    assert list(PROCEDURES) == sorted(PROCEDURES)
