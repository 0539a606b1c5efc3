"""DISTINCT and DISTINCT ON.

DISTINCT keeps the groups of the SELECT list. DISTINCT ON keeps the first row of each key, by ORDER BY and then by all
columns of the result, so that the same row always wins.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sqlglot import exp

from trickle.errors import UserError
from trickle.operators import Aggregate, Expr, Filter, Operator, Output, Project, Window, col, column_names
from trickle.sql.build.calls import call
from trickle.sql.build.context import Context
from trickle.sql.build.ordering import Term


def distinct_rows(tree: Operator, shown: Sequence[Output], extra: Sequence[Output]) -> Operator:
    """The groups of the list. What is ordered by besides is computed of the list's columns."""
    tree = Aggregate(Project(tree, tuple(shown)), tuple(output.name for output in shown))
    if not extra:
        return tree
    by_value = {output.value: col(output.name) for output in shown}

    def over_list(node: Expr) -> Expr:
        return by_value[node].copy() if node in by_value else node

    computed = tuple(Output(each.name, each.value.transform(over_list)) for each in extra)
    for each in computed:
        if missing := sorted(column_names(each.value) - set(tree.columns)):
            raise UserError(f"DISTINCT cannot be ordered by {missing[0]!r}, which is not in the SELECT list")
    return Project(tree, (*Output.keep(tree.columns), *computed))


def first_of_each(
    context: Context, tree: Operator, keys: Sequence[str], terms: Sequence[Term], columns: Iterable[str]
) -> Operator:
    """The first row of each key, by terms that are columns of the tree and then by the columns."""
    ties = [Term(col(name), descending=False, nulls_first=True) for name in columns]
    order = [
        exp.Ordered(this=term.value.copy(), desc=term.descending, nulls_first=term.nulls_first)
        for term in (*terms, *ties)
    ]
    partition = tuple(dict.fromkeys(keys))
    number = exp.Window(
        this=call("row_number"),
        partition_by=[col(key) for key in partition],
        order=exp.Order(expressions=order),
        over="OVER",
    )
    place = context.fresh("row_number")
    ranked = Window(tree, partition, (Output(place, number),))
    return Filter(ranked, exp.EQ(this=col(place), expression=exp.Literal.number(1)))
