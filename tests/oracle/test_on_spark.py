"""Random queries under random changes on Spark: fewer than on DuckDB, through all that a refresh goes through."""

from __future__ import annotations

from pathlib import Path

import pytest

import trickle
from tests.scenarios.big import index_all, take_all_for_big, take_changes_for_large
from trickle.engine import Engine
from trickle.testing import check
from trickle.testing.keeping import arrow_table
from trickle.testing.random.cases import case
from trickle.testing.random.choices import Choices

QUERIES = 16
BATCHES = 5


@pytest.mark.timeout(300)
@pytest.mark.parametrize("number", range(QUERIES))
def test_a_random_query_equals_recomputation(
    number: int, engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if number % 4 == 1:
        take_all_for_big(monkeypatch)
    if number % 4 == 2:
        index_all(monkeypatch)
    if number % 4 == 3:
        take_changes_for_large(monkeypatch, hinted=number % 8 == 3)
    given = case(Choices.seeded(900 + number), BATCHES)
    with trickle.connect(tmp_path / "wh", spark=engine.spark) as t:
        for name, columns in given.schemas.items():
            t.sql(f"CREATE TABLE {name} ({', '.join(f'{column} {kind}' for column, kind in columns.items())})")
            t.write(name, arrow_table(columns, given.start[name]))
        t.create_stream_table("s", given.text, refresh_mode="DIFFERENTIAL")
        check(t)
        for batch in given.batches:
            for name, rows in batch.items():
                t.write(name, arrow_table(given.schemas[name], rows), mode="overwrite")
            done = t.refresh_stream_table("s")
            assert done.action in ("DIFFERENTIAL", "NO_DATA"), done.reason
            check(t)
