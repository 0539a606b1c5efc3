"""Random scalar expressions and conditions, each of a kind of type that is asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from trickle.testing.random.scope import KINDS, NUMBERS, Column, Writer, of_kind

_LITERALS = {
    "int": ("1", "2", "0", "-1", "3", "CAST(NULL AS INT)"),
    "bigint": ("CAST(1 AS BIGINT)", "CAST(5 AS BIGINT)", "CAST(0 AS BIGINT)", "CAST(NULL AS BIGINT)"),
    "decimal": (
        "CAST(1 AS DECIMAL(6,2))",
        "CAST(2.25 AS DECIMAL(6,2))",
        "CAST(0 AS DECIMAL(6,2))",
        "CAST(NULL AS DECIMAL(6,2))",
    ),
    "double": ("CAST(1 AS DOUBLE)", "CAST(0.5 AS DOUBLE)", "CAST(0 AS DOUBLE)", "CAST(NULL AS DOUBLE)"),
    "string": ("'a'", "'b'", "''", "'Ab'", "CAST(NULL AS STRING)"),
    "boolean": ("TRUE", "FALSE", "TRUE", "CAST(NULL AS BOOLEAN)"),
    "date": ("DATE '2024-01-01'", "DATE '2024-02-29'", "DATE '2023-12-31'", "CAST(NULL AS DATE)"),
}
_COMPARISONS = ("=", "<", ">", "<>", "<=", ">=", "<=>", "<>", ">=")

Subquery = Callable[[Writer, Sequence[Column], str], str]


class Expressions:
    """Expressions over some columns. ``scalar`` and ``test`` write subqueries, where they are given."""

    def __init__(
        self,
        writer: Writer,
        columns: Sequence[Column],
        *,
        scalar: Subquery | None = None,
        test: Callable[[Writer, Sequence[Column]], str] | None = None,
    ) -> None:
        self._w = writer
        self._columns = columns
        self._scalar = scalar
        self._test = test

    def kind(self) -> str:
        """A kind, more often one that there is a column of."""
        there = [column.kind for column in self._columns]
        return self._w.choices.pick(there) if there and not self._w.choices.chance(3) else self._w.choices.pick(KINDS)

    def literal(self, kind: str) -> str:
        return self._w.choices.pick(_LITERALS[kind])

    def leaf(self, kind: str) -> str:
        """A column, or a literal where there is none."""
        found = of_kind(self._columns, kind)
        if not found or self._w.choices.chance(4):
            return self.literal(kind)
        return self._w.choices.pick(found).text

    def value(self, kind: str, depth: int = 2) -> str:
        """An expression of a kind."""
        choices = self._w.choices
        if depth == 0 or not choices.chance(45):
            return self.leaf(kind)
        if self._scalar is not None and choices.chance(15):
            return self._scalar(self._w, self._columns, kind)
        if choices.chance(40):
            return self._choice(kind, depth - 1)
        return self._function(kind, depth - 1)

    def _choice(self, kind: str, depth: int) -> str:
        match self._w.choices.below(4):
            case 0:
                self._w.note("COALESCE")
                return f"COALESCE({self.value(kind, depth)}, {self.literal(kind)})"
            case 1:
                self._w.note("CASE")
                return f"CASE WHEN {self.condition(depth)} THEN {self.value(kind, depth)} ELSE {self.leaf(kind)} END"
            case 2:
                self._w.note("CASE")
                return f"CASE WHEN {self.condition(depth)} THEN {self.value(kind, depth)} END"
            case _:
                return f"NULLIF({self.leaf(kind)}, {self.literal(kind)})"

    def _function(self, kind: str, depth: int) -> str:
        choices = self._w.choices
        match kind:
            case "int":
                return self._whole_number(depth)
            case "bigint":
                return (
                    f"({self.leaf('bigint')} {choices.pick(('+', '-'))} {self.leaf(choices.pick(('bigint', 'int')))})"
                )
            case "decimal":
                return f"({self.leaf('decimal')} {choices.pick(('+', '-'))} {self.leaf('decimal')})"
            case "double":
                return (
                    f"({self.leaf('double')} {choices.pick(('+', '-'))} {self.leaf(choices.pick(('double', 'int')))})"
                )
            case "string":
                return self._text()
            case "boolean":
                return f"({self.condition(depth)})"
            case _:
                return f"DATE_ADD({self.leaf('date')}, {choices.below(3)})"

    def _whole_number(self, depth: int) -> str:
        match self._w.choices.below(6):
            case 0:
                return f"({self.leaf('int')} + {self.value('int', depth)})"
            case 1:
                return f"({self.leaf('int')} - {self.leaf('int')})"
            case 2:
                return f"({self.leaf('int')} * 2)"
            case 3:
                return f"LENGTH({self.leaf('string')})"
            case 4:
                return f"YEAR({self.leaf('date')})"
            case _:
                return f"ABS({self.leaf('int')})"

    def _text(self) -> str:
        match self._w.choices.below(3):
            case 0:
                return f"UPPER({self.leaf('string')})"
            case 1:
                return f"SUBSTRING({self.leaf('string')}, 1, 1)"
            case _:
                # DuckDB takes what is joined with a constant NULL for an integer.
                columns = of_kind(self._columns, "string")
                return f"CONCAT({self._w.choices.pick(columns).text}, 'b')" if columns else "'ab'"

    def condition(self, depth: int = 2) -> str:
        """A condition, which may be NULL."""
        choices = self._w.choices
        if self._test is not None and choices.chance(20):
            return self._test(self._w, self._columns)
        if self._scalar is not None and choices.chance(8):
            kind = choices.pick(("int", "bigint", "decimal"))
            return f"{self.leaf(kind)} {choices.pick(_COMPARISONS)} {self._scalar(self._w, self._columns, kind)}"
        if depth == 0 or not choices.chance(40):
            return self._comparison()
        match choices.below(4):
            case 0:
                return f"({self.condition(depth - 1)} AND {self.condition(depth - 1)})"
            case 1:
                self._w.note("OR")
                return f"({self.condition(depth - 1)} OR {self.condition(depth - 1)})"
            case 2:
                return f"NOT ({self.condition(depth - 1)})"
            case _:
                kind = choices.pick(("int", "string", "decimal", "date"))
                return f"{self.value(kind, 1)} {choices.pick(_COMPARISONS)} {self.value(kind, 1)}"

    def _comparison(self) -> str:
        choices = self._w.choices
        kind = self.kind()
        value = self.leaf(kind)
        match choices.below(6):
            case 0 | 1:
                other = self.literal(kind) if choices.chance(60) else self.leaf(kind)
                return f"{value} {choices.pick(_COMPARISONS)} {other}"
            case 2:
                return f"{value} IS {choices.pick(('NOT ', ''))}NULL"
            case 3:
                self._w.note("IN list")
                return f"{value} {choices.pick(('', 'NOT '))}IN ({self.literal(kind)}, {self.literal(kind)})"
            case 4 if kind in NUMBERS:
                return f"{value} BETWEEN {self.literal(kind)} AND {self.leaf(kind)}"
            case 4 if kind == "string":
                return f"{value} LIKE '{choices.pick(('a%', '%b', '_'))}'"
            case _ if kind == "boolean":
                return value
            case _:
                return f"{value} IS NOT DISTINCT FROM {self.leaf(kind)}"
