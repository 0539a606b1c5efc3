"""Rows that are larger than what Spark hands to the driver are left to Spark: asked of a Spark with a small limit."""

from __future__ import annotations

import subprocess
import sys

CHILD = """
from trickle.engine import Engine
from trickle.engine.place import Master

engine = Engine(Master(master="local[1]", config={"spark.driver.maxResultSize": "1m"}))
wide = engine.sql("SELECT id, repeat(uuid(), 100) AS s FROM range(5000)")
print(engine.collect_few(wide, 10_000, load="any") is None)
print(engine.collect_few(engine.sql("SELECT id FROM range(11)"), 10, load="any") is None)
print(engine.collect_few(engine.sql("SELECT id FROM range(10)"), 10, load="any").num_rows)
engine.close()
"""


def test_what_is_too_large_or_too_many_is_not_collected() -> None:
    ended = subprocess.run([sys.executable, "-c", CHILD], capture_output=True, text=True, check=False, timeout=300)
    assert ended.stdout.split() == ["True", "True", "10"], ended.stderr[-2000:]
