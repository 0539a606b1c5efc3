"""The columns of the relations in a query's tree, by name, as far as they are known.

It reads as Spark does: a name in FROM is a common table expression in scope there, else a table or a view. ``None`` in
place of columns says that they are not known (PIVOT, functions with names of their own).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from trickle.algebra.names import DEFAULT_SCHEMA, TableName
from trickle.errors import InvalidName
from trickle.sql.build.calls import function_name
from trickle.sql.canonical.parsing import root_of

Schemas = Mapping[TableName, Mapping[str, str]]

# What generators call their columns when the query does not.
_GENERATED = {
    "explode": ("col",),
    "explode_outer": ("col",),
    "posexplode": ("pos", "col"),
    "posexplode_outer": ("pos", "col"),
    "range": ("id",),
}
_MAPS = frozenset(
    (
        "map",
        "map_concat",
        "map_filter",
        "map_from_arrays",
        "map_from_entries",
        "map_zip_with",
        "str_to_map",
        "transform_keys",
        "transform_values",
    )
)
_VARIANTS = frozenset(("parse_json", "to_variant_object", "try_parse_json", "try_variant_get", "variant_get"))


@dataclass(frozen=True)
class Column:
    """A column of a relation: its name, unless Spark makes one up, and its type where that is known."""

    name: str | None
    type: str | None = None

    @property
    def is_orderable(self) -> bool:
        return is_orderable(self.type)


@dataclass(frozen=True)
class Source:
    """A relation of FROM."""

    alias: str | None
    columns: tuple[Column, ...] | None
    schema: str | None = None
    # Columns that it shares with a relation before it: USING and NATURAL show them once.
    merged: frozenset[str] = frozenset()


def is_orderable(type_: str | None) -> bool:
    """Whether values of a type can be sorted; a type that is not known is taken to be.

    >>> is_orderable("array<struct<a:int>>"), is_orderable("struct<m:map<int,int>>"), is_orderable(None)
    (True, False, True)
    """
    lowered = (type_ or "").lower()
    return "map<" not in lowered and "variant" not in lowered and lowered != "interval"


class Columns:
    """Looks columns up."""

    def __init__(self, schemas: Schemas, views: Mapping[TableName, str], max_depth: int) -> None:
        self._schemas = schemas
        self._views = views
        self._max_depth = max_depth
        self._open: list[TableName] = []

    def outputs(self, query: exp.Expr) -> tuple[Column, ...] | None:
        """The columns of a query's result."""
        match query:
            case exp.Select():
                found: list[Column] = []
                for item in query.expressions:
                    columns = self._item(query, item)
                    if columns is None:
                        return None
                    found += columns
                return tuple(found)
            case exp.SetOperation():
                return self.outputs(query.this)
            case exp.Subquery():
                return _called(self.outputs(query.this), query.args.get("alias"))
            case exp.Values():
                row = query.expressions[0]
                count = len(row.expressions) if isinstance(row, exp.Tuple) else 1
                columns = tuple(Column(f"col{place}") for place in range(1, count + 1))
                return _called(columns, query.args.get("alias"))
            case _:
                return None

    def sources(self, select: exp.Select) -> list[Source]:
        """The relations of FROM whose columns can be named."""
        found: list[Source] = []
        first = select.args.get("from_")
        if first is not None:
            found += map(self._source, _with_joined(first.this))
        for join in select.args.get("joins") or ():
            for nested in _with_joined(join.this):
                source = self._source(nested)
                if join.args.get("kind") in ("SEMI", "ANTI"):
                    continue
                shared = {each.name.lower() for each in join.args.get("using") or ()}
                if join.args.get("method") == "NATURAL":
                    before = {name for each in found for name in _names(each)}
                    shared = set(_names(source)) & before
                found.append(replace(source, merged=frozenset(shared)))
        found += [self._source(lateral) for lateral in select.args.get("laterals") or ()]
        return found

    def type_of(self, select: exp.Expr | None, value: exp.Expr) -> str | None:
        """The type of an expression, as far as it matters for sorting."""
        match value:
            case exp.Column() if isinstance(select, exp.Select):
                for source in self.sources(select):
                    if value.table and (source.alias or "").lower() != value.table.lower():
                        continue
                    for column in source.columns or ():
                        if (column.name or "").lower() == value.name.lower():
                            return column.type
                return None
            case exp.Paren():
                return self.type_of(select, value.this)
            case exp.Cast():
                return value.to.sql("spark").lower()
            case exp.Anonymous() if value.name.lower() in _MAPS:
                return "map<>"
            case exp.Anonymous() if value.name.lower() in _VARIANTS:
                return "variant"
            case _:
                return None

    def _item(self, select: exp.Select, item: exp.Expr) -> Sequence[Column] | None:
        match item:
            case exp.Star():
                return self.star(select, item, None)
            case exp.Column(this=exp.Star() as star):
                return self.star(select, star, item.table)
            case exp.Aliases():
                return [Column(name.name) for name in item.expressions]
            case exp.Alias():
                return [Column(item.alias, self.type_of(select, item.this))]
            case exp.Column():
                return [Column(item.name, self.type_of(select, item))]
            case exp.Dot():
                return [Column(item.expression.name)]
            case _:
                return [Column(name) for name in _GENERATED.get(function_name(item) or "", (None,))]

    def star(self, select: exp.Select, star: exp.Star, table: str | None) -> list[Column] | None:
        """What a star stands for; None when it is not known."""
        left_out = {each.name.lower() for each in star.args.get("except_") or ()}
        if star.args.get("replace") or star.args.get("rename"):
            return None
        found: list[Column] = []
        for source in self.sources(select):
            if table is not None and (source.alias or "").lower() != table.lower():
                continue
            if source.columns is None:
                return None
            merged = source.merged if table is None else frozenset[str]()
            found += [each for each in source.columns if (each.name or "").lower() not in left_out | merged]
        return found or None

    def _source(self, node: exp.Expr) -> Source:
        alias = node.args.get("alias")
        name = alias.name or None if isinstance(alias, exp.TableAlias) else None
        if node.args.get("pivots"):
            return Source(name, None)
        match node:
            case exp.Table() if isinstance(node.this, exp.Identifier):
                schema = None if name else node.db or DEFAULT_SCHEMA
                return Source(name or node.name, _called(self._table(node), alias), schema)
            case exp.Table() | exp.Lateral() if not isinstance(node.this, exp.Query):
                made = _GENERATED.get(function_name(node.this) or "")
                columns = None if made is None else tuple(map(Column, made))
                if alias is not None and alias.args.get("columns"):
                    columns = tuple(Column(each.name) for each in alias.args["columns"])
                return Source(name or function_name(node.this), columns)
            case exp.Lateral():
                return Source(name, _called(self.outputs(node.this), alias))
            case _:
                return Source(name, self.outputs(node))

    def _table(self, table: exp.Table) -> tuple[Column, ...] | None:
        if not table.db and (cte := _cte(table)) is not None:
            return _called(self.outputs(cte.this), cte.args.get("alias"))
        try:
            name = TableName.of([part.name for part in table.parts])
        except InvalidName:
            return None
        if name in self._schemas:
            return tuple(Column(column, type_) for column, type_ in self._schemas[name].items())
        if name not in self._views or name in self._open:
            return None
        self._open.append(name)
        try:
            return self.outputs(root_of(self._views[name], self._max_depth))
        finally:
            self._open.pop()


def _with_joined(node: exp.Expr) -> Iterator[exp.Expr]:
    """A relation, and those that it is joined with inside of parentheses."""
    yield node
    for join in node.args.get("joins") or ():
        yield from _with_joined(join.this)


def _names(source: Source) -> Iterator[str]:
    return ((column.name or "").lower() for column in source.columns or ())


def _called(columns: tuple[Column, ...] | None, alias: exp.Expr | None) -> tuple[Column, ...] | None:
    """The columns under the names that an alias gives them: ``AS t(a, b)``."""
    names = [each.name for each in alias.args.get("columns") or ()] if isinstance(alias, exp.TableAlias) else []
    if not names:
        return columns
    if columns is None or len(columns) != len(names):
        return tuple(map(Column, names))
    return tuple(replace(column, name=name) for column, name in zip(columns, names, strict=True))


def _cte(table: exp.Table) -> exp.CTE | None:
    """The common table expression that a name means where it stands."""
    inside: exp.Expr = table
    node = table.parent
    while node is not None:
        with_ = node.args.get("with_")
        if isinstance(with_, exp.With):
            known: list[exp.CTE] = list(with_.expressions)
            if isinstance(inside, exp.With):
                place = next(index for index, cte in enumerate(known) if _holds(cte, table))
                known = known[: place + 1] if with_.args.get("recursive") else known[:place]
            for cte in reversed(known):
                if cte.alias.lower() == table.name.lower():
                    return cte
        inside, node = node, node.parent
    return None


def _holds(ancestor: exp.Expr, node: exp.Expr | None) -> bool:
    while node is not None and node is not ancestor:
        node = node.parent
    return node is ancestor
