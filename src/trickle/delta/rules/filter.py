"""Filter.

    d(filter_p(Q)) = filter_p(dQ)

Class: linear. Reads the change only; keeps no state; never falls back. An update that moves a row across the border
is a deletion or an insertion here: of the old and the new row, one passes.

A condition that depends on the time of the refresh was another one before (p'), and rows cross the border by time
alone:

    d(filter_p(Q)) = filter_p(dQ)  +  (Q_old where p and not p')  -  (Q_old where p' and not p)

For a condition such as ``at > current_timestamp() - INTERVAL 7 DAYS`` the two further terms ask for narrow ranges of
``at``, which the statistics of files and row groups know.
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from trickle.delta.building import both, call
from trickle.delta.differentiate import differentiate
from trickle.delta.weighted import union, weighted
from trickle.operators import Expr, Face, Filter, Operator, at_face, renamed
from trickle.operators.clock import NOW, NOW_OLD


@differentiate.register
def _(tree: Filter) -> Operator:
    changed = replace(tree, input=differentiate(tree.input))
    if NOW not in tree.used:
        return changed
    rows = at_face(tree.input, Face.OLD)
    now, before = tree.condition, renamed(tree.condition, {NOW: NOW_OLD})
    return union(
        (
            changed,
            weighted(Filter(rows, both(exp.paren(now.copy()), _is_not_true(before))), 1),
            weighted(Filter(rows, both(exp.paren(before.copy()), _is_not_true(now))), -1),
        )
    )


def _is_not_true(condition: Expr) -> Expr:
    return exp.Not(this=call("coalesce", condition, exp.false()))
