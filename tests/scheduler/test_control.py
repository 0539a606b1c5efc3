"""What people tell the scheduler and ask of it: no Spark."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import trickle
from bench.resting import add_resting
from trickle.algebra.names import TableName
from trickle.api import Trickle
from trickle.catalog import relations, streams
from trickle.catalog.records import Dependency, Kind, RefreshMode
from trickle.errors import InvalidOption, UnknownTable
from trickle.scheduler import control, graph
from trickle.testing import FakeClock


@pytest.fixture
def t(tmp_path: Path, clock: FakeClock) -> Iterator[Trickle]:
    """Two resting stream tables over one source, and one that joins them: a diamond."""
    with trickle.connect(tmp_path / "wh", clock=clock) as opened:
        add_resting(opened, tables=2, sources=1)
        with opened.warehouse.catalog.write() as tx:
            top = relations.add(
                tx, name=TableName.of(["top"]), kind=Kind.STREAM_TABLE, uid="top", location="./top", now=clock.now()
            )
            given = {"schedule": "calculated", "refresh_mode": RefreshMode.AUTO, "options": {}, "always_refresh": False}
            streams.add(tx, top.id, query="SELECT 1", now=clock.now(), **given)  # type: ignore[arg-type]  # as above
            relations.set_dependencies(tx, top.id, [Dependency(top.id, source, Kind.STREAM_TABLE) for source in (2, 3)])
        yield opened
        assert not opened.warehouse.engine.started


def test_a_pause_keeps_who_and_why(t: Trickle) -> None:
    row = control.pause_all(t.warehouse, "night", by="ada")
    assert (row.state, row.paused_by, row.pause_reason) == ("PAUSED", "ada", "night")
    assert control.pause_all(t.warehouse, "day", by="bob").paused_by == "ada"
    assert control.resume_all(t.warehouse).state == "STOPPED"


def test_workers_as_the_settings_have_them(t: Trickle) -> None:
    assert control.worker_pool_status(t.warehouse).workers == 4
    t.sql("SET trickle.parallel_refresh_mode = off")
    row = control.worker_pool_status(t.warehouse)
    assert (row.workers, row.idle, row.busy, row.queued) == (1, 1, 0, 0)


def test_a_diamond_is_shown_with_its_members(t: Trickle) -> None:
    rows = graph.diamond_groups(t.warehouse)
    assert [(row.diamond, row.member, row.is_convergence) for row in rows] == [
        ("top", "resting_0", False),
        ("top", "resting_1", False),
        ("top", "top", True),
    ]
    assert {(row.shared_sources, row.consistency, row.schedule_policy) for row in rows} == {
        ("source_0", "atomic", "fastest")
    }
    assert graph.scc_status(t.warehouse) == []


def test_the_tree_of_what_a_table_depends_on(t: Trickle) -> None:
    assert [row.line for row in graph.dependency_tree(t.warehouse, TableName.of(["top"]))] == [
        "top",
        "├── resting_0",
        "│   └── source_0",
        "└── resting_1",
        "    └── source_0",
    ]
    assert graph.dependency_tree(t.warehouse)[0].name == "top", "without a name: from what nothing reads"
    with pytest.raises(UnknownTable):
        graph.dependency_tree(t.warehouse, TableName.of(["nothing"]))


def test_the_graph_as_a_drawing(t: Trickle) -> None:
    assert graph.explain_dag(t.warehouse).startswith("flowchart LR")
    assert '"top"' in graph.explain_dag(t.warehouse, "dot")
    with pytest.raises(InvalidOption, match="no format 'png'"):
        graph.explain_dag(t.warehouse, "png")


def test_declared_groups_come_and_go(t: Trickle) -> None:
    row = control.create_refresh_group(t.warehouse, "Both", "resting_0, resting_1", "repeatable read")
    assert (row.name, row.isolation, row.members) == ("Both", "REPEATABLE_READ", "resting_0, resting_1")
    with pytest.raises(InvalidOption, match="is in the refresh group 'Both' already"):
        control.create_refresh_group(t.warehouse, "other", ["resting_0", "top"])
    control.drop_refresh_group(t.warehouse, "both")
    assert control.refresh_groups(t.warehouse) == []
