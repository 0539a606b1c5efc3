"""What a query reads, as the catalog keeps it."""

from __future__ import annotations

from pyspark.sql.types import StructType

from trickle.catalog.records import Dependency, Kind
from trickle.sql import Query
from trickle.sql.lineage import columns_used
from trickle.tables.reading import Reading

DEEPEST = 200
"""The largest value of the setting max_parse_depth."""


def dependencies_of(text: Query, reading: Reading) -> list[Dependency]:
    """Everything that a query reads: what it names, and what views underneath name."""
    # What was parsed before is not too deep now.
    used = columns_used([text.text, *(view.text for view in reading.views.values())], DEEPEST)
    found = []
    for name, relation in reading.relations.items():
        columns: tuple[str, ...] = ()
        if relation.kind is not Kind.VIEW:
            columns = _used_columns(reading.schema(relation), used)
        found.append(
            Dependency(
                relation_id=0,
                source_id=relation.id,
                source_kind=relation.kind,
                columns=columns,
                fingerprint=None,
                direct=name in text.tables,
            )
        )
    return found


def _used_columns(schema: StructType, used: frozenset[str] | None) -> tuple[str, ...]:
    return tuple(name for name in schema.names if used is None or name.lower() in used)
