"""Settings of the session that fit what is run."""

from __future__ import annotations

import pytest

from trickle.engine import Engine
from trickle.engine.tuning import ALONE_ROWS, LIGHT_ROWS, load_of


@pytest.mark.parametrize(
    "counts, load",
    [
        ([], "light"),
        ([LIGHT_ROWS - 1], "light"),
        ([LIGHT_ROWS - 1, 1], "alone"),
        ([ALONE_ROWS], "small"),
        ([1, None], "small"),
    ],
)
def test_the_load_of_a_plan_is_what_it_reads(counts, load):
    assert load_of(counts) == load


@pytest.mark.portable
def test_settings_are_those_of_the_load_and_afterwards_what_they_were(engine: Engine):
    conf, chosen, default = engine.spark.conf, "spark.sql.shuffle.partitions", "spark.sql.codegen.wholeStage"
    partitions = conf.get(chosen)
    conf.set(chosen, "7")
    try:
        for _ in range(2):
            with engine.tuned("change"):
                for _ in range(2):
                    with engine.tuned("light"):
                        assert (conf.get(chosen), conf.get(default)) == ("1", "false")
                        with engine.tuned("small"):
                            assert (conf.get(chosen), conf.get(default)) == ("1", "true")
                    assert (conf.get(chosen), conf.get(default)) == ("7", "true")
            assert conf.get(chosen) == "7"
            assert conf.get(default, None) is None
            conf.set(chosen, "5")
            with engine.tuned("alone"), engine.tuned("any"):
                assert conf.get(chosen) == "5"
            conf.set(chosen, "7")
    finally:
        conf.set(chosen, str(partitions))


def test_a_plan_for_one_task_has_no_exchange_and_no_broadcast(engine: Engine):
    rows = engine.spark.range(0, 5_000, 1, 8)
    with engine.tuned("alone"):
        for name in ("a", "b", "c"):
            rows.withColumnRenamed("id", name).coalesce(1).createOrReplaceTempView(f"tuning_{name}")
        both = engine.sql(
            "WITH ab AS (SELECT /*+ SHUFFLE_HASH(tuning_a), COALESCE(1) */ * FROM tuning_a JOIN tuning_b ON a = b), "
            "abc AS (SELECT /*+ SHUFFLE_HASH(tuning_c), COALESCE(1) */ a, b FROM ab LEFT SEMI JOIN tuning_c ON b = c), "
            "twice AS (SELECT a FROM abc UNION ALL SELECT c FROM tuning_c) "
            "SELECT a, count(*) AS n FROM twice GROUP BY a"
        )
        with engine.count_jobs() as count:
            assert both.limit(10_000).toArrow().num_rows == 5_000
    for name in ("a", "b", "c"):
        engine.spark.catalog.dropTempView(f"tuning_{name}")
    assert count.jobs in (1, None)
