"""Subqueries of expressions as Apply nodes.

A condition of WHERE or HAVING that *is* an [NOT] EXISTS, [NOT] IN, ANY or ALL keeps or drops rows, so it is a semi or
anti apply. With c for the comparison of the operands with a row of the subquery:

    EXISTS q       semi                     NOT EXISTS q       anti
    x IN q         semi c                   x NOT IN q         anti (c is true or NULL)
    x op ANY q     semi c                   NOT x op ANY q     anti (c is true or NULL)
    x op ALL q     anti (NOT c is true or NULL)    NOT x op ALL q    semi NOT c

since a row passes only when the condition is true: NOT IN is true when c is false for every row, ALL when c is true for
every row; ``coalesce(c, true)`` says that c is true or NULL.

Anywhere else the value itself counts. A mark is true when c is true for some row, NULL when it is NULL for some and
true for none, else false: that is IN and ANY. ALL is ``NOT mark(NOT c)``: false when c is false for some row, NULL when
it is NULL for some and false for none, else true.

Spark departs from that: as a value, both IN and NOT IN are false where SQL says NULL (it makes existence joins of
them). So do we, unless the standard is asked for, since what we keep must equal what Spark computes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto

from sqlglot import exp

from trickle.errors import UserError
from trickle.operators import Apply, ApplyKind, Expr, Filter, Operator, Output, Project, col
from trickle.sql.build.calls import call
from trickle.sql.build.context import Built, Context, Pending
from trickle.sql.build.negations import has_subquery, is_subquery, negations_inwards
from trickle.sql.build.resolve import enclosed


class Use(Enum):
    """What a subquery is for."""

    EXISTS = auto()
    ANY = auto()
    ALL = auto()
    SCALAR = auto()


def attached(
    context: Context, tree: Operator, expressions: Sequence[Expr], names: Mapping[str, str] | None = None
) -> tuple[Operator, list[Expr]]:
    """The tree with an apply for each subquery of the expressions, and the expressions over their outputs.

    ``names`` are columns that have other names here than in the scope that the subqueries were read in.
    """
    applier = Applier(context, tree, names or {})
    rewritten = [applier.rewritten(each) for each in expressions]
    return applier.tree, rewritten


def filtered(
    context: Context, tree: Operator, condition: Expr | None, names: Mapping[str, str] | None = None
) -> Operator:
    """The rows for which a condition holds. Conditions without subqueries come first: they make the others cheap."""
    if condition is None:
        return tree
    plain: list[Expr] = []
    applied: list[Expr] = []
    for each in conjuncts(negations_inwards(condition)):
        (applied if has_subquery(each) else plain).append(each)
    if plain:
        tree = Filter(tree, conjunction(plain))
    for each in applied:
        applier = Applier(context, tree, names or {})
        applier.keep_where(each)
        tree = applier.tree
    return tree


def conjuncts(condition: Expr) -> Iterator[Expr]:
    """The conditions that AND connects."""
    stack = [condition]
    while stack:
        node = stack.pop().unnest()
        if isinstance(node, exp.And):
            stack += (node.expression, node.this)
        else:
            yield node


def conjunction(conditions: Sequence[Expr]) -> Expr:
    """The conditions connected by AND."""
    return exp.and_(*conditions, copy=True)


@dataclass
class Applier:
    """Adds applies to a tree, one for each subquery that it meets; equal ones are shared."""

    context: Context
    tree: Operator
    names: Mapping[str, str]
    done: dict[Expr, Expr] = field(default_factory=dict)

    def rewritten(self, expression: Expr) -> Expr:
        """The expression with its subqueries replaced by outputs of applies."""

        def replaced(node: Expr) -> Expr:
            inner = node.this.unnest() if isinstance(node, exp.Not) else node
            if not is_subquery(inner):
                return node
            value = self._value_once(inner)
            if inner is not node:
                value = exp.Not(this=value)
            two_valued = isinstance(self._pending(inner).node, exp.In) and not self.context.standard
            return call("coalesce", value, exp.false()) if two_valued else value

        return negations_inwards(expression).transform(replaced, copy=False)

    def _value_once(self, node: Expr) -> Expr:
        if node not in self.done:
            self.done[node.copy()] = self._value(node)
        return self.done[node].copy()

    def keep_where(self, condition: Expr) -> None:
        """Keep the rows for which a condition that holds a subquery is true."""
        negated, inner = False, condition.unnest()
        while isinstance(inner, exp.Not):
            negated, inner = not negated, inner.this.unnest()
        if not is_subquery(inner):
            value = self.rewritten(condition)
            self.tree = Filter(self.tree, value)
            return
        pending = self._pending(inner)
        use = use_of(pending)
        if use is Use.SCALAR:
            value = self.rewritten(condition)
            self.tree = Filter(self.tree, value)
            return
        built, holds = self._compared(pending, inner)
        if use is Use.ALL and holds is not None:
            negated, holds = not negated, exp.Not(this=enclosed(holds))
        if negated and holds is not None:
            holds = call("coalesce", holds, exp.true())
        self.tree = Apply(ApplyKind.ANTI if negated else ApplyKind.SEMI, self.tree, built.tree, holds)

    def _value(self, node: Expr) -> Expr:
        pending = self._pending(node)
        use = use_of(pending)
        built, holds = self._compared(pending, node)
        if use is Use.SCALAR:
            if len(built.columns) != 1:
                raise UserError("a subquery that is a value has one column", detail=f"it has {len(built.columns)}")
            only = Project(built.tree, Output.keep([built.columns[0].column]))
            output = self.context.fresh("scalar")
            self.tree = Apply(ApplyKind.SCALAR, self.tree, only, None, output)
            return col(output)
        if use is Use.ALL and holds is not None:
            holds = exp.Not(this=enclosed(holds))
        output = self.context.fresh("mark")
        self.tree = Apply(ApplyKind.MARK, self.tree, built.tree, holds, output)
        return exp.paren(exp.Not(this=col(output))) if use is Use.ALL else col(output)

    def _pending(self, node: Expr) -> Pending:
        return self.context.pending[int(node.expressions[0].name)]

    def _compared(self, pending: Pending, node: Expr) -> tuple[Built, Expr | None]:
        """The subquery's tree, and the comparison of the operands with its columns."""
        operands = [self.rewritten(each) for each in node.expressions[1:]]
        scope = pending.scope.renamed(self.names).inside()
        built = self.context.query(self.context, subquery_of(pending), scope)
        if not operands:
            return built, None
        if len(operands) != len(built.columns):
            raise UserError(
                "the two sides of IN differ in columns",
                detail=f"{len(operands)} on the left, {len(built.columns)} in the subquery",
            )
        kind = exp.EQ if isinstance(pending.node, exp.In) else type(pending.node)
        pairs = zip(operands, built.columns, strict=True)
        compared = [kind(this=enclosed(left), expression=col(right.column)) for left, right in pairs]
        return built, conjunction(compared)


def use_of(pending: Pending) -> Use:
    """What a subquery is used for."""
    match pending.node:
        case exp.Exists():
            return Use.EXISTS
        case exp.In():
            return Use.ANY
        case exp.Subquery():
            return Use.SCALAR
        case node:
            return Use.ALL if isinstance(node.expression, exp.All) else Use.ANY


def subquery_of(pending: Pending) -> Expr:
    """The query of a subquery. EXISTS does not care about how many rows there are, or in which order."""
    if not isinstance(pending.node, exp.Exists):
        return pending.query
    query = pending.query.copy()
    limit = query.args.get("limit")
    if isinstance(limit, exp.Limit) and limit.expression.is_int and limit.expression.to_py() > 0:
        query.set("limit", None)
    return query
