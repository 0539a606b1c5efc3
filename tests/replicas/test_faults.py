"""An ingest that stops at any step: wholly before or wholly after, and nothing twice."""

from __future__ import annotations

import psycopg
import pytest

from tests.killing import killed
from tests.postgres import Postgres
from tests.replicas.test_ingest import Session, lake, source
from trickle.api import Trickle
from trickle.apply.steps import Step
from trickle.apply.unit import recover
from trickle.errors import SourceUnreachable
from trickle.testing.faults import Fault, raise_at

BEFORE = {Step.STAGED}
WALK = [(step, 0) for step in Step if step is not Step.STARTED] + [(Step.TABLE_COMMITTED, 1)]


def write(shop: Session) -> None:
    # Inserts alone are written without Spark: the walk is about the unit.
    shop.execute("INSERT INTO orders VALUES (100, 'new', 1, 1); INSERT INTO notes VALUES ('new'), ('new')")


def label(point: tuple[Step, int]) -> str:
    return f"{point[0].value} {point[1]}"


def agrees(t: Trickle, shop: Session) -> bool:
    return lake(t, "shop.orders") == source(shop, "orders") and lake(t, "shop.notes") == source(shop, "notes")


@pytest.mark.parametrize("point", WALK, ids=label)
def test_an_exception_leaves_before_or_after(t: Trickle, shop: Session, dsn: str, point: tuple[Step, int]) -> None:
    step, member = point
    t.attach_postgres("shop", dsn)
    before = lake(t, "shop.orders"), lake(t, "shop.notes")
    write(shop)
    with raise_at(step, member) as seen, pytest.raises(Fault):
        t.ingest()
    assert point in seen
    if step is not Step.FINALISED:
        assert (lake(t, "shop.orders"), lake(t, "shop.notes")) == before, "readers see no half of a unit"
    recover(t.warehouse)
    if step in BEFORE:
        assert (lake(t, "shop.orders"), lake(t, "shop.notes")) == before
    else:
        assert agrees(t, shop)
    shop.execute("DELETE FROM notes WHERE body = 'a'")
    t.ingest()
    assert agrees(t, shop)
    assert t.ingest() == []


@pytest.mark.parametrize("point", [(Step.STAGED, 0), (Step.TABLE_COMMITTED, 0), (Step.FINALISED, 0)], ids=label)
def test_a_kill_leaves_before_or_after(t: Trickle, shop: Session, dsn: str, point: tuple[Step, int]) -> None:
    t.attach_postgres("shop", dsn)
    write(shop)
    spark = t.warehouse.engine.spark
    killed("tests.replicas.child", spark, t.warehouse.root.uri, point[0].value, str(point[1]))
    t.ingest()
    assert agrees(t, shop)
    assert t.ingest() == []


def test_a_load_that_stops_is_let_go_of_and_can_be_repeated(t: Trickle, shop: Session, dsn: str) -> None:
    with raise_at(Step.STAGED), pytest.raises(Fault):
        t.attach_postgres("shop", dsn)
    assert t.list_sources() == []
    assert shop.execute("SELECT count(*) FROM pg_trigger WHERE NOT tgisinternal").fetchone() == (0,)
    t.attach_postgres("shop", dsn)
    assert agrees(t, shop)


def test_a_server_that_is_away_comes_back(t: Trickle, shop: Session, dsn: str, postgres: Postgres) -> None:
    t.attach_postgres("shop", dsn)
    database = str(psycopg.conninfo.conninfo_to_dict(dsn)["dbname"])
    write(shop)
    postgres.refuse(database)
    with pytest.raises(SourceUnreachable):
        t.ingest()
    assert "SOURCE_UNREACHABLE" in str(t.list_sources()[0].last_error)
    assert [alert.event for alert in t.alerts()] == ["stale_data"]
    assert t.tick() == [], "a tick goes on without it"
    assert [row.state for row in t.check_cdc_health()] == ["CRITICAL"]
    postgres.admit(database)
    t.ingest()
    with psycopg.connect(dsn, autocommit=True) as again:
        assert agrees(t, again)
    assert t.list_sources()[0].last_error is None
