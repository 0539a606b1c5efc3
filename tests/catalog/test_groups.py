from __future__ import annotations

import pytest

from tests.catalog.given import Given, named
from trickle.catalog import Catalog, groups, relations
from trickle.catalog.records import Isolation
from trickle.errors import DuplicateName, InvalidOption, UnknownTable, WrongKind


def test_a_group_is_declared_and_dropped(catalog: Catalog, given: Given) -> None:
    with catalog.write() as tx:
        b, a = given.stream(tx, "b").relation, given.stream(tx, "A").relation
        group = groups.create(tx, "Reports", [named("b"), named("a")], isolation="repeatable read", now=given.now)
        assert (group.name, group.isolation) == ("Reports", Isolation.REPEATABLE_READ)
        assert (group.member_ids, group.members) == ((a.id, b.id), (a.name, b.name))
        assert groups.listing(tx) == [group]
        with pytest.raises(InvalidOption) as caught:
            groups.drop(tx, "report")
        assert caught.value.hint == "did you mean 'Reports'?"
        groups.drop(tx, "REPORTS")
        assert groups.listing(tx) == []
        assert groups.create(tx, "reports", [a.name, b.name], now=given.now).isolation is Isolation.READ_COMMITTED


def test_a_group_that_cannot_be_is_refused(catalog: Catalog, given: Given) -> None:
    with catalog.write() as tx:
        given.table(tx, "orders")
        a, b, c, d = (given.stream(tx, name).relation.name for name in "abcd")
        with pytest.raises(InvalidOption, match="two stream tables or more"):
            groups.create(tx, "g", [a, named("A")], now=given.now)
        with pytest.raises(WrongKind):
            groups.create(tx, "g", [a, named("orders")], now=given.now)
        with pytest.raises(UnknownTable):
            groups.create(tx, "g", [a, named("z")], now=given.now)
        with pytest.raises(InvalidOption) as caught:
            groups.create(tx, "g", [a, b], isolation="serializable", now=given.now)
        assert caught.value.hint == "isolation: READ_COMMITTED, REPEATABLE_READ"
        groups.create(tx, "g", [a, b], now=given.now)
        with pytest.raises(InvalidOption, match="b is in the refresh group 'g' already"):
            groups.create(tx, "h", [b, c], now=given.now)
        with pytest.raises(DuplicateName):
            groups.create(tx, "G", [c, d], now=given.now)
        assert [group.name for group in groups.listing(tx)] == ["g"]


def test_a_dropped_member_leaves_its_group(catalog: Catalog, given: Given) -> None:
    with catalog.write() as tx:
        a, b = (given.stream(tx, name).relation for name in "ab")
        groups.create(tx, "g", [a.name, b.name], now=given.now)
        relations.remove(tx, a.id)
        assert [group.members for group in groups.listing(tx)] == [(b.name,)]
