"""Functions that make rows of a row: explode, posexplode, inline, stack, json_tuple."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from trickle.errors import UnsupportedQuery
from trickle.operators import Expr, Generate, Operator
from trickle.sql.build.calls import GENERATORS, call, function_name
from trickle.sql.build.context import Context
from trickle.sql.build.scope import Scope, Visible
from trickle.sql.build.types import field_type, fields_in, parsed


def is_generator(node: Expr) -> bool:
    """Whether a node is a call of a function that makes rows."""
    return function_name(node) in GENERATORS


@dataclass(frozen=True)
class Generator:
    """A call that makes rows, and the columns that it makes."""

    function: Expr
    columns: tuple[Visible, ...]
    outer: bool = False

    def over(self, tree: Operator) -> Generate:
        """The rows of a tree with those that are made of them."""
        return Generate(tree, self.function, tuple(each.column for each in self.columns), self.outer)

    def calling(self, function: Expr) -> Generator:
        """The same columns made by a rewritten call."""
        return replace(self, function=function)


def generator(
    context: Context, function: Expr, names: Sequence[str], scope: Scope, *, outer: bool = False
) -> Generator:
    """What a (resolved) call makes. ``names`` are those that the user gave to the columns, if any."""
    name = function_name(function)
    if name not in GENERATORS:
        raise UnsupportedQuery(f"the function {function.sql('spark')[:60]} does not make rows")
    if name.endswith("_outer"):
        outer, name = True, name.removesuffix("_outer")
        function = call(name, *function.expressions)
    known = default_columns(name, function, scope, named=bool(names))
    types = [type_ for _, type_ in known] if not names or len(names) == len(known) else [None] * len(names)
    listed = names or [each for each, _ in known]
    columns = tuple(Visible(each, context.fresh(each), type_) for each, type_ in zip(listed, types, strict=True))
    return Generator(function, columns, outer)


Columns = list[tuple[str, str | None]]


def default_columns(name: str, function: Expr, scope: Scope, *, named: bool) -> Columns:
    """The columns of a generator as Spark calls them, with their types where these are known."""
    arguments = function.expressions
    type_ = type_of(arguments[0], scope) if arguments else None
    match name:
        case "explode":
            return _elements(arguments, type_)
        case "posexplode":
            return [("pos", "int"), *_elements(arguments, type_)]
        case "stack":
            rows = arguments[0].to_py() if arguments and arguments[0].is_int else 1
            return [(f"col{n}", None) for n in range(-(-(len(arguments) - 1) // rows))]
        case "json_tuple":
            return [(f"c{n}", "string") for n in range(len(arguments) - 1)]
        case _:
            element = type_.expressions[0] if type_ is not None and type_.is_type("array") else None
            fields = fields_in(element) if isinstance(element, exp.DataType) else {}
            if not fields and not named:
                raise UnsupportedQuery(
                    f"the columns of {name}() are not known", hint=f"name them: {name}(...) AS (a, b)"
                )
            return [(each, kind.sql("spark")) for each, kind in fields.items()]


def _elements(arguments: Sequence[Expr], type_: exp.DataType | None) -> Columns:
    inner = [each.sql("spark") for each in type_.expressions] if type_ is not None else []
    is_map = bool(arguments) and function_name(arguments[0]) in ("map", "map_from_arrays", "map_from_entries")
    if is_map or (type_ is not None and type_.is_type("map")):
        return list(zip(("key", "value"), inner or (None, None), strict=True))
    return [("col", inner[0] if len(inner) == 1 else None)]


def type_of(value: Expr, scope: Scope) -> exp.DataType | None:
    """The type of a column or of a field in it."""
    path: list[str] = []
    value = value.unnest()
    while isinstance(value, exp.Dot) and isinstance(value.expression, exp.Identifier):
        path.insert(0, value.expression.name)
        value = value.this
    if not isinstance(value, exp.Column):
        return None
    look: Scope | None = scope
    while look is not None:
        for source in look.sources:
            for each in source.columns:
                if each.column == value.name:
                    return field_type(parsed(each.type), path)
        look = look.outer
    return None
