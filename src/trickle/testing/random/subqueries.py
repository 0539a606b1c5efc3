"""Random subqueries in expressions: EXISTS, IN, scalar ones; correlated and not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from trickle.testing.random.aggregates import aggregate_of
from trickle.testing.random.expressions import Expressions
from trickle.testing.random.relations import QueryOf, correlation, from_clause
from trickle.testing.random.scope import Column, Relation, Writer


@dataclass(frozen=True)
class Subqueries:
    """Writes subqueries for expressions; ``place`` says where the expression stands."""

    query: QueryOf
    depth: int
    place: str

    def test(self, writer: Writer, outer: Sequence[Column]) -> str:
        """A condition with a subquery."""
        choices = writer.choices
        inner = self._inner(writer)
        negated = "NOT " if choices.chance(45) else ""
        if choices.chance(50):
            writer.note(f"{negated}EXISTS in {self.place}")
            where = self._where(writer, inner, outer, always=not choices.chance(15))
            return f"{negated}EXISTS (SELECT 1 FROM {inner.text}{where})"
        writer.note(f"{negated}IN in {self.place}")
        column = choices.pick(inner.columns)
        value = Expressions(writer, outer).leaf(column.kind)
        where = self._where(writer, inner, outer, always=choices.chance(35))
        if choices.chance(15):
            writer.note("IN a grouped subquery")
            having = choices.pick(("", " HAVING COUNT(*) > 1"))
            return f"{value} {negated}IN (SELECT {column.text} FROM {inner.text}{where} GROUP BY {column.text}{having})"
        return f"{value} {negated}IN (SELECT {column.text} FROM {inner.text}{where})"

    def scalar(self, writer: Writer, outer: Sequence[Column], kind: str) -> str:
        """A subquery that gives one value of a kind: an aggregate of all its rows."""
        inner = self._inner(writer)
        found = aggregate_of(writer, inner.columns, kind)
        where = self._where(writer, inner, outer, always=writer.choices.chance(65))
        writer.note(f"scalar subquery in {self.place}")
        return f"(SELECT {found} FROM {inner.text}{where})"

    def _inner(self, writer: Writer) -> Relation:
        return from_clause(writer, max(0, self.depth - 1) if writer.takes_part() else 0, self.query, most=1)

    def _where(self, writer: Writer, inner: Relation, outer: Sequence[Column], *, always: bool) -> str:
        if always and outer:
            return f" WHERE {correlation(writer, inner.columns, outer)}"
        writer.note("uncorrelated")
        if writer.choices.chance(40):
            return f" WHERE {Expressions(writer, inner.columns).condition(1)}"
        return ""
