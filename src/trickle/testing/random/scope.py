"""What a random query is made of: columns with their types, relations, and the state of the one who writes it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from trickle.testing.random.choices import Choices
from trickle.testing.random.tables import Schemas

KINDS = ("int", "bigint", "decimal", "double", "string", "boolean", "date")
_MOST_RELATIONS = 9
NUMBERS = ("int", "bigint", "decimal", "double")


@dataclass(frozen=True)
class Column:
    """A column as an expression names it, and its kind of type."""

    text: str
    kind: str


@dataclass(frozen=True)
class Query:
    """A query's text, and its columns by their names."""

    text: str
    columns: tuple[Column, ...]


@dataclass(frozen=True)
class Relation:
    """What stands in FROM, and the columns that it gives to expressions."""

    text: str
    columns: tuple[Column, ...]


@dataclass
class Writer:
    """Makes choices, finds fresh names, knows the tables, and notes which constructs a query has."""

    choices: Choices
    tables: Schemas
    noted: set[str] = field(default_factory=set)
    ctes: dict[str, tuple[Column, ...]] = field(default_factory=dict)
    used: dict[str, None] = field(default_factory=dict)
    """The tables that the query reads, in the order in which they came up."""
    _names: int = 0
    _relations: int = 0

    def fresh(self, prefix: str) -> str:
        """A name that was not used yet."""
        self._names += 1
        return f"{prefix}{self._names}"

    def takes_part(self) -> bool:
        """Whether one more relation may come; a query does not grow without end."""
        self._relations += 1
        return self._relations <= _MOST_RELATIONS

    def note(self, construct: str) -> None:
        self.noted.add(construct)

    def table(self, name: str) -> tuple[Column, ...]:
        """The columns of a table, which is used from now on."""
        self.used[name] = None
        return tuple(Column(c, kind_of(type_)) for c, type_ in self.tables[name].items())


def kind_of(type_: str) -> str:
    return type_.partition("(")[0]


def of_kind(columns: Sequence[Column], *kinds: str) -> list[Column]:
    """The columns of some kinds."""
    return [column for column in columns if column.kind in kinds]


def qualified(alias: str, columns: Sequence[Column]) -> tuple[Column, ...]:
    """The columns of a relation under its alias."""
    return tuple(Column(f"{alias}.{column.text}", column.kind) for column in columns)
