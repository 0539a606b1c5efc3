from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest

from tests.catalog.given import Given, named
from trickle.catalog import Catalog, Kind, relations, watermarks
from trickle.errors import ConcurrentModification, DuplicateName, InvalidName, InvalidOption, UnknownTable, WrongKind


def advanced(tx, source: int, to: datetime, given: Given, position: str = "1", by: str = "etl"):
    return watermarks.advance(tx, source, to, position=position, by=by, now=given.now)


def test_a_watermark_moves_forward_and_is_remembered(catalog: Catalog, given: Given) -> None:
    with catalog.write() as tx:
        orders = given.table(tx, "orders").id
        assert watermarks.find(tx, orders) is None
        first = advanced(tx, orders, given.later(-60), given, position="3")
        second = advanced(tx, orders, given.later(-30), given, position="5")
    with catalog.read() as tx:
        assert watermarks.find(tx, orders) == second
        assert watermarks.listing(tx) == [second]
        assert watermarks.history(tx, orders) == [second, first]
        assert watermarks.history(tx, orders, limit=1) == [second]
        assert watermarks.history(tx, orders, upto=given.later(-31)) == [first]
        assert watermarks.history(tx, orders, upto=given.later(-61)) == []
    assert (second.name, second.watermark, second.position, second.advanced_by) == (
        named("orders"),
        given.later(-30),
        "5",
        "etl",
    )


def test_a_watermark_does_not_go_back(catalog: Catalog, given: Given) -> None:
    with catalog.write() as tx:
        orders = given.table(tx, "orders").id
        stored = advanced(tx, orders, given.now, given)
        with pytest.raises(InvalidOption, match="watermark of orders cannot go back") as caught:
            advanced(tx, orders, given.later(-0.000001), given)
        # In another zone it is the same moment, which changes nothing.
        same = given.now.astimezone(timezone(timedelta(hours=5)))
        assert advanced(tx, orders, same, given, position="9", by="ada") == stored
        assert watermarks.history(tx, orders) == [stored]
    assert caught.value.detail == (
        "it is 2026-03-01T12:00:00.123456+00:00, and 2026-03-01T12:00:00.123455+00:00 is before that"
    )


def test_what_is_no_longer_needed_is_forgotten(catalog: Catalog, given: Given) -> None:
    with catalog.write() as tx:
        orders = given.table(tx, "orders").id
        points = [advanced(tx, orders, given.later(minute), given, position=str(minute)) for minute in range(5)]
        assert watermarks.forget(tx, orders, given.later(-1)) == 0
        # The newest that is not after the time stays: hold-back may be there now.
        assert watermarks.forget(tx, orders, given.later(2.5)) == 2
        assert watermarks.history(tx, orders) == points[:1:-1]


def test_a_group_is_declared_and_dropped(catalog: Catalog, given: Given) -> None:
    with catalog.write() as tx:
        orders, events = given.table(tx, "orders"), given.table(tx, "Events", Kind.ATTACHED)
        group = watermarks.create_group(
            tx,
            " Nightly ",
            [named("ORDERS"), named("events"), named("orders")],
            tolerance=timedelta(minutes=1.5),
            mode="hold_back",
            now=given.now,
        )
        assert (group.name, group.mode, group.tolerance_seconds) == ("Nightly", "hold_back", 90)
        assert (group.source_ids, group.sources) == ((events.id, orders.id), (events.name, orders.name))
        assert watermarks.groups(tx) == [group]
        with pytest.raises(DuplicateName, match="'NIGHTLY'"):
            create(tx, "NIGHTLY", "orders", "events", given=given)
        with pytest.raises(InvalidOption) as caught:
            watermarks.drop_group(tx, "nightlie")
        assert caught.value.hint == "did you mean 'Nightly'?"
        watermarks.drop_group(tx, "nightly")
        assert watermarks.groups(tx) == []


def create(tx, name: str, *sources: str, given: Given, **options):
    tables = [named(source) for source in sources]
    return watermarks.create_group(tx, name, tables, now=given.now, **{"tolerance": timedelta(0)} | options)


def test_a_group_that_cannot_be_is_refused(catalog: Catalog, given: Given) -> None:
    with catalog.write() as tx:
        given.table(tx, "orders")
        given.table(tx, "events")
        given.table(tx, "recent", Kind.VIEW, query="SELECT 1")
        given.stream(tx, "total")
        with pytest.raises(InvalidOption, match="two sources or more"):
            create(tx, "g", "orders", "Orders", given=given)
        with pytest.raises(UnknownTable) as caught:
            create(tx, "g", "orders", "event", given=given)
        assert caught.value.hint == "did you mean events?"
        with pytest.raises(WrongKind, match="recent is a view"):
            create(tx, "g", "orders", "recent", given=given)
        with pytest.raises(WrongKind, match="total is a stream table"):
            create(tx, "g", "orders", "total", given=given)
        with pytest.raises(InvalidOption, match="not negative"):
            create(tx, "g", "orders", "events", given=given, tolerance=timedelta(seconds=-1))
        with pytest.raises(InvalidOption, match="no watermark mode 'wait'"):
            create(tx, "g", "orders", "events", given=given, mode="wait")
        for name in ("", "  ", "a\nb", "x" * 129):
            with pytest.raises(InvalidName):
                create(tx, name, "orders", "events", given=given)
        assert watermarks.groups(tx) == []


def test_a_source_takes_its_watermarks_along(catalog: Catalog, given: Given) -> None:
    with catalog.write() as tx:
        orders, events = given.table(tx, "orders"), given.table(tx, "events")
        group = create(tx, "g", "orders", "events", given=given)
        advanced(tx, orders.id, given.now, given)
        relations.remove(tx, orders.id)
        assert watermarks.listing(tx) == watermarks.history(tx, orders.id) == []
        assert [(g.id, g.source_ids) for g in watermarks.groups(tx)] == [(group.id, (events.id,))]
    with pytest.raises(ConcurrentModification), catalog.write() as tx:
        advanced(tx, orders.id, given.now, given)
