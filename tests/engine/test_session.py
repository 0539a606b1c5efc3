"""The engine's life: lazy start, sharing, taking a session, closing."""

from __future__ import annotations

import threading

import pytest
from pyspark.sql import SparkSession

from trickle.engine import Engine
from trickle.errors import SparkUnavailable, UnknownTable


@pytest.mark.parametrize(
    "place, kind", [(None, "classic"), ("local[2]", "classic"), ("sc://host", "connect"), ("remote:local", "connect")]
)
def test_opening_starts_nothing_and_knows_the_kind(place: str | None, kind: str) -> None:
    engine = Engine.open(place)
    assert engine.kind == kind
    assert not engine.started
    engine.close()


def test_two_engines_share_the_session_and_closing_one_leaves_it_to_the_other(engine: Engine) -> None:
    other = Engine.open()
    assert other.spark is engine.spark
    other.close()
    assert engine.sql("SELECT 1 AS one").collect() == [(1,)]


def test_threads_that_start_together_get_one_session(engine: Engine) -> None:
    other = Engine.open()
    found: list[SparkSession] = []
    together = threading.Barrier(4, timeout=30)

    def ask() -> None:
        together.wait()
        found.append(other.spark)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4
    assert {id(session) for session in found} == {id(engine.spark)}
    other.close()


def test_another_master_in_the_same_process_is_refused(engine: Engine) -> None:
    _ = engine.spark
    with pytest.raises(SparkUnavailable, match=r"runs Spark on local\[2\] already"):
        _ = Engine.open("local[1]").spark


@pytest.mark.portable
def test_a_given_session_is_used_and_never_stopped(spark: SparkSession, kind: str) -> None:
    taken = Engine.open(spark)
    assert taken.started
    assert taken.spark is spark
    assert taken.kind == ("connect" if kind == "connect" else "classic")
    taken.close()
    assert spark.sql("SELECT 1 AS one").collect() == [(1,)]


def test_a_given_session_gets_what_results_need_and_the_config(spark: SparkSession) -> None:
    own = spark.newSession()
    own.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    own.conf.set("spark.sql.shuffle.partitions", "7")
    Engine.open(own, config={"spark.sql.autoBroadcastJoinThreshold": "-1", "spark.driver.memory": "9g"}).close()
    assert own.conf.get("spark.sql.session.timeZone") == "UTC"
    assert own.conf.get("spark.sql.autoBroadcastJoinThreshold") == "-1"
    assert own.conf.get("spark.sql.shuffle.partitions") == "7"
    assert own.conf.get("spark.driver.memory", "not set") != "9g"


def test_a_closed_engine_says_so() -> None:
    engine = Engine.open()
    engine.close()
    engine.close()
    with pytest.raises(SparkUnavailable, match="the engine is closed"):
        _ = engine.spark


@pytest.mark.portable
def test_a_temporary_view_has_a_name_of_its_own_and_ends_with_its_block(engine: Engine) -> None:
    with engine.temp_view(engine.sql("SELECT 1 AS n")) as one, engine.temp_view(engine.sql("SELECT 2 AS n")) as two:
        assert engine.sql(f"SELECT * FROM {one} UNION ALL SELECT * FROM {two}").collect() == [(1,), (2,)]
    with pytest.raises(UnknownTable):
        engine.sql(f"SELECT * FROM {one}")


@pytest.mark.portable
def test_the_settings_that_results_need_are_set(spark: SparkSession) -> None:
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
    assert spark.conf.get("spark.sql.parquet.outputTimestampType") == "TIMESTAMP_MICROS"
    assert spark.conf.get("spark.sql.sources.parallelPartitionDiscovery.threshold") == "100000"
    assert spark.conf.get("spark.sql.ansi.enabled") == "true"
