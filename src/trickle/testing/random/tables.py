"""Random tables and what happens to them.

A column's name tells its type, so that NATURAL JOIN has something to compare. Domains are small: joins match, groups
have several rows, rows are there twice. Doubles are halves, whose sums are exact in any order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from decimal import Decimal
from typing import Any

from trickle.testing.random.choices import Choices

Values = tuple[Any, ...]
Rows = list[Values]

COLUMNS: Mapping[str, str] = {
    "k": "int",
    "j": "int",
    "m": "bigint",
    "d": "decimal(6,2)",
    "x": "double",
    "s": "string",
    "r": "string",
    "b": "boolean",
    "e": "date",
}
DOMAINS: Mapping[str, Values] = {
    "int": (1, 2, None, 3, 0, -1),
    "bigint": (1, 2, None, 5, -100, 0),
    "decimal(6,2)": (Decimal("1.00"), Decimal("2.25"), None, Decimal("-1.50"), Decimal("0.00")),
    "double": (1.0, 0.5, None, -2.0, 0.0),
    "string": ("a", "b", None, "", "Ab"),
    "boolean": (True, False, None),
    "date": (date(2024, 1, 1), date(2024, 2, 29), None, date(2023, 12, 31)),
}
NAMES = ("t", "u", "v", "w")

Schemas = dict[str, dict[str, str]]
State = dict[str, Rows]


def schemas(choices: Choices) -> Schemas:
    """Two to four tables, all with a column ``k``."""
    names = NAMES[: 2 + choices.below(3)]
    rest = [name for name in COLUMNS if name != "k"]
    return {name: {c: COLUMNS[c] for c in ("k", *choices.some(rest, 1, 4))} for name in names}


def state(choices: Choices, shapes: Schemas) -> State:
    """Rows for every table."""
    return {name: rows(choices, columns, 8) for name, columns in shapes.items()}


def rows(choices: Choices, columns: Mapping[str, str], most: int) -> Rows:
    return [row(choices, columns) for _ in range(3 + choices.below(most - 2))]


def row(choices: Choices, columns: Mapping[str, str]) -> Values:
    """A row, from one number: a small number is a simple row."""
    sizes = [len(DOMAINS[kind]) for kind in columns.values()]
    bound = 1
    for size in sizes:
        bound *= size
    number = choices.below(bound)
    values = []
    for size, kind in zip(sizes, columns.values(), strict=True):
        number, place = divmod(number, size)
        values.append(DOMAINS[kind][place])
    return tuple(values)


def changed(choices: Choices, shapes: Schemas, before: State, used: Sequence[str], noted: set[str]) -> State:
    """The tables that a batch touches, with their new rows; ``noted`` gathers what was done.

    Mostly they are tables that the query uses, in one of three combinations, so that plans serve several batches.
    """
    if choices.chance(3):
        noted.add("empty batch")
        return {}
    touched = choices.weighted(((used, 50), (used[:1], 25), (used[-1:], 20), (list(shapes), 5)))
    if len(touched) > 1:
        noted.add("several tables")
    return {name: _table_changed(choices, shapes[name], before[name], noted) for name in touched}


def _table_changed(choices: Choices, columns: Mapping[str, str], before: Rows, noted: set[str]) -> Rows:
    after = list(before)
    for _ in range(4 + choices.below(5)):
        action = choices.weighted(_ACTIONS)
        noted.add(action)
        if action == "insert" or not after:
            after.append(row(choices, columns))
            continue
        place = choices.below(len(after))
        match action:
            case "delete":
                after.pop(place)
            case "update":
                after[place] = row(choices, columns)
            case "key update":
                after[place] = (row(choices, {"k": "int"})[0], *after[place][1:])
            case "update of one column":
                column = choices.below(len(columns))
                value = choices.pick(DOMAINS[list(columns.values())[column]])
                after[place] = (*after[place][:column], value, *after[place][column + 1 :])
            case "same row again":
                after.append(after.pop(place))
            case "insert of a duplicate":
                after.append(after[place])
            case "to NULL":
                after[place] = (None,) * len(columns)
            case "truncate":
                after.clear()
    return after


_ACTIONS = (
    ("insert", 42),
    ("delete", 20),
    ("update", 12),
    ("update of one column", 12),
    ("key update", 8),
    ("insert of a duplicate", 6),
    ("to NULL", 3),
    ("same row again", 3),
    ("truncate", 1),
)
