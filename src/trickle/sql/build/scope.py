"""Which column a name means.

A scope is what one FROM offers: sources, which qualify names, and the columns that a name without a qualifier (or a
star) can mean. The two differ after USING and NATURAL, which merge a column of both sides into one. Names that the
scope does not have are looked up in the scope outside: a correlated reference is the outer column's name in the tree.

As in Spark, ``a.b.c`` is first the column c of the table a.b, then the column b of the table a and its field c, then
the column a and its field b.c; case does not matter.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from trickle.algebra.names import nearest
from trickle.errors import UnknownColumn, UserError
from trickle.operators import Expr, Operator, col


@dataclass(frozen=True)
class Visible:
    """A column as the query sees it: its visible name, its name in the tree, its type where that is known."""

    name: str
    column: str
    type: str | None = None


@dataclass(frozen=True)
class Source:
    """A relation of FROM: what its columns can be qualified with."""

    alias: str | None
    columns: tuple[Visible, ...]
    schema: str | None = None

    def answers_to(self, qualifier: Sequence[str]) -> bool:
        if self.alias is None or self.alias.lower() != qualifier[-1].lower():
            return False
        return len(qualifier) == 1 or (self.schema is not None and self.schema.lower() == qualifier[0].lower())


@dataclass(frozen=True)
class Relation:
    """A tree, and what its columns are called."""

    tree: Operator
    sources: tuple[Source, ...]
    columns: tuple[Visible, ...]

    @staticmethod
    def of(tree: Operator, columns: Iterable[Visible], alias: str | None, schema: str | None = None) -> Relation:
        """A relation with one source."""
        columns = tuple(columns)
        return Relation(tree, (Source(alias, columns, schema),), columns)

    def with_tree(self, tree: Operator) -> Relation:
        return replace(self, tree=tree)


@dataclass(frozen=True)
class Cte:
    """A common table expression: its query, and what was in scope where it was defined."""

    name: str
    query: exp.Expr
    columns: tuple[str, ...]
    scope: Scope
    recursive: bool = False
    # Inside its own step: the columns that the recursion has.
    step_of: tuple[Visible, ...] | None = None


Ctes = Mapping[str, Cte]


@dataclass(frozen=True)
class Found:
    """What a name means: a column of the tree, and a path of struct fields into it."""

    visible: Visible
    fields: tuple[str, ...] = ()

    @property
    def value(self) -> Expr:
        return fields_of(col(self.visible.column), self.fields)


@dataclass(frozen=True)
class Scope:
    """The columns that names of one SELECT can mean."""

    sources: tuple[Source, ...] = ()
    columns: tuple[Visible, ...] = ()
    outer: Scope | None = None
    ctes: Ctes = field(default_factory=dict)

    @staticmethod
    def over(relation: Relation, outer: Scope) -> Scope:
        """The scope of expressions over a relation."""
        return Scope(relation.sources, relation.columns, outer.outer, outer.ctes)

    def inside(self) -> Scope:
        """The scope of a subquery, before its FROM is known."""
        return Scope(outer=self, ctes=self.ctes)

    def renamed(self, names: Mapping[str, str]) -> Scope:
        """The same scope over columns that have new names in the tree."""
        if not names:
            return self

        def moved(columns: tuple[Visible, ...]) -> tuple[Visible, ...]:
            return tuple(replace(each, column=names.get(each.column, each.column)) for each in columns)

        sources = tuple(replace(source, columns=moved(source.columns)) for source in self.sources)
        return replace(self, sources=sources, columns=moved(self.columns))

    def find_here(self, parts: Sequence[str]) -> Found | None:
        """What a name means among the columns of this scope alone."""
        for length in (2, 1):
            qualifier, rest = parts[:length], parts[length:]
            if rest and (found := _one(self._qualified(qualifier, rest[0]), parts)):
                return Found(found, tuple(rest[1:]))
        found = _one((each for each in self.columns if each.name.lower() == parts[0].lower()), parts)
        return Found(found, tuple(parts[1:])) if found else None

    def find_outside(self, parts: Sequence[str]) -> Found | None:
        """What a name means in the scopes around this one, the nearest first."""
        scope = self.outer
        while scope is not None:
            if found := scope.find_here(parts):
                return found
            scope = scope.outer
        return None

    def star(self, qualifier: Sequence[str]) -> tuple[Visible, ...] | None:
        """The columns of ``*`` and ``t.*``; None if there is no such source."""
        if not qualifier:
            return self.columns
        matching = [source for source in self.sources if source.answers_to(qualifier)]
        return tuple(each for source in matching for each in source.columns) if matching else None

    def unknown(self, parts: Sequence[str]) -> UnknownColumn:
        """The error for a name that means nothing."""
        known = [each.name for scope in self._outwards() for each in scope.columns]
        close = nearest(parts[-1], known) or nearest(parts[0], known)
        return UnknownColumn(f"no column {'.'.join(parts)!r}", hint=f"did you mean {close!r}?" if close else None)

    def _qualified(self, qualifier: Sequence[str], name: str) -> Iterator[Visible]:
        for source in self.sources:
            if source.answers_to(qualifier):
                yield from (each for each in source.columns if each.name.lower() == name.lower())

    def _outwards(self) -> Iterator[Scope]:
        scope: Scope | None = self
        while scope is not None:
            yield scope
            scope = scope.outer


def fields_of(value: Expr, fields: Iterable[str]) -> Expr:
    """A path of struct fields into a value."""
    for name in fields:
        value = exp.Dot(this=value, expression=exp.Identifier(this=name, quoted=True))
    return value


def _one(candidates: Iterable[Visible], parts: Sequence[str]) -> Visible | None:
    found = list({each.column: each for each in candidates}.values())
    if len(found) > 1:
        raise UserError(
            f"the column {'.'.join(parts)!r} is ambiguous",
            detail=f"{len(found)} relations have a column of this name",
            hint=f"say which one: table.{parts[-1]}",
        )
    return found[0] if found else None
