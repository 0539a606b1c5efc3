"""A refresh that somebody asks for: nothing to do, or what came past Trickle is taken in."""

from __future__ import annotations

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from tests.immediate.lake.checking import agree
from tests.scenarios.story import ask, contents, folder, refused, state, version_of
from trickle.api import Trickle
from trickle.errors import ForeignWrite


@pytest.fixture
def shop(t: Trickle) -> Trickle:
    t.sql("CREATE TABLE orders (id INT, v INT); INSERT INTO orders VALUES (1, 10), (2, 20)")
    t.create_stream_table("total", "SELECT sum(v) AS v FROM orders", refresh_mode="IMMEDIATE")
    t.create_stream_table("half", "SELECT v / 2 AS v FROM total", refresh_mode="IMMEDIATE")
    t.create_stream_table("later", "SELECT max(v) AS v FROM orders")
    return t


def wrote_past(t: Trickle) -> None:
    rows = pa.table({"id": pa.array([3], pa.int32()), "v": pa.array([30], pa.int32())})
    write_deltalake(folder(t, "orders"), rows, mode="append")


def test_there_is_nothing_to_refresh(shop: Trickle) -> None:
    before = len(shop.refresh_history())
    result = shop.refresh_stream_table("half")
    assert (result.action, result.spark_jobs) == ("NO_DATA", 0)
    assert "IMMEDIATE" in result.reason
    assert len(shop.refresh_history()) == before


def test_a_foreign_write_is_not_seen_refused_and_taken_in(shop: Trickle) -> None:
    t = shop
    wrote_past(t)
    assert contents(t, "orders") == [(1, 10), (2, 20)], "readers never see rows before the stream tables do"
    t.refresh_stream_table("later")
    assert contents(t, "later") == [(20,)], "nor does a deferred stream table"
    written = version_of(t, "orders")
    for text in ("INSERT INTO orders VALUES (4, 40)", "UPDATE orders SET v = 0", "TRUNCATE TABLE orders"):
        refused(t, text, ForeignWrite, "somebody else wrote into orders", hint="REFRESH STREAM TABLE")
    assert version_of(t, "orders") == written
    agree(t)
    result = t.refresh_stream_table("half")
    assert result.action == "DIFFERENTIAL"
    assert contents(t, "orders") == [(1, 10), (2, 20), (3, 30)]
    assert (contents(t, "total"), contents(t, "half")) == ([(60,)], [(30.0,)])
    agree(t)
    t.sql("INSERT INTO orders VALUES (4, 40)")
    agree(t)


def test_a_refresh_with_force_computes_it_anew_with_what_follows_it(shop: Trickle) -> None:
    versions = [state(shop, name).version for name in ("total", "half")]
    assert shop.refresh_stream_table("total", force=True).action == "FULL"
    assert [state(shop, name).version for name in ("total", "half")] >= versions
    shop.sql("INSERT INTO orders VALUES (5, 50)")
    agree(shop)


def test_commits_without_rows_are_followed(shop: Trickle) -> None:
    t = shop
    for number in range(3):
        t.sql(f"INSERT INTO orders VALUES ({number + 10}, {number})")
    t.compact("orders")
    agree(t, moved=True)
    t.sql("ALTER TABLE orders ADD COLUMN note STRING")
    assert ask(t, "SELECT count(note) FROM orders") == [(0,)], "readers see the new column"
    agree(t, moved=True)
    t.sql("INSERT INTO orders VALUES (20, 1, 'new')")
    agree(t)
    t.sql("ALTER TABLE orders DROP COLUMN note")
    t.sql("DELETE FROM orders WHERE id = 20")
    agree(t)
    t.compact("total")
    t.sql("INSERT INTO orders VALUES (21, 1)")
    agree(t)
    t.vacuum()
    agree(t)
