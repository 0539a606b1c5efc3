"""Window functions whose result depends on which of several equal rows comes first get one result (pure).

The change of a window function is what it gives now without what it gave before: asked twice, it has to give the same.
Where rows may be equal in the window's order and the function tells them apart, the order goes on with all columns:

    row_number, ntile, lag, lead, first_value, last_value, nth_value     over the default frame or ROWS
    aggregates                                                            over ROWS frames

Rows that are equal in all columns are the same row. rank, dense_rank and aggregates over RANGE treat equal rows alike
and stay; first_value and its kin over a RANGE or GROUPS frame of their own are refused.
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from trickle.errors import UnsupportedQuery
from trickle.operators import Expr, Operator, Output, Window, col, transformed

_PLACES = frozenset(("lag", "lead", "ntile", "row_number"))
_ENDS = frozenset(("first_value", "last_value", "nth_value"))
_ALIKE = frozenset(("cume_dist", "dense_rank", "percent_rank", "rank"))


def settled(tree: Operator) -> Operator:
    """The tree with total orders where window functions need them."""
    return transformed(tree, _settled)


def _settled(node: Operator) -> Operator:
    if not isinstance(node, Window):
        return node
    calls = tuple(Output(call.name, _ordered(call.value, node)) for call in node.calls)
    return replace(node, calls=calls)


def _ordered(value: Expr, node: Window) -> Expr:
    function: Expr = value.this
    while isinstance(function, exp.Filter | exp.IgnoreNulls | exp.RespectNulls):
        function = function.this
    name = function.name.lower() if isinstance(function, exp.Anonymous) else function.key
    if name.startswith("pg__"):
        name = bytes.fromhex(name.removeprefix("pg__")).decode()
    spec = value.args.get("spec")
    in_rows = spec is not None and str(spec.args.get("kind")).upper() == "ROWS"
    if name in _ALIKE or not (name in _PLACES or name in _ENDS or in_rows):
        return value
    if name in _ENDS and spec is not None and not in_rows:
        raise UnsupportedQuery(f"{name}() over a frame that is not ROWS depends on the order of equal rows")
    order = value.args.get("order")
    terms = [term.copy() for term in order.expressions] if order is not None else []
    present = {term.this.name for term in terms if isinstance(term.this, exp.Column)} | set(node.partition)
    more = [exp.Ordered(this=col(c), desc=False, nulls_first=True) for c in node.input.columns if c not in present]
    changed = value.copy()
    changed.set("order", exp.Order(expressions=[*terms, *more]))
    if name in _ENDS and spec is None and name != "first_value":
        # With more in the order a row's peers are fewer; the frame was to end with all of them.
        raise UnsupportedQuery(f"{name}() needs a ROWS frame", hint="ROWS BETWEEN UNBOUNDED PRECEDING AND ...")
    return changed
