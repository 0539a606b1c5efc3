"""System views hold the rows of the Python functions of the same name."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.postgres import Postgres
from tests.scenarios.story import ask, refused
from trickle.api import PROCEDURES, Trickle, gating, scheduling
from trickle.errors import Gated, InvalidName, QueryError, UnsupportedQuery
from trickle.tables.system import SYSTEM_VIEWS


@pytest.mark.portable
def test_every_system_view_equals_its_python_function(t: Trickle) -> None:
    t.sql("CREATE TABLE a (x INT) COMMENT 'ours'; INSERT INTO a VALUES (0); CREATE VIEW v AS SELECT x FROM a")
    t.sql("CREATE STREAM TABLE s WITH (schedule = '5s', tier = 'hot') AS SELECT 1 / (x + 1) AS y FROM v")
    t.sql("UPDATE a SET x = -1")
    with pytest.raises(QueryError):
        t.refresh_stream_table("s")
    _compare(
        t,
        {
            "alerts": t.alerts,
            "dependencies": t.dependencies,
            "refresh_history": t.refresh_history,
            "settings": t.settings,
            "stream_tables": t.status,
            "tables": t.tables,
        },
    )


@pytest.mark.portable
def test_every_system_view_of_gates_and_scheduler_equals_its_python_function(t: Trickle) -> None:
    t.sql("CREATE TABLE a (x INT); CREATE TABLE b (x INT); INSERT INTO a VALUES (1)")
    for name in ("left", "right"):
        t.create_stream_table(name, "SELECT x FROM a", fuse="adaptive")
    t.create_stream_table("both", "SELECT l.x FROM left l JOIN right r ON l.x = r.x")
    t.sql("SET trickle.allow_circular = true")
    t.create_stream_table("loop", "SELECT x FROM a")
    t.alter_stream_table("loop", query="SELECT x FROM a UNION SELECT x FROM loop")
    t.sql("INSERT INTO a VALUES (2)")
    t.create_refresh_group("pair", ["left", "right"])
    t.tick(datetime.now(UTC) + timedelta(hours=1))
    t.gate_source("a", by="etl")
    t.advance_watermark("a", "2026-01-31T00:00:00Z")
    t.create_watermark_group("all", ["a", "b"])
    t.register_gate("positive", "SELECT count(*) = 0 FROM inserted WHERE x < 0", tables=["left"])
    _compare(
        t,
        {
            "bootstrap_gate_status": t.bootstrap_gate_status,
            "dependency_tree": t.dependency_tree,
            "diamond_groups": t.diamond_groups,
            "fuse_status": t.fuse_status,
            "gates": t.gates,
            "jobs": t.parallel_job_status,
            "refresh_groups": t.refresh_groups,
            "scc_status": t.scc_status,
            "scheduler_status": lambda: [t.scheduler_status()],
            "source_gates": t.source_gates,
            "watermark_groups": t.watermark_groups,
            "watermark_status": t.watermark_status,
            "watermarks": t.watermarks,
            "worker_pool_status": lambda: [t.worker_pool_status()],
        },
    )


def test_every_system_view_of_what_lies_outside_equals_its_python_function(t: Trickle, postgres: Postgres) -> None:
    with postgres.database() as dsn:
        with psycopg.connect(dsn, autocommit=True) as there:
            there.execute("CREATE TABLE orders (id int PRIMARY KEY); INSERT INTO orders VALUES (1)")
        t.attach_postgres("shop", dsn, tables=["orders"], cdc_mode="trigger")
        t.create_stream_table("copied", "SELECT id FROM shop.orders")
        t.publish("copied", dsn)
        _compare(
            t,
            {
                "cdc_status": t.cdc_status,
                "list_publications": t.list_publications,
                "list_sources": t.list_sources,
            },
        )
        t.unpublish("copied")
        t.detach("shop", cascade=True)


def _compare(t: Trickle, python: dict[str, Callable[[], Sequence[Any]]]) -> None:
    for name, rows in python.items():
        expected = [asdict(row) for row in rows()]
        assert expected, name
        found = t.table(f"trickle.{name}").toArrow().to_pylist()
        assert found == expected


def test_no_system_view_is_forgotten_here() -> None:
    listed = re.findall(r'^ {12,16}"(\w+)": ', Path(__file__).read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(listed) == sorted(SYSTEM_VIEWS)


def test_an_empty_system_view_keeps_its_columns(t: Trickle) -> None:
    assert ask(t, "SELECT name, started_at, duration_ms FROM trickle.refresh_history") == []


def test_system_views_are_read_only_and_no_source(t: Trickle) -> None:
    for text in ("INSERT INTO trickle.tables VALUES (1)", "DROP TABLE trickle.tables", "DELETE FROM trickle.tables"):
        refused(t, text, InvalidName, "trickle")
    refused(t, "CREATE STREAM TABLE s AS SELECT * FROM trickle.tables", UnsupportedQuery, "cannot read system views")


def test_procedures_are_methods_that_say_what_they_do() -> None:
    for name in PROCEDURES:
        assert getattr(Trickle, name).__doc__, name
    for names in (gating.PROCEDURES, scheduling.PROCEDURES):
        assert list(names) == sorted(names)
    assert len(PROCEDURES) == len(set(PROCEDURES))


def test_a_stream_table_that_is_held_back_says_so_until_it_moves(t: Trickle) -> None:
    t.sql("CREATE TABLE a (x INT); INSERT INTO a VALUES (1)")
    t.create_stream_table("s", "SELECT x FROM a")
    assert (t.status()[0].fuse_state, t.status()[0].held_back) == (None, None)
    t.gate_source("a", by="etl")
    t.sql("INSERT INTO a VALUES (2)")
    with pytest.raises(Gated):
        t.refresh_stream_table("s")
    assert str(t.status()[0].held_back).startswith("source_gate: source a is gated by etl")
    t.ungate_source("a")
    t.refresh_stream_table("s")
    assert t.status()[0].held_back is None


def test_changes_that_were_left_out_hold_nothing_back(t: Trickle) -> None:
    t.sql("CREATE TABLE a (x INT); INSERT INTO a VALUES (1)")
    t.create_stream_table("s", "SELECT x FROM a", fuse="fixed", fuse_ceiling=1)
    t.sql("INSERT INTO a VALUES (2), (3)")
    with pytest.raises(Gated):
        t.refresh_stream_table("s")
    assert (t.status()[0].fuse_state, t.status()[0].held_back) == (
        "BLOWN",
        "fuse: delta of 2 changed rows exceeds ceiling 1",
    )
    t.reset_fuse("s", "skip_changes")
    assert (t.status()[0].fuse_state, t.status()[0].held_back) == ("ARMED", None)
