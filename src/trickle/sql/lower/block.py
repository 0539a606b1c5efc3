"""A SELECT in the making: where rows come from, which of them stay, and what each column is.

Projections and filters over one source are folded into it as long as no computation is done twice for it: a computed
column that is used more than once becomes a column of a common table expression first. Expressions are Spark's until
the block is finished.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from sqlglot import exp

from trickle.algebra.names import INTERNAL_PREFIX
from trickle.operators import Expr, Output, col, substituted
from trickle.sql.lower.dialects import Dialect, translated

# A computation of so few parts may be written twice; a call of a function may not, however short it is.
_SMALL = 8
# A relation without columns still has rows, and SQL wants something to select.
NO_COLUMN = INTERNAL_PREFIX + "nothing"


@dataclass(frozen=True)
class Block:
    """A SELECT without its list. ``name`` is what it is called, should it become a common table expression."""

    name: str
    source: exp.Select
    values: Mapping[str, Expr]
    conditions: tuple[Expr, ...] = ()
    # Conditions that are in the dialect's own words already.
    written: tuple[Expr, ...] = field(default=())

    @property
    def is_renaming(self) -> bool:
        return all(isinstance(value, exp.Column) for value in self.values.values())

    def can_take(self, expressions: Iterable[Expr], *, keeps_columns: bool = False) -> bool:
        """Whether no computation is doubled by using these expressions over our columns.

        With ``keeps_columns`` our own columns are still used afterwards, all of them.
        """
        uses: Counter[str] = Counter()
        for expression in expressions:
            uses.update(column.name for column in expression.find_all(exp.Column))
        return all(
            count + keeps_columns <= 1 or name not in self.values or _is_cheap(self.values[name])
            for name, count in uses.items()
        )

    def value_of(self, expression: Expr) -> Expr:
        """An expression over our columns, over the source's."""
        return substituted(expression, self.values)

    def where(self, condition: Expr) -> Block:
        return replace(self, conditions=(*self.conditions, self.value_of(condition)))

    def projected(self, outputs: Iterable[Output]) -> Block:
        return replace(self, values={output.name: self.value_of(output.value) for output in outputs})

    def select(self, dialect: Dialect, outputs: Mapping[str, Expr] | None = None) -> exp.Select:
        """The whole SELECT. ``outputs`` (over the source's columns) are given when they are more than our columns."""
        chosen = self.values if outputs is None else outputs
        query = self.source.copy()
        query.set("expressions", columns_of(chosen, dialect))
        for condition in (*(translated(c, dialect) for c in self.conditions), *(c.copy() for c in self.written)):
            query.where(condition, copy=False)
        return query


@dataclass(frozen=True)
class Closed:
    """A query to which nothing can be added: what comes on top reads it under a name."""

    name: str
    query: exp.Query


def columns_of(values: Mapping[str, Expr], dialect: Dialect) -> list[Expr]:
    """The list of a SELECT."""
    if not values:
        return [exp.alias_(exp.Literal.number(1), NO_COLUMN, quoted=True)]
    return [_named(name, translated(value, dialect)) for name, value in values.items()]


def _named(name: str, value: Expr) -> Expr:
    if isinstance(value, exp.Column) and value.name == name and not value.table:
        return value
    return exp.alias_(value, name, quoted=True)


def passed(names: Iterable[str]) -> dict[str, Expr]:
    """Columns under the names that they have in the source."""
    return {name: col(name) for name in names}


def from_(relation: str, alias: str | None = None) -> exp.Select:
    """A SELECT without its list that reads a relation."""
    return exp.Select().from_(table(relation, alias), copy=False)


def table(relation: str, alias: str | None = None) -> exp.Table:
    return exp.table_(exp.to_identifier(relation, quoted=True), alias=alias and exp.to_identifier(alias, quoted=True))


def _is_cheap(value: Expr) -> bool:
    parts = list(value.walk())
    return len(parts) <= _SMALL and not any(isinstance(part, exp.Anonymous | exp.Query) for part in parts)
