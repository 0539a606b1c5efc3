"""ORDER BY with LIMIT or OFFSET: rows that are equal in the order must not be equal in what is shown.

The order is followed by all columns of the result that it does not name yet: then equal rows are the same row. An item
of the select list is named by its alias, a plain column by itself, and any other item by its place.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from sqlglot import exp

from trickle.errors import UnsupportedQuery
from trickle.sql.canonical.aggregates import ascending
from trickle.sql.canonical.columns import Columns, is_orderable
from trickle.sql.canonical.ties import missing


def settle_limit(query: exp.Expr, columns: Columns) -> Iterator[str]:
    """Make the order of a query that takes its first rows total, in place; yields what was done, in words."""
    order = query.args.get("order")
    if order is None or not _is_limited(query) or any(isinstance(term.this, exp.Var) for term in order.expressions):
        return
    terms = _of_items(query, columns) if isinstance(query, exp.Select) else _of_columns(query, columns)
    present = [_named(query, term.this) for term in order.expressions]
    more = missing([term for term in terms if term not in present], present)
    if not more:
        return
    for term in more:
        order.append("expressions", ascending(term))
    yield "ORDER BY with LIMIT has ties: ordered by all columns as well"


def _is_limited(query: exp.Expr) -> bool:
    limit = query.args.get("limit")
    everything = isinstance(limit, exp.Limit) and isinstance(limit.expression, exp.Var)
    return (limit is not None and not everything) or query.args.get("offset") is not None


def _of_items(select: exp.Select, columns: Columns) -> list[exp.Expr]:
    names = Counter(item.alias_or_name.lower() for item in select.expressions)
    found: list[exp.Expr] = []
    place = 0
    for item in select.expressions:
        star = item if isinstance(item, exp.Star) else item.this if isinstance(item, exp.Column) else None
        if isinstance(star, exp.Star):
            shown = columns.star(select, star, item.table if isinstance(item, exp.Column) else None)
            found += _of_star(select, item, shown, columns)
            place += len(shown or ())
            continue
        place += 1
        value = item.this if isinstance(item, exp.Alias) else item
        if not is_orderable(columns.type_of(select, value)) or isinstance(value, exp.Literal | exp.Null):
            continue
        named = isinstance(item, exp.Alias | exp.Column) and names[item.alias_or_name.lower()] == 1
        if named and isinstance(item, exp.Alias):
            found.append(exp.column(item.alias, quoted=True))
        else:
            found.append(item.copy() if named else exp.Literal.number(place))
    return found


def _of_star(select: exp.Select, item: exp.Expr, shown: object, columns: Columns) -> Iterator[exp.Expr]:
    if shown is None:
        raise _unknown(item)
    wanted = item.table.lower() if isinstance(item, exp.Column) else None
    names = Counter((each.name or "").lower() for source in columns.sources(select) for each in source.columns or ())
    for source in columns.sources(select):
        if wanted is not None and (source.alias or "").lower() != wanted:
            continue
        for each in source.columns or ():
            if each.name is not None and each.is_orderable:
                alone = names[each.name.lower()] == 1
                yield exp.column(each.name, table=None if alone else source.alias, quoted=True)


def _of_columns(query: exp.Expr, columns: Columns) -> list[exp.Expr]:
    outputs = columns.outputs(query)
    if outputs is None:
        raise _unknown(query)
    names = Counter((column.name or "").lower() for column in outputs)
    return [
        exp.column(column.name, quoted=True)
        if column.name is not None and names[column.name.lower()] == 1
        else exp.Literal.number(place)
        for place, column in enumerate(outputs, start=1)
        if column.is_orderable
    ]


def _named(query: exp.Expr, term: exp.Expr) -> exp.Expr:
    """What a term of the order stands for: an item's place, or its expression, as the item is named by us."""
    items = query.expressions if isinstance(query, exp.Select) else []
    if isinstance(term, exp.Literal) and term.is_int and 0 < int(term.name) <= len(items):
        item = items[int(term.name) - 1]
        return item if isinstance(item, exp.Column) else exp.column(item.alias) if item.alias else term
    for place, item in enumerate(items, start=1):
        value = item.this if isinstance(item, exp.Alias) else item
        if value == term and not isinstance(term, exp.Column):
            return exp.column(item.alias) if item.alias else exp.Literal.number(place)
    return term


def _unknown(node: exp.Expr) -> UnsupportedQuery:
    return UnsupportedQuery(
        "ORDER BY with LIMIT may have ties, and the columns that could decide them are not known",
        detail=node.sql("spark")[:80],
        hint="name the columns instead of *",
    )
