"""Change sets for TPC-H: of the orders that change 70 % are new, 15 % updated and 15 % deleted, with all their lines.

New orders are copies of orders from all over the table under keys above the largest. Updated and deleted orders are a
contiguous range of the highest keys that earlier sets left alone, plus some random ones (one in 20, at most 3). The
same share of partsupp changes: new offers for parts from all over, offers of a range of parts updated and deleted. On
demand a few random rows of customer, part and supplier change along: in each of them some are inserted, updated or
deleted, in turn from set to set.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field

from pyspark.sql import functions as F

from bench.tpch_tables import Data
from trickle import Trickle

_FEW = 3
_AWAY = 1_000_000_000
"""Added to keys of small tables for new rows."""


def order_key(index: int) -> int:
    """The key of the order with a number from 1: of every 32 keys the first 8 are used.

    >>> [order_key(index) for index in (1, 7, 8, 9, 16)]
    [1, 7, 32, 33, 64]
    """
    return index >> 3 << 5 | index & 7


@dataclass(frozen=True)
class Chosen:
    """Some orders, by their numbers: all from first to last, and single ones."""

    first: int
    last: int
    single: tuple[int, ...]

    def __len__(self) -> int:
        return self.last - self.first + 1 + len(self.single)

    def condition(self, column: str) -> str:
        """The same in SQL, over a column of keys."""
        keys = ", ".join(str(order_key(index)) for index in self.single)
        within = f"{column} BETWEEN {order_key(self.first)} AND {order_key(self.last)}"
        return f"({within} OR {column} IN ({keys}))" if keys else within


@dataclass(frozen=True)
class ChangeSet:
    """Which orders change. The new ones are copies of every ``step``-th order, ``inserts`` of them."""

    number: int
    inserts: int
    step: int
    first_key: int
    updates: Chosen
    deletes: Chosen
    parts: tuple[range, range, int] = (range(0), range(0), 1)
    """Parts whose offers are updated and deleted; and of how many parts each one gets a new offer."""

    @property
    def orders(self) -> int:
        """How many orders change."""
        return self.inserts + len(self.updates) + len(self.deletes)


@dataclass
class Changes:
    """Change sets one after the other over the same tables: no order is chosen twice."""

    orders: int
    parts: int = 0
    number: int = 0
    _dice: random.Random = field(default_factory=lambda: random.Random(7))
    _left: int = field(init=False)
    _next_key: int = field(init=False)
    _taken: set[int] = field(default_factory=set)
    _parts_taken: int = 0

    def __post_init__(self) -> None:
        self._left = self.orders
        self._next_key = order_key(self.orders) + 1

    def next(self, share: float) -> ChangeSet:
        """The next set, of a share of the orders that there were at first."""
        wanted = max(8, round(self.orders * share))
        touched = max(1, round(wanted * 0.15))
        inserts = wanted - 2 * touched
        first_key, self._next_key = self._next_key, self._next_key + inserts
        self.number += 1
        updates, deletes = self._choose(touched), self._choose(touched)
        step = self.orders // inserts
        return ChangeSet(self.number, inserts, step, first_key, updates, deletes, self._choose_parts(share))

    def _choose_parts(self, share: float) -> tuple[range, range, int]:
        touched = round(self.parts * share * 0.15)
        end = self.parts + 1 - self._parts_taken
        self._parts_taken += 2 * touched
        # Every part has four offers: new ones for so many parts are 70 % of what changes.
        return range(end - touched, end), range(end - 2 * touched, end - touched), max(1, round(1 / (share * 0.7 * 4)))

    def _choose(self, count: int) -> Chosen:
        single: list[int] = []
        while len(single) < min(_FEW, count // 20):
            index = self._dice.randrange(1, self.orders // 2)
            if index not in self._taken:
                self._taken.add(index)
                single.append(index)
        last = self._left
        self._left -= count - len(single)
        if self._left < self.orders // 2:
            raise SystemExit("no orders left to change: ask for fewer or smaller change sets")
        return Chosen(self._left + 1, last, tuple(single))


def apply(t: Trickle, data: Data, change: ChangeSet, *, dimensions: bool = False) -> None:
    """Make a change set happen in the lake tables; with ``dimensions`` in the smaller ones too."""
    for table, key in (("orders", "o_orderkey"), ("lineitem", "l_orderkey")):
        t.write(table, data.frame(t, table).where(_copied(key, change)).withColumn(key, F.expr(_new_key(key, change))))
    for statement in _statements(change):
        t.sql(statement)
    _change_offers(t, data, change)
    if dimensions:
        _change_small(t, data, change.number)


def _index(key: str) -> str:
    return f"({key} div 32 * 8 + {key} % 32)"


def _copied(key: str, change: ChangeSet) -> str:
    # Numbers begin with 1, and the step of a set that copies every order is 1.
    return (
        f"({_index(key)} - 1) % {change.step} = {change.number % change.step}"
        f" AND ({_index(key)} - 1) div {change.step} < {change.inserts}"
    )


def _new_key(key: str, change: ChangeSet) -> str:
    return f"{change.first_key} + ({_index(key)} - 1) div {change.step}"


def _statements(change: ChangeSet) -> Iterator[str]:
    updated, deleted = change.updates.condition, change.deletes.condition
    yield (
        "UPDATE orders SET o_totalprice = o_totalprice + 10, o_orderpriority = '1-URGENT'"
        f" WHERE {updated('o_orderkey')}"
    )
    yield (
        "UPDATE lineitem SET l_quantity = l_quantity + 1, l_discount = 0.06, l_receiptdate = date_add(l_receiptdate, 1)"
        f" WHERE {updated('l_orderkey')}"
    )
    yield f"DELETE FROM orders WHERE {deleted('o_orderkey')}"
    yield f"DELETE FROM lineitem WHERE {deleted('l_orderkey')}"


def _change_offers(t: Trickle, data: Data, change: ChangeSet) -> None:
    updated, deleted, step = change.parts
    if not updated:
        return
    another = F.expr(f"ps_suppkey % {data.rows('supplier')} + 1")
    copied = f"ps_partkey % {step} = {change.number % step} AND ps_suppkey % 4 = {change.number % 4}"
    t.write("partsupp", data.frame(t, "partsupp").where(copied).withColumn("ps_suppkey", another))
    between = "ps_partkey BETWEEN {} AND {}"
    t.sql(
        "UPDATE partsupp SET ps_supplycost = ps_supplycost + 1, ps_availqty = ps_availqty + 5 WHERE "
        + between.format(updated[0], updated[-1])
    )
    t.sql("DELETE FROM partsupp WHERE " + between.format(deleted[0], deleted[-1]))


_SMALL = {
    "customer": ("c_custkey", "c_acctbal = c_acctbal + 10, c_mktsegment = 'BUILDING'"),
    "part": ("p_partkey", "p_size = p_size % 50 + 1, p_container = 'MED BOX'"),
    "supplier": ("s_suppkey", "s_acctbal = s_acctbal + 10, s_nationkey = (s_nationkey + 1) % 25"),
}


def _change_small(t: Trickle, data: Data, number: int) -> None:
    for turn, (table, (key, assignments)) in enumerate(_SMALL.items(), start=number):
        keys = random.Random(turn).sample(range(1, data.rows(table) + 1), 3)
        chosen = f"{key} IN ({', '.join(map(str, keys))})"
        match turn % 3:
            case 0:
                away = F.col(key) + F.lit(_AWAY * number)
                t.write(table, data.frame(t, table).where(chosen).withColumn(key, away))
            case 1:
                t.sql(f"UPDATE {table} SET {assignments} WHERE {chosen}")
            case _:
                t.sql(f"DELETE FROM {table} WHERE {chosen}")
