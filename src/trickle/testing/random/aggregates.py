"""Random aggregate functions: those that DuckDB and Spark agree on."""

from __future__ import annotations

from collections.abc import Sequence

from trickle.testing.random.expressions import Expressions
from trickle.testing.random.scope import NUMBERS, Column, Writer

_SPREADS = ("STDDEV_POP", "VAR_POP", "VAR_SAMP", "STDDEV_SAMP", "VARIANCE")


def aggregate(writer: Writer, columns: Sequence[Column]) -> Column:
    """A call, with the kind of its result."""
    kind = writer.choices.weighted(
        (("bigint", 60), ("decimal", 15), ("double", 12), ("int", 10), ("string", 6), ("boolean", 8), ("date", 4))
    )
    return Column(aggregate_of(writer, columns, kind), kind)


def aggregate_of(writer: Writer, columns: Sequence[Column], kind: str) -> str:
    """A call whose result is of a kind."""
    choices = writer.choices
    inside = Expressions(writer, columns)
    match kind:
        case "bigint":
            return _bigint(writer, inside)
        case "decimal" if choices.chance(50):
            # The mean of inexact numbers is cut, so that all ways to it give the same.
            number = inside.value(choices.pick(NUMBERS), 1)
            function = "AVG" if choices.chance(60) else choices.pick(_SPREADS)
            writer.note("AVG" if function == "AVG" else "VAR/STDDEV")
            return f"CAST({_filtered(writer, inside, f'{function}({number})')} AS DECIMAL(12,3))"
        case "decimal" | "double" if choices.chance(60):
            writer.note(f"SUM of {kind}")
            return _filtered(writer, inside, f"SUM({inside.value(kind, 1)})")
        case "boolean":
            function = choices.pick(("BOOL_AND", "BOOL_OR", "EVERY", "ANY"))
            writer.note("BOOL_AND/OR")
            return _filtered(writer, inside, f"{function}({inside.value('boolean', 1)})")
        case _:
            function = choices.pick(("MIN", "MAX"))
            writer.note("MIN/MAX")
            distinct = "DISTINCT " if choices.chance(5) else ""
            return _filtered(writer, inside, f"{function}({distinct}{inside.value(kind, 1)})")


def _bigint(writer: Writer, inside: Expressions) -> str:
    choices = writer.choices
    match choices.below(7):
        case 0:
            writer.note("COUNT(*)")
            return _filtered(writer, inside, "COUNT(*)")
        case 1:
            writer.note("COUNT")
            return _filtered(writer, inside, f"COUNT({inside.value(inside.kind(), 1)})")
        case 2:
            writer.note("COUNT DISTINCT")
            return _filtered(writer, inside, f"COUNT(DISTINCT {inside.value(inside.kind(), 1)})")
        case 3:
            writer.note("COUNT_IF")
            return f"COUNT_IF({inside.condition(1)})"
        case 4:
            writer.note("SUM DISTINCT")
            return f"SUM(DISTINCT {inside.leaf('int')})"
        case _:
            writer.note("SUM")
            return _filtered(writer, inside, f"SUM({inside.value(choices.pick(('int', 'bigint')), 1)})")


def _filtered(writer: Writer, inside: Expressions, call: str) -> str:
    if not writer.choices.chance(12):
        return call
    writer.note("FILTER")
    return f"{call} FILTER (WHERE {inside.condition(1)})"
