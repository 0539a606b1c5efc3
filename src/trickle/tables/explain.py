"""EXPLAIN: Spark's own plan for a query, bound to the versions it would read."""

from __future__ import annotations

from trickle.engine.query import run_query
from trickle.sql import Explain
from trickle.tables.dml import resolve_now
from trickle.tables.results import Listing
from trickle.warehouse import Warehouse


def explain(warehouse: Warehouse, statement: Explain) -> Listing:
    """The physical plan as text."""
    frame = resolve_now(warehouse, statement.query).bind(statement.query)
    plan = run_query(warehouse.engine, [frame], lambda names: f"EXPLAIN SELECT * FROM `{names[0]}`")
    return Listing(("plan",), tuple((row[0],) for row in plan.collect()))
