"""Comparisons with ALL, ANY and SOME of a subquery, which Spark does not know, in terms that it knows.

With m the largest (or smallest) value of q, n the number of its rows and k the number of its values that are not NULL:

    x > ALL (q)     CASE WHEN n = 0 THEN TRUE  WHEN NOT x > m THEN FALSE WHEN n > k THEN NULL ELSE x > m END
    x > ANY (q)     CASE WHEN n = 0 THEN FALSE WHEN x > m     THEN TRUE  WHEN n > k THEN NULL ELSE x > m END

where m is the value that decides: for ALL the largest under > and >=, the smallest under < and <=; for ANY the other.
When x is NULL and q is not empty, all comparisons are NULL and so is the result. ``= ANY`` is IN, ``<> ALL`` is NOT IN.
``= ALL`` holds when the smallest and the largest both equal x, ``<> ANY`` is its negation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from sqlglot import exp

_MIRRORED: dict[type[exp.Expr], tuple[str, str]] = {
    exp.GT: ("max", "min"),
    exp.GTE: ("max", "min"),
    exp.LT: ("min", "max"),
    exp.LTE: ("min", "max"),
}


def settle_quantifiers(root: exp.Expr) -> Iterator[str]:
    """Replace the comparisons, and say so."""
    for node in list(root.find_all(exp.All, exp.Any)):
        compared = node.parent
        subquery = node.this
        if not isinstance(subquery, exp.Subquery | exp.Query) or not isinstance(compared, exp.Binary):
            continue
        query = subquery.this if isinstance(subquery, exp.Subquery) else subquery
        compared.replace(exp.paren(_spelled(compared, query, for_all=isinstance(node, exp.All))))
        yield f"{'ALL' if isinstance(node, exp.All) else 'ANY'} (subquery) is written with aggregates of it"


def _spelled(compared: exp.Binary, query: exp.Query, *, for_all: bool) -> exp.Expr:
    value, kind = compared.this, type(compared)
    if kind is exp.EQ and not for_all:
        return exp.In(this=value.copy(), query=exp.Subquery(this=query.copy()))
    if kind is exp.NEQ and for_all:
        return exp.Not(this=exp.In(this=value.copy(), query=exp.Subquery(this=query.copy())))
    if kind in (exp.EQ, exp.NEQ):
        both = exp.and_(_compare(exp.EQ, value, query, "min"), _compare(exp.EQ, value, query, "max"))
        equal = _decided(query, for_all=True, holds=both)
        return equal if kind is exp.EQ else exp.Not(this=exp.paren(equal))
    decides = _MIRRORED[kind][0 if for_all else 1]
    return _decided(query, for_all=for_all, holds=_compare(kind, value, query, decides))


def _decided(query: exp.Query, *, for_all: bool, holds: exp.Expr) -> exp.Expr:
    rows = _of(query, lambda _: exp.Anonymous(this="count", expressions=[exp.Star()]))
    values = _of(query, lambda column: exp.Anonymous(this="count", expressions=[column]))
    decided = exp.Not(this=exp.paren(holds.copy())) if for_all else exp.paren(holds.copy())
    return exp.Case(
        ifs=[
            exp.If(this=exp.EQ(this=rows.copy(), expression=exp.Literal.number("0")), true=exp.Boolean(this=for_all)),
            exp.If(this=decided, true=exp.Boolean(this=not for_all)),
            exp.If(this=exp.GT(this=rows, expression=values), true=exp.null()),
        ],
        default=holds,
    )


def _compare(kind: type[exp.Expr], value: exp.Expr, query: exp.Query, function: str) -> exp.Expr:
    best = _of(query, lambda column: exp.Anonymous(this=function, expressions=[column]))
    return kind(this=value.copy(), expression=best)


def _of(query: exp.Query, aggregate: Callable[[exp.Expr], exp.Expr]) -> exp.Expr:
    """An aggregate of the subquery's only column."""
    name = exp.to_identifier("__trickle_quantified")
    alias = exp.TableAlias(this=exp.to_identifier("__trickle_q"), columns=[name])
    source = exp.Subquery(this=query.copy(), alias=alias)
    value = aggregate(exp.Column(this=name.copy()))
    return exp.Subquery(this=exp.Select(expressions=[value]).from_(source))
