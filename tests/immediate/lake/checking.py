"""An IMMEDIATE stream table equals its query over its sources as readers see them now, as a multiset, both ways."""

from __future__ import annotations

from pyspark.sql import DataFrame

from trickle.api import Trickle
from trickle.catalog import pins, relations, streams
from trickle.sources.lake import LakePosition
from trickle.sql.names import table_name
from trickle.testing import check
from trickle.testing.oracle import differences


def agree(t: Trickle, *names: str, moved: bool = False) -> None:
    """Compare with the query over what readers see, which is what the frontier names.

    ``moved``: a source was committed without a change of rows, which nobody needs to follow; then both are compared.
    """
    wanted = names or [row.name for row in t.status() if row.refresh_mode == "IMMEDIATE"]
    assert wanted
    for name in wanted:
        query = next(row.query for row in t.status() if row.name == name)
        found = t.sql(query)
        assert isinstance(found, DataFrame)
        stored = t.table(name)
        assert differences(found.select(*stored.columns).toArrow(), stored.toArrow()) == [], name
        assert moved or stands_at_its_sources(t, name)
    if moved:
        check(t, *wanted)


def stands_at_its_sources(t: Trickle, name: str) -> bool:
    """Whether a stream table reflects what readers see of all its sources."""
    with t.warehouse.catalog.read() as tx:
        frontier = streams.get(tx, table_name(name)).frontier
        held = {relation: pin.version for relation, pin in pins.of(tx).items()}
        held |= {stream.relation.id: stream.version for stream in streams.listing(tx)}
    return {s: LakePosition.parse(p).version for s, p in frontier.items()} == {s: held[s] for s in frontier}


def pinned(t: Trickle) -> set[str]:
    """The tables that have a pin."""
    with t.warehouse.catalog.read() as tx:
        return {str(relations.by_id(tx, found).name) for found in pins.of(tx)}
