"""Query text with its table references found, so that they can be bound to views without touching anything else."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Self

from trickle.algebra.names import TableName, quote


@dataclass(frozen=True)
class TableRef:
    """A table named in a text: ``text[start:end]`` is the name, with its ``VERSION AS OF`` where there is one.

    ``alias`` is what the reference is called in the query when it has no alias of its own; it is added at ``alias_at``.
    """

    name: TableName
    start: int
    end: int
    alias_needed: bool
    version: int | None = None
    alias: str = ""
    alias_at: int = 0


@dataclass(frozen=True)
class Cut:
    """The schema in ``sales.orders.amount``, which a view does not have: ``text[start:end]`` becomes ``into``."""

    start: int
    end: int
    into: str = ""


@dataclass(frozen=True)
class SqlText:
    """A query, or an expression, as the user typed it."""

    text: str
    refs: tuple[TableRef, ...] = ()
    cuts: tuple[Cut, ...] = ()

    @property
    def tables(self) -> frozenset[TableName]:
        """The tables that the text reads."""
        return frozenset(ref.name for ref in self.refs)

    def bind(self, view_of: Callable[[TableName], str]) -> str:
        """The text with every table reference replaced by the view of that table."""
        return self.bind_refs(lambda ref: view_of(ref.name))

    def bind_refs(self, view_of: Callable[[TableRef], str]) -> str:
        """As ``bind``, for callers that look at the version too."""
        edits = [(cut.start, cut.end, cut.into) for cut in self.cuts]
        for ref in self.refs:
            edits.append((ref.start, ref.end, quote(view_of(ref))))
            if ref.alias_needed:
                edits.append((ref.alias_at, ref.alias_at, f" AS {quote(ref.alias)}"))
        return _splice(self.text, edits)

    def shifted(self, by: int, text: str) -> Self:
        """The same references in a longer or shorter text, in which they begin ``by`` characters later."""
        return replace(
            self,
            text=text,
            refs=tuple(
                replace(ref, start=ref.start + by, end=ref.end + by, alias_at=ref.alias_at + by) for ref in self.refs
            ),
            cuts=tuple(replace(cut, start=cut.start + by, end=cut.end + by) for cut in self.cuts),
        )


@dataclass(frozen=True)
class Query(SqlText):
    """A SELECT-like text, and what it holds that matters for keeping its result.

    ``limit_without_order`` and ``table_sample`` are about every level, ``order_without_limit`` about the outermost.
    """

    volatile: tuple[str, ...] = ()
    time_dependent: bool = False
    limit_without_order: bool = False
    table_sample: bool = False
    order_without_limit: bool = False

    @property
    def is_unsteady(self) -> bool:
        """Whether the result may differ although no table has changed."""
        return self.time_dependent or bool(self.volatile)


def _splice(text: str, edits: Iterable[tuple[int, int, str]]) -> str:
    parts: list[str] = []
    at = 0
    for start, end, into in sorted(edits, key=lambda edit: edit[:2]):
        parts += (text[at:start], into)
        at = end
    return "".join((*parts, text[at:]))
