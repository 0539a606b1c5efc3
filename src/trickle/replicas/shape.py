"""What a replica was made for: the used columns of its source, as the catalog keeps them. Pure.

Names of columns are the source's own where a Delta table can hold them; others have the characters that it cannot
hold replaced. Everything that is compared when the source is looked at again is here: another number, name or type of
a used column, another set of tables that hold the rows, or another key, means that what was captured does not fit any
more.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from trickle.errors import UnsupportedTable
from trickle.postgres.tables import Identity, Part, Relkind, SourceColumn, SourceTable
from trickle.postgres.types import PgType

_UNSTORABLE = re.compile(r"[ ,;{}()\n\t=]")


_CAPTURED = (Relkind.TABLE, Relkind.PARTITIONED)


def usable(table: SourceTable, *, by_polling: bool = False) -> SourceTable:
    """The table with the columns that can be captured: those that are computed at every read are in no row."""
    if table.kind not in _CAPTURED and not by_polling:
        raise UnsupportedTable(
            f"{table.shown} cannot be captured by triggers or WAL",
            detail=f"it is a {table.kind.name.lower().replace('_', ' ')}",
            hint="attach the tables that it is made from, or use cdc_mode = 'polling'",
        )
    found = table.with_columns(column.name for column in table.columns if column.generated != "v")
    if not found.columns:
        raise UnsupportedTable(f"{table.shown} has no columns")
    return found


def lake_names(columns: Iterable[str]) -> list[str]:
    """Names for the lake: storable, and different without regard to case.

    >>> lake_names(["id", "Unit Price", "unit_price", "ID"])
    ['id', 'Unit_Price', 'unit_price_2', 'ID_2']
    """
    taken: set[str] = set()
    found = []
    for column in columns:
        plain = name = _UNSTORABLE.sub("_", column)
        number = 1
        while name.lower() in taken:
            number += 1
            name = f"{plain}_{number}"
        taken.add(name.lower())
        found.append(name)
    return found


def to_json(table: SourceTable) -> dict[str, Any]:
    """The shape as the catalog keeps it."""
    return {
        "kind": table.kind.value,
        "identity": table.identity.value,
        "identity_columns": list(table.identity_columns),
        "key": list(table.key),
        "unlogged": table.unlogged,
        "parts": [[part.oid, part.schema, part.name, part.since] for part in table.parts],
        "columns": [
            {
                "name": column.name,
                "attnum": column.attnum,
                "type_oid": column.type_oid,
                "type": column.type_text,
                "typmod": column.typmod,
                "not_null": column.not_null,
                "generated": column.generated,
                "base": _type_to_json(column.type),
            }
            for column in table.columns
        ],
    }


def from_json(oid: int, schema: str, name: str, shape: Mapping[str, Any]) -> SourceTable:
    """The inverse of ``to_json``."""
    return SourceTable(
        oid=oid,
        schema=schema,
        name=name,
        kind=Relkind(shape["kind"]),
        columns=tuple(
            SourceColumn(
                name=column["name"],
                attnum=column["attnum"],
                type_oid=column["type_oid"],
                type_text=column["type"],
                typmod=column["typmod"],
                not_null=column["not_null"],
                generated=column["generated"],
                type=_type_from_json(column["base"]),
            )
            for column in shape["columns"]
        ),
        key=tuple(shape["key"]),
        identity=Identity(shape["identity"]),
        parts=tuple(Part(*part) for part in shape["parts"]),
        identity_columns=tuple(shape["identity_columns"]),
        unlogged=shape["unlogged"],
    )


def _type_to_json(kind: PgType) -> dict[str, Any]:
    return {
        "oid": kind.oid,
        "name": kind.name,
        "typmod": kind.typmod,
        "builtin": kind.builtin,
        "element": None if kind.element is None else _type_to_json(kind.element),
        "delimiter": kind.delimiter,
    }


def _type_from_json(found: Mapping[str, Any]) -> PgType:
    element = None if found["element"] is None else _type_from_json(found["element"])
    return PgType(found["oid"], found["name"], found["typmod"], found["builtin"], element, found["delimiter"])


@dataclass(frozen=True)
class Drift:
    """What changed in a source: a used column, or only its key or which tables hold its rows."""

    words: str
    in_columns: bool


def difference(known: SourceTable, now: SourceTable) -> Drift | None:
    """What changed in what the replica uses; None when it still fits."""
    by_number = {column.attnum: column for column in now.columns}
    for column in known.columns:
        found = by_number.get(column.attnum)
        if found is None:
            return Drift(f"column {column.name!r} was dropped", in_columns=True)
        if found.name != column.name:
            return Drift(f"column {column.name!r} was renamed to {found.name!r}", in_columns=True)
        if (found.type_oid, found.typmod) != (column.type_oid, column.typmod):
            return Drift(f"column {column.name!r} was {column.type_text} and is {found.type_text}", in_columns=True)
    if {(part.oid, part.since) for part in known.parts} != {(part.oid, part.since) for part in now.parts}:
        return Drift("partitions were attached, made or detached", in_columns=False)
    if known.key and known.key != now.key:
        return Drift(f"its key was ({', '.join(known.key)}), and is no more", in_columns=False)
    return None


def renamed(known: SourceTable, now: SourceTable) -> SourceTable:
    """What is known, under the names that the source and its parts have now."""
    return replace(known, schema=now.schema, name=now.name, parts=now.parts)


def anew(known: SourceTable, now: SourceTable) -> SourceTable:
    """The source as it is now, with those of the used columns that are still there, and the same ones by number."""
    numbers = {column.attnum for column in known.columns}
    all_used: Sequence[str] = [column.name for column in now.columns if column.attnum in numbers]
    return usable(now, by_polling=known.kind not in _CAPTURED).with_columns(all_used)
