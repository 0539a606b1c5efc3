"""What every branch of an OR asks for is asked once, before it.

    (a AND x) OR (a AND y)      becomes      a AND (x OR y)

So an equality that stands in every branch joins, correlates or is looked up, and what needs one table only is pushed to
it. Safe with NULL as well: AND distributes over OR among true, false and unknown. Where a branch asks for nothing else,
the others do not matter. Runs before the rules that look for such equalities.
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from trickle.operators import Apply, Expr, Filter, Join, Operator, transformed
from trickle.sql.rewrites.conditions import all_of, conjuncts, is_volatile


def factor(tree: Operator) -> Operator:
    """The same relation with its conditions factored."""
    return transformed(tree, _factored)


def _factored(node: Operator) -> Operator:
    if not isinstance(node, Filter | Join | Apply) or node.condition is None:
        return node
    parts = conjuncts(node.condition)
    changed = [new for part in parts for new in _taken_out(part)]
    return node if changed == parts else replace(node, condition=all_of(changed) or exp.true())


def _taken_out(part: Expr) -> list[Expr]:
    """A conjunct as what all its branches have, and the rest of them.

    >>> from sqlglot import parse_one
    >>> [one.sql() for one in _taken_out(parse_one("(a = b AND x) OR (y AND z AND a = b)"))]
    ['a = b', 'x OR (y AND z)']
    >>> [one.sql() for one in _taken_out(parse_one("x OR (x AND y)"))]
    ['x']
    """
    branches = [conjuncts(branch) for branch in _branches(part)]
    common = [one for one in branches[0] if all(one in branch for branch in branches[1:])]
    if len(branches) == 1 or not common or is_volatile(part):
        return [part]
    rests = [[one for one in branch if one not in common] for branch in branches]
    if not all(rests):
        return common
    return [*common, exp.or_(*(all_of(rest) for rest in rests))]


def _branches(part: Expr) -> list[Expr]:
    match part:
        case exp.Paren():
            return _branches(part.this)
        case exp.Or():
            return [*_branches(part.this), *_branches(part.expression)]
        case _:
            return [part]
