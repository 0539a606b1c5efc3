"""A refresh with nothing to do: the catalog and two look-ups in the log, never Spark."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

from deltalake import DeltaTable, write_deltalake

import trickle
from bench.data import SUMMARY, batch, fill
from bench.figures import Line, timed
from bench.sizes import Sizes
from trickle import Trickle

LIMIT_MS = 10.0


def run(t: Trickle, sizes: Sizes) -> Iterator[Line]:
    """Idle refreshes over a short log, and over one that another writer has made long."""
    fill(t, "idle_source", sizes.table_groups, sizes.table_groups)
    t.create_stream_table("idle_summary", SUMMARY.format(table="idle_source"))
    yield _idle(t, sizes, "short log")

    folder = Path(next(row.location or "" for row in t.tables() if row.name == "idle_source"))
    rows = batch(0, 1, sizes.table_groups)
    while DeltaTable(folder).version() < sizes.log_versions:
        write_deltalake(folder, rows, mode="append")
    t.refresh_stream_table("idle_summary")
    yield _idle(t, sizes, "long log")


def _idle(t: Trickle, sizes: Sizes, what: str) -> Line:
    root = t.warehouse.root.uri
    with trickle.connect(root, create=False) as fresh:
        samples = []
        computing = time.process_time()
        for _ in range(sizes.idle_refreshes):
            took, result = timed(fresh.refresh_stream_table, "idle_summary")
            assert result.action == "NO_DATA", result
            samples.append(took)
        cpu_ms = (time.process_time() - computing) * 1000 / sizes.idle_refreshes
        # The proof that no Spark job ran: this connection never asked for a session.
        assert not fresh.warehouse.engine.started
    version = DeltaTable(Path(root, "default", "idle_source")).version()
    facts = {"log_versions": version, "spark_jobs": 0, "cpu_ms": round(cpu_ms, 1)}
    return Line(f"idle refresh, {what}", tuple(samples), facts, LIMIT_MS)
