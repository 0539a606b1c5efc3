"""Starting Spark in a process of its own: quiet, tidy, and with one clear message when it cannot."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from trickle.engine import Engine
from trickle.engine.launch import settings
from trickle.errors import SparkUnavailable

QUIET_START = """
from trickle.engine import Engine, spark_errors
from trickle.errors import TrickleError

first, second = Engine.open("local[1]"), Engine.open()
with first.count_jobs() as count:
    first.spark.range(0, 3, 1, 1).collect()
assert count.jobs == 1, "a session that starts inside the block is counted too"
for text in ("SELECT nothing", "SELECT 1 / id FROM range(3)"):
    try:
        with spark_errors():
            first.sql(text).collect()
    except TrickleError:
        pass
first.spark.range(3).createOrReplaceTempView("v")
old = second.spark
first.close()
assert second.spark.range(3).count() == 3, "the other engine still uses it"
second.close()
try:
    with spark_errors():
        old.range(3).count()
except TrickleError as error:
    assert error.code == "SPARK_UNAVAILABLE"
else:
    raise AssertionError("the last engine stops the session")
third = Engine.open("local[1]")
assert third.spark.range(3).count() == 3, "a new session after a stopped one"
third.close()
"""

OWN_SESSION = """
from pyspark import SparkContext
from pyspark.sql import SparkSession
from trickle.engine import Engine, spark_errors
from trickle.errors import SparkUnavailable

own = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
engine = Engine.open()
assert engine.spark is own, "the session that is there is taken"
engine.close()
assert own.range(3).count() == 3, "and never stopped"

engine = Engine.open()
assert engine.spark is own
SparkContext._gateway.proc.kill()
SparkContext._gateway.proc.wait()
try:
    with spark_errors():
        engine.spark.range(3).count()
except SparkUnavailable as error:
    print(error.message)
"""

NO_JAVA = """
import sys
from trickle.engine import Engine
from trickle.errors import TrickleError
try:
    Engine.open().spark
except TrickleError as error:
    sys.exit(str(error))
"""


def run(program: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program],
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


def test_a_session_prints_nothing_leaves_nothing_and_stops_with_its_last_engine(tmp_path: Path) -> None:
    temporary = tmp_path / "tmp"
    folder = tmp_path / "folder"
    temporary.mkdir()
    folder.mkdir()
    ran = run(QUIET_START, folder, TMPDIR=str(temporary))
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")
    assert list(folder.iterdir()) == []
    assert list(temporary.glob("trickle-*")) == []


def test_a_session_of_the_process_is_taken_and_its_death_is_told(tmp_path: Path) -> None:
    ran = run(OWN_SESSION, tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout == "the Spark session has gone away\n"


@pytest.mark.parametrize("environment", [{"PATH": "", "JAVA_HOME": ""}, {"JAVA_HOME": "/nowhere"}])
def test_without_java_there_is_one_message_and_no_traceback(tmp_path: Path, environment: dict[str, str]) -> None:
    ran = run(NO_JAVA, tmp_path, **environment)
    assert ran.returncode == 1
    message, detail, hint = ran.stderr.splitlines()
    assert message == "Spark needs Java 17 or newer [JAVA_MISSING]"
    assert detail.startswith("detail: JAVA_HOME is")
    assert "openjdk-17-jre-headless" in hint


def test_a_connect_server_that_does_not_answer_is_told_at_once() -> None:
    began = time.monotonic()
    with pytest.raises(SparkUnavailable, match=r"no Spark Connect server answers at 127\.0\.0\.1:9"):
        _ = Engine.open("sc://127.0.0.1:9").spark
    assert time.monotonic() - began < 15


def test_a_wrong_setting_is_told_in_our_words(tmp_path: Path) -> None:
    program = NO_JAVA.replace("Engine.open()", 'Engine.open("local[1]", config={"spark.driver.memory": "1 potato"})')
    ran = run(program, tmp_path)
    assert ran.returncode == 1
    assert ran.stderr.startswith("the Spark session cannot be made [SPARK_UNAVAILABLE]")
    assert "Traceback" not in ran.stderr


def test_a_cluster_keeps_its_own_network_and_memory_settings() -> None:
    cluster, local = settings("spark://host:7077"), settings("local[2]")
    only_local = set(local) - set(cluster)
    assert "spark.driver.host" in only_local
    assert "spark.driver.memory" in only_local
    assert set(cluster) < set(local)


def test_reading_more_than_32_files_starts_no_listing_job(engine: Engine, spark: SparkSession, tmp_path: Path) -> None:
    rows = spark.range(0, 40, 1, 40)
    rows.write.parquet(str(tmp_path / "rows"))
    files = sorted(str(f) for f in (tmp_path / "rows").glob("*.parquet"))
    assert len(files) == 40
    with engine.count_jobs() as count:
        read = spark.read.schema("id BIGINT").parquet(*files)
        assert read.schema.names == ["id"]
    assert count.jobs == 0
    assert read.count() == 40
