"""The states of a table inside a trigger, each as a query (pure).

After a statement the table itself is its new state. Its change is in the transition tables (or, when one statement
changed several tables, in tables where the changes wait for each other), and its old state is what it is now without
the rows that came and with those that went. Rows that came are known by the table's key; without one, copies are
counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from trickle.algebra.weights import WEIGHT
from trickle.immediate.postgres.lookups import KEPT, MOVED
from trickle.immediate.postgres.tables import Table
from trickle.operators import Face
from trickle.postgres.names import identifier

NEW_ROWS = "trickle_new"
OLD_ROWS = "trickle_old"


COUNT = identifier("__trickle_n")
"""The column that has how often a row comes or goes; no column of the user's begins like it."""


class Event(StrEnum):
    """What changed a table: one statement's rows at hand, or rows that waited."""

    INSERT = "insert"
    UPDATE = "update"
    DELETE = "delete"
    PENDING = "pending"

    @property
    def has_new(self) -> bool:
        return self in (Event.INSERT, Event.UPDATE)

    @property
    def has_old(self) -> bool:
        return self in (Event.UPDATE, Event.DELETE)


@dataclass(frozen=True)
class SourceFaces:
    """The faces of a table after an event. ``columns`` are those that are read, and the key's."""

    table: Table
    columns: tuple[str, ...]
    event: Event
    pending: str
    """The table in which changes wait."""

    def queries(self) -> Iterator[tuple[str, str]]:
        """The faces by the names that scans read them under."""
        label = self.table.label
        yield face_name(label, Face.NEW), f"SELECT {self._listed} FROM {self.table.sql}"
        yield face_name(label, Face.CHANGE), self.change
        if self.is_derived:
            yield face_name(label + KEPT, Face.OLD), self._kept
            yield face_name(label + MOVED, Face.OLD), self._moved
        yield face_name(label, Face.OLD), self._old()

    @property
    def is_derived(self) -> bool:
        """Whether the old state is the union of what stayed and what moved, each to be looked up by itself."""
        return bool(self.table.key)

    @property
    def _listed(self) -> str:
        return listed(self.columns)

    @property
    def change(self) -> str:
        """The change."""
        weight = identifier(WEIGHT)
        if self.event is Event.PENDING:
            rows = f"{self._waiting}, {copies(f'abs({COUNT})')}"
            return f"SELECT {self._listed}, sign({COUNT})::bigint AS {weight} FROM {rows}"
        parts = [
            f"SELECT {self._listed}, {sign}::bigint AS {weight} FROM {rows}"
            for rows, sign, there in ((NEW_ROWS, 1, self.event.has_new), (OLD_ROWS, -1, self.event.has_old))
            if there
        ]
        return " UNION ALL ".join(parts)

    def _old(self) -> str:
        return f"{self._kept} UNION ALL {self._moved}" if self.table.key else self._old_by_count()

    @property
    def _waiting(self) -> str:
        return f"({self._netted(self.pending)}) AS g"

    def _netted(self, relation: str) -> str:
        """Weighted rows added up: each with what is left of its weights, in ``COUNT``."""
        total = f"sum({identifier(WEIGHT)})"
        kept = [self._kept_in_group(column) for column in self.columns]
        keys = f" GROUP BY {self.compared}" if self.columns else ""
        return f"SELECT {', '.join([*kept, f'{total}::int AS {COUNT}'])} FROM {relation}{keys} HAVING {total} <> 0"

    def _kept_in_group(self, column: str) -> str:
        name = identifier(column)
        return f"min({name}::text)::{self.table.type_of(column)} AS {name}" if self.table.by_text(column) else name

    @property
    def compared(self) -> str:
        """The columns as they can be compared."""
        texts = (identifier(c) + ("::text" if self.table.by_text(c) else "") for c in self.columns)
        return ", ".join(texts) or "1"

    @property
    def _kept(self) -> str:
        rows = f"SELECT {self._listed} FROM {self.table.sql}"
        if self.event is Event.DELETE:
            return rows
        came = f"{self._waiting} WHERE {COUNT} > 0" if self.event is Event.PENDING else NEW_ROWS
        key = listed(self.table.key)
        # No join: PostgreSQL can still look up rows of the table by an index.
        return f"{rows} WHERE ({key}) NOT IN (SELECT {key} FROM {came})"

    @property
    def _moved(self) -> str:
        if self.event is Event.INSERT:
            return f"SELECT {self._listed} FROM {NEW_ROWS} WHERE false"
        went = f"{self._waiting} WHERE {COUNT} < 0" if self.event is Event.PENDING else OLD_ROWS
        return f"SELECT {self._listed} FROM {went}"

    def _old_by_count(self) -> str:
        weight = identifier(WEIGHT)
        rows = (
            f"SELECT {self._listed}, 1::bigint AS {weight} FROM {self.table.sql}"
            f" UNION ALL SELECT {self._listed}, -{weight} FROM ({self.change}) AS c"
        )
        net = self._netted(f"({rows}) AS r")
        return f"SELECT {self._listed} FROM ({net}) AS g, {copies(COUNT)} WHERE {COUNT} > 0"


def face_name(label: str, face: Face) -> str:
    """What a scan of a table at a face reads."""
    return f"{label}_{face}"


def copies(times: str) -> str:
    """A relation of so many rows, whose column nobody means."""
    return f"generate_series(1, {times}) AS {identifier('__trickle_copies')}({identifier('__trickle_copy')})"


def listed(columns: Sequence[str]) -> str:
    """Columns, quoted; for none, something to select."""
    return ", ".join(map(identifier, columns)) or "1 AS nothing"
