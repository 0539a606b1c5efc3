"""A user's Spark SQL as DuckDB's: sqlglot's translation of the query, ours of what it gets wrong.

It knows nothing of operator trees, so it can judge them.
"""

from __future__ import annotations

from collections.abc import Callable

import sqlglot
from sqlglot import exp

from trickle.sql.lower.dialects import adapted, written
from trickle.sql.lower.generators import lateral_join

_DEFAULT_NAMES = {"explode": ["col"], "posexplode": ["pos", "col"]}


def to_duckdb(text: str, name_of: Callable[[str], str]) -> str:
    """The query in DuckDB's words. ``name_of`` tells what a table (named as in the text) is called there.

    >>> to_duckdb("SELECT a * 2 AS h FROM t LEFT ANTI JOIN u ON t.a <=> u.b", lambda name: name + "@new")
    'SELECT a * 2 AS h FROM "t@new" AS t ANTI JOIN "u@new" AS u ON t.a IS NOT DISTINCT FROM u.b'
    """
    tree = sqlglot.parse_one(text, read="spark")
    _bind(tree, name_of)
    for select in list(tree.find_all(exp.Select)):
        _join_laterals(select)
    return written(adapted(tree, "duckdb"), "duckdb")


def _bind(tree: exp.Expr, name_of: Callable[[str], str]) -> None:
    for table in list(tree.find_all(exp.Table)):
        name = ".".join(part.name for part in table.parts)
        if not isinstance(table.this, exp.Identifier) or (not table.db and _is_cte(table)):
            continue
        # The table keeps the name under which the query's columns refer to it.
        if not table.alias:
            table.set("alias", exp.TableAlias(this=table.this.copy()))
        table.set("this", exp.to_identifier(name_of(name), quoted=True))
        table.set("db", None)


def _is_cte(table: exp.Table) -> bool:
    node: exp.Expr | None = table
    while node is not None:
        clause = node.args.get("with_")
        if clause and any(cte.alias.lower() == table.name.lower() for cte in clause.expressions):
            return True
        node = node.parent
    return False


def _join_laterals(select: exp.Select) -> None:
    """Generators in FROM, which sqlglot reads as it should and writes without OUTER."""
    joins = select.args.get("joins") or []
    for join in joins:
        if isinstance(join.this, exp.Lateral) and not isinstance(join.this.this, exp.Subquery):
            join.replace(_lateral_join(join.this))
    views = [view for view in select.args.get("laterals") or [] if not isinstance(view.this, exp.Subquery)]
    if views:
        select.set("laterals", None)
        select.set("joins", [*(select.args.get("joins") or []), *map(_lateral_join, views)])


def _lateral_join(view: exp.Lateral) -> exp.Join:
    alias = view.args["alias"]
    name = view.this.sql("spark").partition("(")[0].lower()
    first = [] if isinstance(view.this, exp.Anonymous) else [view.this.this]
    generator = exp.Anonymous(this=name, expressions=[*first, *view.this.expressions])
    names = [column.name for column in alias.columns] or _DEFAULT_NAMES[name.removesuffix("_outer")]
    made = alias.this or exp.to_identifier("made")
    return lateral_join(generator, names, made, "duckdb", outer=bool(view.args.get("outer")))
