"""Random queries full of subqueries, over t, u and v (see ``relations``), that DuckDB evaluates by itself."""

from __future__ import annotations

import random
from collections.abc import Sequence

Aliases = list[str]


class RandomQuery:
    """One query for each seed. ``inner`` are the aliases of a SELECT's own FROM, ``outer`` those around it."""

    def __init__(self, seed: int) -> None:
        self._draw = random.Random(seed)
        self._aliases = 0

    def text(self) -> str:
        source, inner = self._source([], 2)
        depth = self._draw.randint(1, 2)
        items = [f"{self._column(inner)} AS c0"]
        if self._happens(0.4):
            items.append(f"({self._scalar(inner, depth)}) AS c1")
        if self._happens(0.25):
            items.append(f"{self._column(inner)} {self._not()}IN ({self._subquery(inner, depth, ['d'])}) AS c2")
        conditions = [self._condition(inner, [], depth) for _ in range(self._draw.randint(1, 2))]
        return f"SELECT {', '.join(items)} FROM {source} WHERE {' AND '.join(conditions)}"

    def _happens(self, share: float) -> bool:
        return self._draw.random() < share

    def _not(self) -> str:
        return self._draw.choice(("", "NOT "))

    def _alias(self) -> str:
        self._aliases += 1
        return f"x{self._aliases}"

    def _column(self, aliases: Aliases) -> str:
        return f"{self._draw.choice(aliases)}.{self._draw.choice(('a', 'a', 'b', 'b', 'id'))}"

    def _comparison(self, inner: Aliases, outer: Aliases) -> str:
        left = self._column(inner) + (f" + {self._column(inner)}" if self._happens(0.1) else "")
        right = self._column(outer) if outer and self._happens(0.7) else str(self._draw.randint(1, 3))
        if self._happens(0.15):
            right += " + 1"
        return f"{left} {self._draw.choice(('=', '=', '=', '<', '>', '<>', 'IS NOT DISTINCT FROM'))} {right}"

    def _condition(self, inner: Aliases, outer: Aliases, depth: int) -> str:
        if depth <= 0:
            return self._comparison(inner, outer)
        around = inner + outer
        match self._draw.randrange(10):
            case 0:
                return f"({self._condition(inner, outer, depth - 1)} OR {self._condition(inner, outer, depth - 1)})"
            case 1:
                return f"NOT ({self._condition(inner, outer, depth - 1)})"
            case 2 | 3:
                return f"{self._not()}EXISTS ({self._subquery(around, depth - 1, ['d', 'e'])})"
            case 4 | 5:
                return f"{self._column(around)} {self._not()}IN ({self._subquery(around, depth - 1, ['d'])})"
            case 6 | 7:
                return f"{self._column(inner)} {self._draw.choice('=<')} ({self._scalar(around, depth - 1)})"
            case 8:
                some = self._draw.choice(("ANY", "ALL"))
                return f"{self._column(inner)} < {some} ({self._subquery(around, depth - 1, ['d'])})"
            case _:
                return self._comparison(inner, outer)

    def _where(self, inner: Aliases, outer: Aliases, depth: int) -> str:
        conditions = [self._condition(inner, outer, depth) for _ in range(self._draw.randint(0, 2))]
        return f" WHERE {' AND '.join(conditions)}" if conditions else ""

    def _source(self, outer: Aliases, depth: int) -> tuple[str, Aliases]:
        table, first, second = self._draw.choice("tuv"), self._alias(), self._alias()
        if depth <= 0 or self._happens(0.6):
            return f"{table} {first}", [first]
        other = self._draw.choice("tuv")
        match self._draw.randrange(5):
            case 0 | 1:
                seen = [first, *(outer if self._happens(0.4) else [])]
                return f"{table} {first} JOIN {other} {second} ON {self._comparison([second], seen)}", [first, second]
            case 2:
                return f"{table} {first} LEFT JOIN {other} {second} ON {first}.a = {second}.a", [first, second]
            case 3:
                return f"({self._derived(outer, depth - 1)}) {first}", [first]
            case _:
                derived = self._derived([*outer, first], depth - 1)
                return f"{table} {first}, LATERAL ({derived}) {second}", [first, second]

    def _derived(self, outer: Aliases, depth: int) -> str:
        return f"SELECT a, b, a AS id FROM ({self._subquery(outer, depth, ['a', 'b'])}) AS {self._alias()}"

    def _subquery(self, outer: Aliases, depth: int, names: Sequence[str]) -> str:
        kind = self._draw.randrange(10)
        if depth > 0 and kind == 0:
            parts = [f"SELECT * FROM ({self._subquery(outer, depth - 1, names)}) AS {self._alias()}" for _ in range(2)]
            return self._draw.choice((" UNION ALL ", " UNION ", " INTERSECT ", " EXCEPT ")).join(parts)
        if depth > 0 and kind == 1:
            columns, offset = ", ".join(names), " OFFSET 1" if self._happens(0.3) else ""
            inside = f"({self._subquery(outer, depth - 1, names)}) AS {self._alias()}"
            return f"SELECT {columns} FROM {inside} ORDER BY {columns} LIMIT {self._draw.randint(1, 3)}{offset}"
        source, inner = self._source(outer, depth)
        rest = f" FROM {source}{self._where(inner, outer, depth)}"
        match kind:
            case 2:
                key = self._column(inner)
                having = f" HAVING count(*) > {self._column(outer)}" if outer and self._happens(0.3) else ""
                return (
                    self._selected([key, *(self._aggregate(inner) for _ in names)], names)
                    + f"{rest} GROUP BY {key}{having}"
                )
            case 3:
                return self._selected([self._aggregate(inner) for _ in names], names) + rest
            case 4:
                rank = f"rank() OVER (PARTITION BY {self._column(inner)} ORDER BY {self._column(inner)})"
                return self._selected([rank, *(self._column(inner) for _ in names)], names) + rest
            case _:
                mixed = [
                    self._column(inner) + (f" + {self._column(outer)}" if outer and self._happens(0.15) else "")
                    for _ in names
                ]
                return (
                    self._selected(mixed, names).replace("SELECT", "SELECT DISTINCT" if kind == 5 else "SELECT") + rest
                )

    def _selected(self, values: Sequence[str], names: Sequence[str]) -> str:
        return f"SELECT {', '.join(f'{value} AS {name}' for value, name in zip(values, names, strict=False))}"

    def _aggregate(self, inner: Aliases) -> str:
        column = self._column(inner)
        return self._draw.choice(
            ("count(*)", f"max({column})", f"sum({column})", f"count(DISTINCT {column})", f"coalesce(min({column}), 7)")
        )

    def _scalar(self, outer: Aliases, depth: int) -> str:
        source, inner = self._source(outer, depth)
        return f"SELECT {self._aggregate(inner)} AS d FROM {source}{self._where(inner, outer, depth)}"
