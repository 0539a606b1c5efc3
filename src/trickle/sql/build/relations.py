"""FROM: tables, views, common table expressions, subqueries, VALUES, table functions, LATERAL, and their joins."""

from __future__ import annotations

from sqlglot import exp

from trickle.algebra.names import TableName, nearest
from trickle.errors import CycleError, UnknownTable, UnsupportedQuery, UserError
from trickle.operators import Expr, Operator, Scan, Values
from trickle.sql.build.context import Built, Context
from trickle.sql.build.ctes import named, use_cte
from trickle.sql.build.functions import table_function
from trickle.sql.build.generators import Generator, generator, is_generator
from trickle.sql.build.joins import applied, joined, kind_of
from trickle.sql.build.resolve import Resolver
from trickle.sql.build.scope import Relation, Scope, Source, Visible


def from_clause(context: Context, select: exp.Select, scope: Scope) -> Relation:
    """The relation of FROM with its joins and LATERAL VIEWs. Without FROM: one row."""
    from_ = select.args.get("from_")
    if from_ is None:
        relation = Relation(one_row(context), (), ())
    else:
        relation = _with_joins(context, _first(context, from_.this, scope), from_.this, scope)
    for join in select.args.get("joins") or ():
        relation = _join(context, relation, join, scope)
    for lateral in select.args.get("laterals") or ():
        relation = _lateral_view(context, relation, lateral, scope)
    return relation


def one_row(context: Context) -> Operator:
    """A single row, with a column because a relation needs one."""
    return Values((context.fresh("one"),), ((exp.Literal.number(1),),))


def _first(context: Context, node: Expr, scope: Scope) -> Relation:
    if not isinstance(node, exp.Lateral):
        return _relation(context, node, scope)
    start = Relation(one_row(context), (), ())
    return _lateral(context, start, exp.Join(this=node), scope)


def _with_joins(context: Context, relation: Relation, node: Expr, scope: Scope) -> Relation:
    for join in node.args.get("joins") or ():
        relation = _join(context, relation, join, scope)
    return relation


def _join(context: Context, left: Relation, join: exp.Join, scope: Scope) -> Relation:
    if isinstance(join.this, exp.Lateral):
        if join.this.args.get("view"):
            return _lateral_view(context, left, join.this, scope)
        return _lateral(context, left, join, scope)
    right = _with_joins(context, _relation(context, join.this, scope), join.this, scope)
    return joined(context, left, right, join, scope)


def _relation(context: Context, node: Expr, scope: Scope) -> Relation:
    _refuse_options(node)
    match node:
        case exp.Table():
            return _table(context, node, scope)
        case exp.Subquery() if _is_relation(node.this):
            inner = _with_joins(context, _relation(context, node.this, scope), node.this, scope)
            return _aliased(inner, node)
        case exp.Subquery() | exp.Query():
            # A relation of FROM sees what is outside of the SELECT, not its neighbours.
            outside = Scope(outer=scope.outer, ctes=scope.ctes)
            return _aliased(context.query(context, node, outside).relation(None), node)
        case exp.Values():
            return _aliased(values(context, node, scope).relation(None), node)
        case _:
            raise UnsupportedQuery(f"{node.key.upper()} is not supported in FROM", detail=node.sql("spark")[:80])


def _is_relation(node: Expr) -> bool:
    """Whether parentheses hold a table or a join and not a query."""
    if isinstance(node, exp.Subquery):
        return bool(node.args.get("joins") or node.args.get("alias")) or _is_relation(node.this)
    return isinstance(node, exp.Table)


def _refuse_options(node: Expr) -> None:
    if node.args.get("pivots"):
        unpivot = any(pivot.args.get("unpivot") for pivot in node.args["pivots"])
        raise UnsupportedQuery(
            f"{'UNPIVOT' if unpivot else 'PIVOT'} is not supported",
            hint="write UNION ALL, or stack()" if unpivot else "write sum(CASE WHEN ... THEN ... END) for each column",
        )
    if node.args.get("sample"):
        raise UnsupportedQuery("TABLESAMPLE is not supported", hint="filter by a hash of a column instead")
    if node.args.get("match_recognize"):
        raise UnsupportedQuery("MATCH_RECOGNIZE is not supported")
    if node.args.get("version") or node.args.get("when"):
        raise UnsupportedQuery("a version of a table is not supported here", hint="read the table itself")
    if node.args.get("changes"):
        raise UnsupportedQuery("CHANGES is not supported")


def _aliased(relation: Relation, node: Expr) -> Relation:
    """The relation under its alias, where it has one: then its parts cannot be named any more."""
    alias = node.args.get("alias")
    if not isinstance(alias, exp.TableAlias):
        return relation
    built = named(Built(relation.tree, relation.columns), _listed(alias), alias.name or "the relation")
    return Relation.of(relation.tree, built.columns, alias.name or None)


def _listed(alias: exp.TableAlias | None) -> tuple[str, ...]:
    return tuple(column.name for column in alias.columns) if alias is not None else ()


def _table(context: Context, node: exp.Table, scope: Scope) -> Relation:
    if isinstance(node.this, exp.Func):
        return _aliased(table_function(context, node.this, one_row(context), scope), node)
    parts = [part.name for part in node.parts]
    if len(parts) == 1 and (cte := scope.ctes.get(parts[0].lower())):
        return _aliased(use_cte(context, cte).relation(cte.name), node)
    name = TableName.of(parts)
    return _aliased(_known_table(context, name), node)


def _known_table(context: Context, name: TableName) -> Relation:
    if name in context.views:
        return _view(context, name)
    for known, columns in context.schemas.items():
        if known == name:
            visible = tuple(Visible(column, context.fresh(column), type_) for column, type_ in columns.items())
            tree = Scan(str(known), tuple((each.name, each.column) for each in visible))
            return Relation.of(tree, visible, name.table, name.schema)
    close = nearest(str(name), [str(known) for known in (*context.schemas, *context.views)])
    raise UnknownTable(f"no table {str(name)!r}", hint=f"did you mean {close!r}?" if close else None)


def _view(context: Context, name: TableName) -> Relation:
    if name in context.open_views:
        raise CycleError(f"the view {str(name)!r} reads itself")
    context.names.count_use()
    built = context.text(context.inside_view(name), context.views[name])
    return Relation.of(built.tree, built.columns, name.table, name.schema)


def values(context: Context, node: exp.Values, scope: Scope) -> Built:
    """VALUES: rows of expressions."""
    rows = [row.expressions if isinstance(row, exp.Tuple) else [row.unnest()] for row in node.expressions]
    resolver = Resolver(context, Scope(ctes=scope.ctes))
    resolved = tuple(tuple(resolver.resolve(value) for value in row) for row in rows)
    if len({len(row) for row in resolved}) != 1:
        raise UserError("the rows of VALUES differ in length")
    listed = _listed(node.args.get("alias")) or [f"col{n + 1}" for n in range(len(resolved[0]))]
    visible = tuple(Visible(name, context.fresh(name)) for name in listed)
    return Built(Values(tuple(each.column for each in visible), resolved), visible)


def _lateral(context: Context, left: Relation, join: exp.Join, scope: Scope) -> Relation:
    """LATERAL (SELECT ...) and LATERAL explode(...): what follows sees the relations before it."""
    node = join.this
    inside = Scope(outer=Scope.over(left, scope), ctes=scope.ctes)
    if isinstance(node.this, exp.Subquery):
        right = _aliased(context.query(context, node.this, inside).relation(None), node)
        return applied(context, left, right, join, scope)
    function = Resolver(context, inside).resolve(node.this)
    if not is_generator(function) or not _keeps_all(join):
        right = _aliased(table_function(context, node.this, one_row(context), inside), node)
        return applied(context, left, right, join, scope)
    alias = node.args.get("alias")
    outer = kind_of(join) == "left"
    return _generated(left, generator(context, function, _listed(alias), inside, outer=outer), alias)


def _keeps_all(join: exp.Join) -> bool:
    """Whether a join has no condition of its own, so that a generator's rows are the joined rows."""
    on = join.args.get("on")
    plain = not join.method and not join.args.get("using") and kind_of(join) in ("inner", "left")
    return plain and (on is None or on == exp.true())


def _lateral_view(context: Context, left: Relation, node: exp.Lateral, scope: Scope) -> Relation:
    inside = Scope.over(left, scope)
    function = Resolver(context, inside).resolve(node.this)
    alias = node.args.get("alias")
    outer = bool(node.args.get("outer"))
    return _generated(left, generator(context, function, _listed(alias), inside, outer=outer), alias)


def _generated(left: Relation, made: Generator, alias: exp.TableAlias | None) -> Relation:
    right = Source(alias.name if alias else None, made.columns)
    return Relation(made.over(left.tree), (*left.sources, right), (*left.columns, *made.columns))
