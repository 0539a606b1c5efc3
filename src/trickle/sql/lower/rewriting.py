"""Helpers for changing trees that were read as Spark SQL."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from trickle.operators import Expr

_CASTS = {
    "bigint": exp.DType.BIGINT,
    "binary": exp.DType.BINARY,
    "boolean": exp.DType.BOOLEAN,
    "date": exp.DType.DATE,
    "double": exp.DType.DOUBLE,
    "float": exp.DType.FLOAT,
    "smallint": exp.DType.SMALLINT,
    "tinyint": exp.DType.TINYINT,
}


def rewritten(holder: Expr, change: Callable[[Expr], Expr]) -> None:
    """Replace every node below the holder, inner ones first. A changed node is not visited again."""
    for node in list(holder.walk(bfs=False))[:0:-1]:
        changed = change(node)
        if changed is not node:
            node.replace(changed)


def spelled(node: Expr) -> Expr:
    """Functions of Spark's that sqlglot does not know and every dialect has in other words."""
    match node:
        case exp.Any() if not node.find(exp.Query):
            return exp.LogicalOr(this=node.this.unnest())
        case exp.CountIf():
            # Elsewhere it is a sum, and NULL over no rows.
            return exp.Count(this=exp.Case(ifs=[exp.If(this=node.this, true=exp.Literal.number(1))]))
        case exp.Anonymous():
            return _function(node)
        case _:
            return node


def _function(node: exp.Anonymous) -> Expr:
    arguments = node.expressions
    match node.name.lower(), len(arguments):
        case "isnull", 1:
            return exp.paren(exp.Is(this=arguments[0], expression=exp.null()), copy=False)
        case "isnotnull", 1:
            return exp.paren(exp.Not(this=exp.Is(this=arguments[0], expression=exp.null())), copy=False)
        case "every", 1:
            return exp.LogicalAnd(this=arguments[0])
        case (("any" | "some"), 1):
            return exp.LogicalOr(this=arguments[0])
        case "std", 1:
            return exp.Stddev(this=arguments[0])
        case "try_sum", 1:
            return exp.Sum(this=arguments[0])
        case "try_avg", 1:
            return exp.Avg(this=arguments[0])
        case "zeroifnull", 1:
            return exp.Coalesce(this=arguments[0], expressions=[exp.Literal.number(0)])
        case "pmod", 2:
            return _positive_modulo(*arguments)
        case ("try_add" | "try_subtract" | "try_multiply") as name, 2:
            kind = {"try_add": exp.Add, "try_subtract": exp.Sub, "try_multiply": exp.Mul}[name]
            return exp.paren(kind(this=_tight(arguments[0]), expression=_tight(arguments[1])), copy=False)
        case name, 1 if name in _CASTS:
            return exp.cast(arguments[0], _CASTS[name])
        case _:
            return node


def _tight(value: Expr) -> Expr:
    return exp.paren(value, copy=False) if isinstance(value, exp.Binary | exp.Unary) else value


def _positive_modulo(value: Expr, by: Expr) -> Expr:
    def modulo(left: Expr) -> Expr:
        return exp.Mod(this=exp.paren(left), expression=exp.paren(by))

    rest = modulo(value)
    negative = exp.LT(this=rest, expression=exp.Literal.number(0))
    raised = modulo(exp.Add(this=rest.copy(), expression=exp.paren(by)))
    return exp.Case(ifs=[exp.If(this=negative, true=raised)], default=rest.copy())
