"""Generators: ``LATERAL VIEW`` in Spark; in the other dialects a lateral subquery that unnests arrays side by side.

explode(array)        the array
explode(map)          its keys, its values (known by its two names)
posexplode(x)         the same behind the positions (DuckDB)
inline(structs)       the array's structs, taken apart (DuckDB)
stack(n, v, ...)      an array for each column
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from trickle.errors import UnsupportedQuery
from trickle.operators import Expr, Generate, col
from trickle.sql.lower.block import from_
from trickle.sql.lower.dialects import Dialect, translated

_OUTER = "_outer"


def generated(node: Generate, relation: str, alias: str, dialect: Dialect) -> exp.Select:
    """What a SELECT reads: a relation's rows, each with what is made of it."""
    query = from_(relation)
    name = exp.to_identifier(alias, quoted=True)
    if dialect == "spark":
        columns = [exp.to_identifier(column, quoted=True) for column in node.names]
        view = exp.Lateral(
            this=translated(node.generator, dialect),
            view=True,
            outer=node.outer,
            alias=exp.TableAlias(this=name, columns=columns),
        )
        query.set("laterals", [view])
        return query
    query.set("joins", [lateral_join(node.generator, node.names, name, dialect, outer=node.outer)])
    return query


def lateral_join(
    generator: Expr, names: Sequence[str], alias: exp.Identifier, dialect: Dialect, *, outer: bool
) -> exp.Join:
    """A join with what is made of each row, for dialects without LATERAL VIEW."""
    kind = _kind(generator)
    subquery = _rows(kind, generator.expressions, names, dialect).subquery()
    rows = exp.Lateral(this=subquery, alias=exp.TableAlias(this=alias))
    if outer or kind.endswith(_OUTER):
        return exp.Join(this=rows, side="LEFT", on=exp.true())
    return exp.Join(this=rows, kind="CROSS")


def _kind(generator: Expr) -> str:
    return generator.name.lower() if isinstance(generator, exp.Anonymous) else generator.key


def _rows(kind: str, arguments: Sequence[Expr], names: Sequence[str], dialect: Dialect) -> exp.Select:
    match kind.removesuffix(_OUTER), len(names):
        case "explode", 1:
            return _unnested(names, [translated(arguments[0], dialect)])
        case "explode", 2:
            return _unnested(names, _entries(arguments[0], dialect))
        case "posexplode", 2 if dialect == "duckdb":
            array = translated(arguments[0], dialect)
            return _unnested(names, [_positions(array), array])
        case "posexplode", 3 if dialect == "duckdb":
            keys, values = _entries(arguments[0], dialect)
            return _unnested(names, [_positions(keys), keys, values])
        case "inline", _ if dialect == "duckdb":
            return _taken_apart(names, translated(arguments[0], dialect))
        case "stack", _:
            return _unnested(names, _stacked(arguments, len(names), dialect))
        case _:
            raise UnsupportedQuery(f"the generator {kind} cannot be written for {dialect}")


def _unnested(names: Sequence[str], arrays: Sequence[Expr]) -> exp.Select:
    outputs = [
        exp.alias_(exp.Anonymous(this="UNNEST", expressions=[array]), name, quoted=True)
        for name, array in zip(names, arrays, strict=True)
    ]
    return exp.Select(expressions=outputs)


def _entries(mapping: Expr, dialect: Dialect) -> list[Expr]:
    return [
        translated(exp.Anonymous(this=part, expressions=[mapping.copy()]), dialect)
        for part in ("map_keys", "map_values")
    ]


def _positions(array: Expr) -> Expr:
    length = exp.Anonymous(this="LEN", expressions=[array.copy()])
    return exp.Anonymous(this="RANGE", expressions=[length])


def _taken_apart(names: Sequence[str], structs: Expr) -> exp.Select:
    row = "row"
    fields = [
        exp.alias_(
            exp.Anonymous(this="STRUCT_EXTRACT_AT", expressions=[col(row), exp.Literal.number(place)]),
            name,
            quoted=True,
        )
        for place, name in enumerate(names, 1)
    ]
    return exp.Select(expressions=fields).from_(_unnested((row,), [structs]).subquery("structs"), copy=False)


def _stacked(arguments: Sequence[Expr], width: int, dialect: Dialect) -> list[Expr]:
    number, *values = arguments
    if not (isinstance(number, exp.Literal) and number.is_int):
        raise UnsupportedQuery("the number of rows of stack is no literal")
    height = int(number.name)
    cells = [values[i].copy() if i < len(values) else exp.null() for i in range(width * height)]
    return [
        translated(exp.Anonymous(this="array", expressions=cells[column::width]), dialect) for column in range(width)
    ]
