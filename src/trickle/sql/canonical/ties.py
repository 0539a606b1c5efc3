"""What tells the rows of one SELECT apart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from sqlglot import exp

from trickle.errors import UnsupportedQuery
from trickle.sql.build.calls import GROUPING, call, function_name, is_aggregate
from trickle.sql.canonical.columns import Columns, Source


def own_nodes(query: exp.Expr) -> Iterator[exp.Expr]:
    """The nodes of a query without those of queries inside it."""
    return query.dfs(prune=lambda node: node is not query and isinstance(node, exp.Query))


def row_terms(select: exp.Select, columns: Columns, what: str) -> list[exp.Expr]:
    """Expressions that together tell the rows apart which a window function of this SELECT sees.

    Those are the rows of FROM, or of the groups: a group is known by its keys. Columns that cannot be sorted are left
    out.
    """
    if select.args.get("group") is not None:
        return _keys(select)
    if any(map(_aggregates_rows, own_nodes(select))):
        return []
    sources = columns.sources(select)
    if any(source.columns is None for source in sources):
        raise UnsupportedQuery(
            f"{what} has ties, and the columns that could decide them are not known",
            hint="order by columns that tell the rows apart, in a subquery that names them",
        )
    return [*_columns(sources)]


def _aggregates_rows(node: exp.Expr) -> bool:
    over = isinstance(node.parent, exp.Window) and node.arg_key == "this"
    wrapped = isinstance(node.parent, exp.Filter | exp.IgnoreNulls | exp.RespectNulls | exp.WithinGroup)
    return is_aggregate(node) and not over and not wrapped and not isinstance(node.parent, exp.Pivot)


def _columns(sources: list[Source]) -> Iterator[exp.Expr]:
    aliases = Counter((source.alias or "").lower() for source in sources)
    names = Counter((column.name or "").lower() for source in sources for column in source.columns or ())
    for source in sources:
        for column in source.columns or ():
            if column.name is None or not column.is_orderable:
                continue
            alone = names[column.name.lower()] == 1
            if source.alias is None and not alone:
                continue
            schema = source.schema if aliases[(source.alias or "").lower()] > 1 else None
            table = None if alone else source.alias
            yield exp.column(column.name, table=table, db=schema if table else None, quoted=True)


def _keys(select: exp.Select) -> list[exp.Expr]:
    group = select.args["group"]
    if group.args.get("all"):
        items = [_value(item) for item in select.expressions]
        return [item for item in items if not any(map(is_aggregate, item.walk())) and not _is_constant(item)]
    keys: list[exp.Expr] = []
    sets = False
    for each in (*group.expressions, *(group.args.get("rollup") or ()), *(group.args.get("cube") or ())):
        if isinstance(each, exp.Rollup | exp.Cube | exp.GroupingSets):
            sets = True
        keys += _flat(each)
    sets = sets or any(group.args.get(kind) for kind in ("rollup", "cube", "grouping_sets"))
    found = [_of_item(select, key) for key in keys]
    return [*dict.fromkeys(found), *([call("grouping_id")] if sets else [])]


def _flat(key: exp.Expr) -> Iterable[exp.Expr]:
    if isinstance(key, exp.Rollup | exp.Cube | exp.GroupingSets | exp.Tuple):
        return [inner for each in key.expressions for inner in _flat(each)]
    return _flat(key.this) if isinstance(key, exp.Paren) else [key]


def _of_item(select: exp.Select, key: exp.Expr) -> exp.Expr:
    """A key by its place, or by the alias of an item, as what it stands for."""
    items: list[exp.Expr] = select.expressions
    if isinstance(key, exp.Literal) and key.is_int and 0 < int(key.name) <= len(items):
        return _value(items[int(key.name) - 1])
    if isinstance(key, exp.Column) and not key.table:
        for item in items:
            if isinstance(item, exp.Alias) and item.alias.lower() == key.name.lower():
                return _value(item)
    return key


def _value(item: exp.Expr) -> exp.Expr:
    return item.unalias()


def _is_constant(value: exp.Expr) -> bool:
    return not any(isinstance(node, exp.Column) or function_name(node) in GROUPING for node in value.walk())


def missing(terms: Iterable[exp.Expr], present: Iterable[exp.Expr]) -> list[exp.Expr]:
    """The terms that are not there yet. A column without a qualifier is the same as one with it."""
    known = list(present)
    columns = {(each.table.lower(), each.name.lower()) for each in known if isinstance(each, exp.Column)}
    names = {name for _, name in columns}

    def is_there(term: exp.Expr) -> bool:
        if not isinstance(term, exp.Column):
            return term in known
        table, name = term.table.lower(), term.name.lower()
        return (table, name) in columns or ("", name) in columns or (not table and name in names)

    return [term for term in terms if not is_there(term)]
