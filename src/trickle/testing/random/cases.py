"""A random case: tables, a query, batches of changes; and its form as a file that can be replayed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any

from trickle.testing.keeping import Bench, Keeping, arrow_table
from trickle.testing.random import tables
from trickle.testing.random.choices import Choices
from trickle.testing.random.queries import query
from trickle.testing.random.scope import Writer
from trickle.testing.random.tables import Schemas, State


@dataclass(frozen=True)
class Case:
    """``batches`` have the new rows of the tables that they touch; ``noted`` are the constructs that occur."""

    text: str
    schemas: Schemas
    start: State
    batches: Sequence[State]
    noted: frozenset[str] = frozenset()

    def written(self) -> str:
        """The case as a file."""
        shapes = {name: list(columns.items()) for name, columns in self.schemas.items()}
        lines = [self.text, json.dumps(shapes)]
        lines += [json.dumps(state, default=_plain) for state in (self.start, *self.batches)]
        return "\n".join(lines) + "\n"

    @classmethod
    def read(cls, text: str) -> Case:
        """The case in a file: the query, the tables' columns, their rows, and the new rows of each batch."""
        query_text, shapes, *states = (line for line in text.splitlines() if line and not line.startswith("--"))
        schemas = {name: dict(columns) for name, columns in json.loads(shapes).items()}
        first, *rest = ({name: _typed(schemas[name], rows) for name, rows in json.loads(s).items()} for s in states)
        return cls(query_text, schemas, first, rest)


def case(choices: Choices, batches: int) -> Case:
    """A random case."""
    shapes = tables.schemas(choices)
    writer = Writer(choices, shapes)
    text = query(writer, choices.weighted(((0, 20), (1, 35), (2, 30), (3, 15)))).text
    used = list(writer.used) or list(shapes)
    start = tables.state(choices, shapes)
    states, current = [], start
    for _ in range(batches):
        state = tables.changed(choices, shapes, current, used, writer.noted)
        current = {**current, **state}
        states.append(state)
    return Case(text, shapes, start, states, frozenset(writer.noted))


def played(bench: Bench, case: Case, thorough_every: int = 1) -> list[int]:
    """Keep the query through all batches; for each batch the number of rows that changed in the result.

    Every so many batches, and at the last, all ways to the result are tried.
    """
    rows = {name: arrow_table(columns, case.start[name]) for name, columns in case.schemas.items()}
    keeping = Keeping(bench, case.text, case.schemas, rows)
    changed = []
    for place, batch in enumerate(case.batches):
        news = {name: arrow_table(case.schemas[name], state) for name, state in batch.items()}
        thorough = place % thorough_every == 0 or place + 1 == len(case.batches)
        changed.append(keeping.refresh(news, thorough=thorough).rows_changed)
    return changed


def _plain(value: Any) -> str:
    if isinstance(value, date | Decimal):
        return str(value)
    raise TypeError(type(value))


def _typed(columns: dict[str, str], rows: Sequence[Sequence[Any]]) -> list[tuple[Any, ...]]:
    return [tuple(_value(kind, v) for kind, v in zip(columns.values(), row, strict=True)) for row in rows]


def _value(kind: str, value: Any) -> Any:
    if value is None:
        return None
    if kind.startswith("decimal"):
        return Decimal(value)
    return date.fromisoformat(value) if kind == "date" else value
