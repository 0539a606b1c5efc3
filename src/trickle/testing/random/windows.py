"""Random window functions. Where ties could be broken either way, the order takes in all columns."""

from __future__ import annotations

from collections.abc import Sequence

from trickle.testing.random.expressions import Expressions
from trickle.testing.random.scope import Column, Writer, of_kind

_FRAMES = (
    "",
    " ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW",
    " ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING",
    " ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
    " ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING",
    " ROWS BETWEEN 2 PRECEDING AND 1 PRECEDING",
)
_SUMS = {"int": "bigint", "bigint": "bigint", "decimal": "decimal", "double": "double"}


def window(writer: Writer, columns: Sequence[Column]) -> Column:
    """A window function over the rows of FROM."""
    choices = writer.choices
    inside = Expressions(writer, columns)
    parts = choices.some(columns, 0 if choices.chance(30) else 1, 2)
    by = f"PARTITION BY {', '.join(column.text for column in parts)} " if parts else ""
    writer.note("window" if parts else "window without PARTITION BY")
    total = order_by(writer, columns)
    loose = order_by(writer, choices.some(columns, 1, 1))
    column = choices.pick(columns)
    match choices.below(7):
        case 0:
            writer.note("ROW_NUMBER")
            return Column(f"ROW_NUMBER() OVER ({by}{total})", "int")
        case 1:
            function = choices.pick(("RANK", "DENSE_RANK"))
            writer.note(function)
            return Column(f"{function}() OVER ({by}{loose})", "int")
        case 2:
            function = choices.pick(("LAG", "LEAD"))
            writer.note(function)
            return Column(f"{function}({column.text}) OVER ({by}{total})", column.kind)
        case 3:
            writer.note("COUNT OVER")
            return Column(f"COUNT({column.text}) OVER ({by}{total}{choices.pick(_FRAMES)})", "bigint")
        case 4:
            writer.note("MIN/MAX OVER")
            function = choices.pick(("MIN", "MAX"))
            return Column(f"{function}({column.text}) OVER ({by}{choices.pick((loose, '', total))})", column.kind)
        case 5:
            writer.note("FIRST_VALUE")
            return Column(f"FIRST_VALUE({column.text}) OVER ({by}{total})", column.kind)
        case _:
            writer.note("SUM OVER")
            numbers = of_kind(columns, *_SUMS)
            kind = choices.pick(numbers).kind if numbers else "int"
            frame = choices.pick((loose, "", f"{total}{choices.pick(_FRAMES)}"))
            return Column(f"SUM({inside.value(kind, 1)}) OVER ({by}{frame})", _SUMS[kind])


def order_by(writer: Writer, columns: Sequence[Column]) -> str:
    """ORDER BY all of the columns, each in some direction."""
    terms = [
        column.text + writer.choices.weighted((("", 60), (" DESC", 20), (" NULLS LAST", 10), (" DESC NULLS FIRST", 10)))
        for column in columns
    ]
    return f"ORDER BY {', '.join(terms)}"
