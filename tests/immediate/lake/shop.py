"""Two tables and a cascade of IMMEDIATE stream tables over them; a statement and what readers see before and after."""

from __future__ import annotations

from deltalake import DeltaTable

from tests.apply.shop import connect as connect
from tests.apply.shop import leftovers as leftovers
from trickle.api import Trickle
from trickle.apply.steps import Step
from trickle.catalog import pins, relations, streams

NAMES = ("orders", "totals", "most")
STATEMENTS = {
    "update": "UPDATE orders SET amount = amount + 100 WHERE customer = 'ada'",
    "insert": "INSERT INTO orders VALUES (9, 'zoe', 1000)",
    "truncate": "TRUNCATE TABLE orders",
}
COMMITS = 3
"""Both stream tables, and the table itself."""
OLD_SIDE = (Step.STARTED, Step.STAGED)
KILLED = {(Step.STAGED, 0), (Step.INTENT_WRITTEN, 0), (Step.TABLE_COMMITTED, 1), (Step.TABLES_COMMITTED, 0)}
"""Where a process is killed: each leaves something else behind."""


def points() -> list[tuple[Step, int]]:
    """Every step that a statement passes."""
    walk = [(Step.STARTED, 0), (Step.STAGED, 0), (Step.INTENT_WRITTEN, 0)]
    walk += [(Step.TABLE_COMMITTED, number) for number in range(COMMITS)]
    return [*walk, (Step.TABLES_COMMITTED, 0), (Step.FINALISED, 0)]


def build(t: Trickle) -> None:
    """Make everything."""
    t.sql("CREATE TABLE orders (id INT, customer STRING, amount INT)")
    t.sql("INSERT INTO orders VALUES (1, 'ada', 10), (2, 'bob', 5), (3, NULL, 1)")
    t.create_stream_table(
        "totals", "SELECT customer, sum(amount) AS total FROM orders GROUP BY customer", refresh_mode="IMMEDIATE"
    )
    t.create_stream_table("most", "SELECT max(total) AS total FROM totals", refresh_mode="IMMEDIATE")


def contents(t: Trickle) -> dict[str, list[tuple[object, ...]]]:
    """What readers see, all taken in one transaction and read by another reader."""
    with t.warehouse.catalog.read() as tx:
        versions = {relation: pin.version for relation, pin in pins.of(tx).items()}
        versions |= {stream.relation.id: stream.version for stream in streams.listing(tx)}
        known = [relation for relation in relations.listing(tx) if relation.id in versions]
    found = {str(each.name): (t.warehouse.location_of(each).uri, versions[each.id]) for each in known}
    return {name: _rows(*found[name]) for name in NAMES}


def _rows(location: str, version: int | None) -> list[tuple[object, ...]]:
    table = DeltaTable(location, version=version).to_pyarrow_table()
    return sorted((tuple(row.values()) for row in table.to_pylist()), key=repr)
