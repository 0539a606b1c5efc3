"""Subqueries whose truth is a value: EXISTS and IN under OR, in CASE, in the select list.

The mark of a row is true when the condition holds for a row of the subquery, else NULL when it is NULL for one, else
false. When the subquery is looked up by values (``k = outer``, and for IN ``y = x``), with R its rows:

    EXISTS   L left join DISTINCT k of R:                    found
    IN       L left join DISTINCT k, y of R
               left join R grouped by k, with count(*), count(y):
             found -> true;  no group -> false;  x is NULL, or a y is -> NULL;  else false

Otherwise for D, the distinct values that L has in the columns which the condition c uses:

    L left join on D's values (D join R on c IS NOT FALSE, grouped by D, with count(*), count_if(c)):
             count_if(c) > 0 -> true;  a group -> NULL;  else false
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from trickle.operators import (
    Aggregate,
    Expr,
    Filter,
    Join,
    JoinKind,
    Operator,
    Output,
    Project,
    col,
    column_names,
    null_safe,
    renamed,
)
from trickle.sql.rewrites.conditions import (
    Match,
    all_of,
    conjuncts,
    is_null,
    match_of,
    matches_of,
    renamed_match,
    resolved,
)
from trickle.sql.rewrites.copy import fresh_copy
from trickle.sql.rewrites.domain import distinct_values
from trickle.sql.rewrites.keyed import joined_on, with_keys
from trickle.sql.rewrites.names import Names
from trickle.sql.rewrites.pull import Flat


def marked(left: Operator, flat: Flat, condition: Expr | None, output: str, names: Names) -> Operator:
    """The left with a column more: whether the condition holds for some row of the subquery."""
    inside = set(flat.tree.columns)
    matches = matches_of(flat.conjuncts, inside, names.is_exact)
    if condition is not None:
        condition = resolved(condition, flat.values)
    parts = conjuncts(condition)
    if matches is not None and not parts:
        return _exists(left, flat.tree, matches, output, names)
    match = match_of(parts[0], inside) if len(parts) == 1 else None
    if matches is not None and match is not None and names.is_exact(match):
        return _found(left, flat.tree, matches, match, output, names)
    return _counted(left, flat, condition, output, names)


def _exists(left: Operator, right: Operator, matches: Sequence[Match], output: str, names: Names) -> Operator:
    found = names.fresh("found")
    if not matches:
        count = Output(found, exp.Anonymous(this="count", expressions=[exp.Star()]))
        joined: Operator = Join(JoinKind.INNER, left, Aggregate(right, (), (count,)))
        return _with(joined, left, output, _some(found))
    joined = _looked_up(left, right, matches, found, names)
    return _with(joined, left, output, _is_there(found))


def _looked_up(left: Operator, right: Operator, matches: Sequence[Match], found: str, names: Names) -> Operator:
    """The left, with ``found`` TRUE where the right has a row that matches, else NULL."""
    tree, keys = with_keys(right, matches, names)
    distinct = Aggregate(tree, tuple(dict.fromkeys(keys)))
    hits = Project(distinct, (*Output.keep(distinct.columns), Output(found, exp.true())))
    return Join(JoinKind.LEFT, left, hits, all_of(joined_on(matches, keys)))


def _found(
    left: Operator, right: Operator, matches: Sequence[Match], match: Match, output: str, names: Names
) -> Operator:
    found, rows, known = names.fresh("found"), names.fresh("rows"), names.fresh("known")
    joined = _looked_up(left, right, (*matches, match), found, names)
    if match.null_safe:
        return _with(joined, left, output, _is_there(found))
    copy, fresh = fresh_copy(right, names)
    inner = [renamed_match(each, fresh) for each in matches]
    tree, keys = with_keys(copy, inner, names)
    counts = (
        Output(rows, exp.Anonymous(this="count", expressions=[exp.Star()])),
        Output(known, exp.Anonymous(this="count", expressions=[renamed(match.inner, fresh)])),
    )
    groups = Aggregate(tree, tuple(dict.fromkeys(keys)), counts)
    kind = JoinKind.LEFT if keys else JoinKind.INNER
    joined = Join(kind, joined, groups, all_of(joined_on(inner, keys)))
    unsure = exp.or_(is_null(match.outer), exp.GT(this=col(rows), expression=col(known)))
    value = (
        exp.Case()
        .when(_is_there(found), exp.true())
        .when(exp.Not(this=_some(rows)), exp.false())
        .when(unsure, _unknown())
        .else_(exp.false())
    )
    return _with(joined, left, output, value)


def _counted(left: Operator, flat: Flat, condition: Expr | None, output: str, names: Names) -> Operator:
    parts = (*flat.conjuncts, *([] if condition is None else [condition]))
    inside = set(flat.tree.columns)
    used = frozenset().union(*map(column_names, parts)) - inside
    outer = [name for name in left.columns if name in used]
    domain, pairs = distinct_values(left, outer, names) if outer else (None, {})
    on = [renamed(part, pairs) for part in flat.conjuncts]
    hits, rows = names.fresh("hits"), names.fresh("rows")
    calls = [Output(rows, exp.Anonymous(this="count", expressions=[exp.Star()]))]
    if condition is not None:
        holds = renamed(condition, pairs)
        on.append(exp.Not(this=exp.Is(this=exp.paren(holds), expression=exp.false())))
        calls.append(Output(hits, exp.Anonymous(this="count_if", expressions=[holds.copy()])))
    if domain is None:
        groups = Aggregate(Filter(flat.tree, all_of(on) or exp.true()), (), tuple(calls))
        tree = Join(JoinKind.INNER, left, groups)
    else:
        joined = Join(JoinKind.INNER, domain, flat.tree, all_of(on))
        groups = Aggregate(joined, domain.columns, tuple(calls))
        tree = Join(JoinKind.LEFT, left, groups, null_safe(pairs.items()))
    if condition is None:
        return _with(tree, left, output, _some(rows))
    value = exp.Case().when(_some(hits), exp.true()).when(_some(rows), _unknown()).else_(exp.false())
    return _with(tree, left, output, value)


def _with(tree: Operator, left: Operator, output: str, value: Expr) -> Operator:
    return Project(tree, (*Output.keep(left.columns), Output(output, value)))


def _is_there(name: str) -> Expr:
    return exp.Not(this=exp.Is(this=col(name), expression=exp.null()))


def _some(count: str) -> Expr:
    """Whether a count, which is NULL where there is no group, is more than zero."""
    zero = exp.Literal.number(0)
    return exp.GT(this=exp.Anonymous(this="coalesce", expressions=[col(count), zero]), expression=zero.copy())


def _unknown() -> Expr:
    return exp.cast(exp.null(), "boolean")
