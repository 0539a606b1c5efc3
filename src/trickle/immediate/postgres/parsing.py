"""PostgreSQL's text of a query to a tree that the builder takes (pure).

What is read is ``pg_get_viewdef``: PostgreSQL has resolved every name, written out every star and every implicit cast,
and qualified what lies outside of pg_catalog. Expressions stay PostgreSQL's. Three things are respelled, so that the
builder, which knows Spark's SQL, does not take them for something else:

    schema.table            a name made of the table's number (``tables.label``), with the table's name as alias
    functions               those that mean something else to the builder, or that it does not know as aggregates,
                            are hidden (``sql/lower/postgres.py``)
    x = ANY (array)         IN for a list, else a hidden function: only the quantifier over a query is the builder's
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

from sqlglot import exp
from sqlglot.dialects.postgres import Postgres
from sqlglot.errors import SqlglotError
from sqlglot.parsers.postgres import PostgresParser

from trickle.errors import UnsupportedQuery
from trickle.operators import Expr
from trickle.postgres.names import identifier
from trickle.sql.build.calls import AGGREGATES, GENERATORS, GROUPING
from trickle.sql.depth import room_to_recurse
from trickle.sql.lower.postgres import hidden_function

# These mean the same to the builder and to the rules of aggregates.
_SHARED = frozenset(("avg", "count", "max", "min", "sum"))
_TAKEN = AGGREGATES | GENERATORS | {"array", "count_if", "sequence", "array_repeat", "raise_error", "first"}
_CLOCKS = (exp.CurrentDate, exp.CurrentTime, exp.CurrentTimestamp, exp.Localtime, exp.Localtimestamp)
_SESSION = (exp.CurrentUser, exp.SessionUser, exp.CurrentSchema, exp.CurrentCatalog, exp.CurrentRole)


class _Parser(PostgresParser):
    # Functions keep their names and arguments.
    FUNCTIONS: ClassVar[dict[str, Callable[..., exp.Expr]]] = {}
    FUNCTION_PARSERS: ClassVar[dict[str, Callable[..., exp.Expr | None]]] = {
        name: parser
        for name, parser in PostgresParser.FUNCTION_PARSERS.items()
        if name in ("CAST", "EXTRACT", "NORMALIZE", "OVERLAY", "POSITION", "SUBSTRING", "TRIM")
    }


@dataclass(frozen=True)
class Function:
    """A function as the text names it; ``schema`` is None for one of pg_catalog."""

    schema: str | None
    name: str


@dataclass(frozen=True)
class Relation:
    """A relation as the text names it."""

    schema: str
    name: str


def parsed(text: str) -> Expr:
    """The tree of a query, as it is written."""
    dialect = Postgres()
    try:
        with room_to_recurse():
            trees = _Parser(dialect=dialect).parse(dialect.tokenize(text), text)
    except SqlglotError as error:
        raise UnsupportedQuery("the query cannot be read", detail=str(error).split("\n", 1)[0]) from error
    if len(trees) != 1 or not isinstance(trees[0], exp.Query | exp.Values):
        raise UnsupportedQuery("one query is expected", detail=text[:80])
    return trees[0]


def spelled(tree: Expr) -> str:
    """The text of a tree, as PostgreSQL reads it."""
    return tree.sql("postgres", normalize_functions=False, comments=False)


def relations(tree: Expr) -> set[Relation]:
    """The tables and views that a query names."""
    return {found for table in tree.find_all(exp.Table) if (found := _relation(tree, table)) is not None}


def _relation(tree: Expr, table: exp.Table) -> Relation | None:
    """What a name stands for. Unqualified are relations of pg_catalog, and common table expressions."""
    if not isinstance(table.this, exp.Identifier):
        return None
    if table.db:
        return Relation(table.db, table.name)
    is_cte = any(cte.alias == table.name for cte in tree.find_all(exp.CTE))
    return None if is_cte else Relation("pg_catalog", table.name)


def functions(tree: Expr) -> set[Function]:
    """The functions that a query calls."""
    found = {
        Function(None, node.name.lower())
        for node in tree.find_all(exp.Anonymous)
        if not isinstance(node.parent, exp.Dot)
    }
    return found | {Function(_schema_of(dot), dot.expression.name) for dot in _qualified(tree)}


def refuse_clocks(tree: Expr) -> None:
    """Refuse what gives another value at another time or in another session."""
    ages = (node for node in tree.find_all(exp.Anonymous) if node.name.lower() == "age" and len(node.expressions) == 1)
    for node in (*tree.find_all(*_CLOCKS), *ages):
        raise UnsupportedQuery(
            f"{spelled(node)} depends on the time",
            detail="the result would change without a change of its sources",
            hint="use DIFFERENTIAL, or compare with the time when you read the stream table",
        )
    for user in tree.find_all(*_SESSION):
        raise UnsupportedQuery(
            f"{spelled(user)} depends on the session", detail="every writer would see another result"
        )


def respelled(tree: Expr, labels: Mapping[Relation, str], aggregates: frozenset[Function]) -> Expr:
    """The tree as the builder takes it."""
    tree = tree.copy()
    for table in list(tree.find_all(exp.Table)):
        if (relation := _relation(tree, table)) is not None:
            _relabel(table, labels[relation])
        elif isinstance(table.this, exp.Values):
            # sqlglot takes VALUES at the start of a join in parentheses for a table.
            table.replace(exp.Subquery(this=table.this, alias=table.args.get("alias"), joins=table.args.get("joins")))
    # Inner ones first: what is around them is copied.
    for dot in reversed(list(_qualified(tree))):
        dot.replace(_hidden(dot.expression, identifier(_schema_of(dot), dot.expression.name)))
    for node in list(tree.find_all(exp.Anonymous)):
        name = node.name.lower()
        is_aggregate = Function(None, name) in aggregates
        if (is_aggregate and name not in _SHARED | GROUPING) or (name in _TAKEN and not is_aggregate):
            node.set("this", hidden_function(node.name))
    for quantifier in list(tree.find_all(exp.Any)):
        _respell_any(quantifier)
    return tree


def hidden_aggregates(aggregates: frozenset[Function]) -> frozenset[str]:
    """What aggregate functions are called in a respelled tree."""
    return frozenset(
        hidden_function(each.name if each.schema is None else identifier(each.schema, each.name)) for each in aggregates
    )


def _qualified(tree: Expr) -> Iterator[exp.Dot]:
    return (dot for dot in tree.find_all(exp.Dot) if isinstance(dot.expression, exp.Anonymous))


def _schema_of(dot: exp.Dot) -> str:
    return str(dot.this.name)


def _hidden(call: exp.Anonymous, text: str) -> exp.Anonymous:
    return exp.Anonymous(this=hidden_function(text), expressions=[argument.copy() for argument in call.expressions])


def _relabel(table: exp.Table, label: str) -> None:
    if table.args.get("alias") is None:
        table.set("alias", exp.TableAlias(this=exp.to_identifier(table.name, quoted=True)))
    table.set("this", exp.to_identifier(label))
    table.set("db", None)
    table.set("only", None)


def _respell_any(node: exp.Any) -> None:
    inner, compared = node.this.unnest(), node.parent
    if isinstance(inner, exp.Query) or compared is None:
        return
    if isinstance(inner, exp.Array) and inner.expressions and isinstance(compared, exp.EQ):
        listed = [each.copy() for each in inner.expressions]
        compared.replace(exp.In(this=compared.this.copy(), expressions=listed))
        return
    node.replace(exp.Anonymous(this=hidden_function("ANY"), expressions=[inner.copy()]))
