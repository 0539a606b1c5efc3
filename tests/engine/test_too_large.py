"""Rows that are larger than what Spark hands to the driver are left to Spark: asked of a Spark with a small limit."""

from __future__ import annotations

import subprocess
import sys

CHILD = """
from trickle.engine import Engine
from trickle.engine.place import Master

WIDE = "SELECT id, repeat(uuid(), 100) AS s FROM range(5000)"
engine = Engine(Master(master="local[1]", config={"spark.driver.maxResultSize": "1m"}))


def collected(text):
    return engine.collect_few(lambda most: engine.sql(text, most=most), 10, load="any")


print(engine.collect_few(lambda most: engine.sql(WIDE, most=most), 10_000, load="any"))
print(collected("SELECT id FROM range(11)"))
print(collected("SELECT id FROM range(1000000000000)"))
print(collected("SELECT make_ym_interval(1, 2) AS months"))
rows, types = collected("SELECT id FROM range(10) -- of ten")
print(rows.num_rows, types.simpleString())
engine.close()
"""


def test_what_is_too_large_or_too_many_is_not_collected() -> None:
    ended = subprocess.run([sys.executable, "-c", CHILD], capture_output=True, text=True, check=False, timeout=300)
    assert ended.stdout.split() == ["Left.MANY", "Left.MANY", "Left.MANY", "Left.UNFIT", "10", "struct<id:bigint>"], (
        ended.stderr[-2000:]
    )
