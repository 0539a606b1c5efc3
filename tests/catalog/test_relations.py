from __future__ import annotations

import uuid
from datetime import datetime

import pytest

from tests.catalog.given import Given, named
from trickle.catalog import Catalog, Dependency, IntentMember, Kind, intents, relations
from trickle.errors import ConcurrentModification, DependentsExist, DuplicateName, InternalError, UnknownTable

HOSTILE = [
    "it's",
    'say "hi"',
    "a`b",
    "x; DROP TABLE relations; --",
    "50% :name ? $1 %(x)s {y}",
    "back\\slash/../slash",
    "  padded  ",
    "日本語の表",
    "🦆" * 32,
    "ﷺ\u202eright-to-left",
    "İSTANBUL ẞ",
    "n" * 128,
    "NULL",
]


def test_a_relation_comes_back_as_it_was_entered(catalog: Catalog, given: Given, now: datetime) -> None:
    with catalog.write() as tx:
        added = relations.add(
            tx,
            name=named("sales", "Orders"),
            kind=Kind.TABLE,
            uid="feed" * 8,
            location="s3://bucket/orders",
            storage_options={"AWS_REGION": "eu-1"},
            key=("id", "line"),
            comment="all orders",
            now=now,
        )
    with catalog.read() as tx:
        found = relations.get(tx, named("sales", "Orders"))
    assert found == added
    assert (found.name.schema, found.name.table) == ("sales", "Orders")
    assert found.key == ("id", "line")
    assert found.storage_options == {"AWS_REGION": "eu-1"}
    assert found.created_at == now
    assert found.created_at.tzinfo is not None


def test_storage_options_are_not_printed(catalog: Catalog, given: Given) -> None:
    with catalog.write() as tx:
        table = given.table(tx, "orders", storage_options={"AWS_SECRET_ACCESS_KEY": "hunter2"})
    assert "hunter2" not in repr(table)


def test_names_ignore_case_and_keep_their_spelling(catalog: Catalog, given: Given) -> None:
    with catalog.write() as tx:
        given.table(tx, "Sales.Orders")
    with catalog.read() as tx:
        found = relations.find(tx, named("SALES", "oRDERS"))
    assert found is not None
    assert str(found.name) == "Sales.Orders"


def test_a_name_can_be_taken_once_in_any_case(catalog: Catalog, given: Given) -> None:
    with catalog.write() as tx:
        given.table(tx, "orders")
        with pytest.raises(DuplicateName, match="orders is there already"):
            given.table(tx, "ORDERS")
        # The transaction lives on.
        given.table(tx, "other.orders")
    with catalog.read() as tx:
        assert [str(r.name) for r in relations.listing(tx)] == ["orders", "other.orders"]


def test_a_uid_given_out_twice_is_a_defect(catalog: Catalog, given: Given) -> None:
    with catalog.write() as tx:
        first = given.table(tx, "a")
        with pytest.raises(InternalError, match="uid"):
            given.table(tx, "b", uid=first.uid)


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_names_round_trip(catalog: Catalog, given: Given, text: str) -> None:
    with catalog.write() as tx:
        relations.add(tx, name=named(text, text), kind=Kind.TABLE, uid=uuid.uuid4().hex, location=text, now=given.now)
    with catalog.read() as tx:
        found = relations.get(tx, named(text.lower(), text.lower()))
        assert (found.name.schema, found.name.table, found.location) == (text, text, text)
        assert relations.listing(tx, schema=text) == [found]


def test_an_unknown_name_hints_at_the_nearest(catalog: Catalog, given: Given) -> None:
    with catalog.write() as tx:
        given.table(tx, "orders")
    with catalog.read() as tx, pytest.raises(UnknownTable) as caught:
        relations.get(tx, named("ordres"))
    assert caught.value.hint == "did you mean orders?"
    with catalog.read() as tx, pytest.raises(UnknownTable) as caught:
        relations.get(tx, named("zebra"))
    assert caught.value.hint is None


def test_listing_is_by_schema_and_name(catalog: Catalog, given: Given) -> None:
    with catalog.write() as tx:
        for name in ("b", "Z.y", "a", "z.X"):
            given.table(tx, name)
    with catalog.read() as tx:
        assert [str(r.name) for r in relations.listing(tx)] == ["a", "b", "z.X", "Z.y"]
        assert [str(r.name) for r in relations.listing(tx, schema="Z")] == ["z.X", "Z.y"]
        assert relations.listing(tx, schema="nowhere") == []


def test_update_changes_only_what_is_named(catalog: Catalog, given: Given) -> None:
    with catalog.write() as tx:
        before = given.table(tx, "orders", comment="old", key=("id",))
        relations.update(tx, before.id, now=given.later(1), comment=None, location="/elsewhere")
        after = relations.by_id(tx, before.id)
    assert (after.comment, after.location, after.key, after.uid) == (None, "/elsewhere", ("id",), before.uid)
    assert (after.created_at, after.updated_at) == (before.created_at, given.later(1))


def test_a_replaced_table_keeps_its_id_and_gets_a_new_incarnation(catalog: Catalog, given: Given) -> None:
    with catalog.write() as tx:
        before = given.table(tx, "orders", key=("id",))
        relations.update(tx, before.id, now=given.now, uid="new", key=["a", "b"], storage_options={"x": "y"})
    with catalog.read() as tx:
        after = relations.get(tx, named("orders"))
    assert (after.id, after.uid, after.key, after.storage_options) == (before.id, "new", ("a", "b"), {"x": "y"})


def test_renaming_onto_another_relation_is_refused(catalog: Catalog, given: Given) -> None:
    with catalog.write() as tx:
        given.table(tx, "taken")
        table = given.table(tx, "orders")
        with pytest.raises(DuplicateName):
            relations.update(tx, table.id, now=given.now, name=named("TAKEN"))
        relations.update(tx, table.id, now=given.now, name=named("Orders"))
    with catalog.read() as tx:
        assert [str(r.name) for r in relations.listing(tx)] == ["Orders", "taken"]


def test_an_id_that_is_gone_says_so(catalog: Catalog, given: Given) -> None:
    with catalog.write() as tx:
        table = given.table(tx, "orders")
        relations.remove(tx, table.id)
        for act in (
            lambda: relations.by_id(tx, table.id),
            lambda: relations.update(tx, table.id, now=given.now, comment="x"),
            lambda: relations.remove(tx, table.id),
        ):
            with pytest.raises(ConcurrentModification, match="dropped"):
                act()
        assert relations.find(tx, table.name) is None


def test_ids_are_never_given_out_again(catalog: Catalog, given: Given) -> None:
    with catalog.write() as tx:
        first = given.table(tx, "orders")
        relations.remove(tx, first.id)
        assert given.table(tx, "orders").id > first.id


def test_dependencies_can_be_walked_both_ways(catalog: Catalog, given: Given) -> None:
    with catalog.write() as tx:
        orders = given.table(tx, "orders")
        view = given.table(tx, "recent", Kind.VIEW, query="SELECT * FROM orders", location=None)
        total = given.stream(tx, "total")
        direct = Dependency(total.relation.id, view.id, Kind.VIEW, ("id", "amount"))
        through = Dependency(total.relation.id, orders.id, Kind.TABLE, ("id",), "f00d", direct=False)
        relations.set_dependencies(tx, total.relation.id, [direct, through])
        below = Dependency(view.id, orders.id, Kind.TABLE)
        relations.set_dependencies(tx, view.id, [below])
    with catalog.read() as tx:
        assert relations.dependencies(tx, total.relation.id) == [through, direct]
        assert relations.dependents(tx, orders.id) == [below, through]
        assert relations.dependencies(tx, orders.id) == []
        assert relations.all_dependencies(tx) == [below, through, direct]


def test_dependencies_are_replaced_as_a_whole(catalog: Catalog, given: Given) -> None:
    with catalog.write() as tx:
        a, b = given.table(tx, "a"), given.table(tx, "b")
        total = given.stream(tx, "total", reads=[a])
        relations.set_dependencies(tx, total.relation.id, [Dependency(total.relation.id, b.id, Kind.TABLE)])
        assert [d.source_id for d in relations.dependencies(tx, total.relation.id)] == [b.id]
        relations.set_dependencies(tx, total.relation.id, [])
        assert relations.dependencies(tx, total.relation.id) == []


def test_the_kind_of_a_source_is_the_one_it_has_now(catalog: Catalog, given: Given) -> None:
    with catalog.write() as tx:
        source = given.table(tx, "orders")
        given.stream(tx, "total", reads=[source])
        relations.update(tx, source.id, now=given.now, kind=Kind.ATTACHED)
        assert [d.source_kind for d in relations.dependents(tx, source.id)] == [Kind.ATTACHED]


def test_what_is_read_by_others_cannot_be_removed(catalog: Catalog, given: Given) -> None:
    with catalog.write() as tx:
        orders = given.table(tx, "orders")
        readers = [given.stream(tx, f"r{i}", reads=[orders]) for i in range(7)]
    with pytest.raises(DependentsExist) as caught, catalog.write() as tx:
        relations.remove(tx, orders.id)
    assert caught.value.detail == "read by r0, r1, r2, r3, r4 and 2 more"
    with catalog.write() as tx:
        for reader in readers:
            relations.remove(tx, reader.relation.id)
        relations.remove(tx, orders.id)
        assert relations.listing(tx) == []
        assert relations.all_dependencies(tx) == []


def test_a_relation_that_reads_itself_can_be_removed(catalog: Catalog, given: Given) -> None:
    with catalog.write() as tx:
        loop = given.stream(tx, "reachable")
        relations.set_dependencies(tx, loop.relation.id, [Dependency(loop.relation.id, loop.relation.id, Kind.TABLE)])
        relations.remove(tx, loop.relation.id)
        assert relations.all_dependencies(tx) == []


def test_what_is_being_committed_cannot_be_removed(catalog: Catalog, given: Given, now: datetime) -> None:
    with catalog.write() as tx:
        total = given.stream(tx, "total")
        intent = intents.add(tx, [IntentMember(total.relation.id, 0, "{}", 1, None)], now)
        with pytest.raises(ConcurrentModification, match="total is being committed"):
            relations.remove(tx, total.relation.id)
        intents.remove(tx, intent.id)
        relations.remove(tx, total.relation.id)
