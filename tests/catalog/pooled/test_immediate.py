"""IMMEDIATE stream tables with their catalog behind PgBouncer: two processes write tables that one of them follows."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import trickle
from tests.immediate.lake.checking import agree
from tests.scenarios.story import contents
from trickle.engine import Engine

ROOT = Path(__file__).parents[3]
CHILD = """
import sys, trickle
with trickle.connect(sys.argv[1], catalog=sys.argv[2], spark="local[1]", create=False) as t:
    t.sql("SET trickle.commit_attempts = 50")
    for _ in range(4):
        t.sql("INSERT INTO b VALUES (1)")
"""


@pytest.mark.timeout(600)
def test_two_processes(engine: Engine, url: str, tmp_path: Path) -> None:
    with trickle.connect(tmp_path / "wh", catalog=url, spark=engine.spark) as t:
        t.sql("CREATE TABLE a (x INT); CREATE TABLE b (x INT); SET trickle.commit_attempts = 50")
        both = "SELECT count(*) AS n FROM (SELECT x FROM a UNION ALL SELECT x FROM b)"
        t.create_stream_table("total", both, refresh_mode="IMMEDIATE")
        child = subprocess.Popen([sys.executable, "-c", CHILD, t.warehouse.root.uri, url], cwd=ROOT)
        written = 0
        while child.poll() is None and written < 40:
            t.sql("INSERT INTO a VALUES (1)")
            written += 1
        assert child.wait(timeout=300) == 0
        assert contents(t, "total") == [(written + 4,)]
        agree(t)
        t.alter_stream_table("total", refresh_mode="AUTO")
        t.sql("DELETE FROM a")
        t.refresh_stream_table("total")
        assert contents(t, "total") == [(4,)]
