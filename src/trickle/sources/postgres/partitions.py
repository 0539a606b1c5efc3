"""Partitions that came or went since a table was described.

A partition that is created has no rows but those that come later, and these are captured. One that is attached brings
rows along, and one that is detached or dropped takes rows away, and no change row tells of them. One that is detached
and attached again may have been written to meanwhile, when it was of no interest to anybody.
"""

from __future__ import annotations

from collections.abc import Collection

from trickle.postgres.connect import Connection
from trickle.postgres.tables import Relkind, SourceTable

# A table that is created as a partition is entered by the transaction that creates it; system columns never change.
_LINKS = """
WITH RECURSIVE link AS (
    SELECT i.inhrelid, i.inhparent, i.xmin FROM pg_inherits i WHERE i.inhparent = %(root)s
    UNION ALL
    SELECT i.inhrelid, i.inhparent, i.xmin FROM link l JOIN pg_inherits i ON i.inhparent = l.inhrelid
)
SELECT l.inhrelid::bigint, l.inhparent::bigint, l.xmin::text <> a.xmin::text
FROM link l JOIN pg_attribute a ON a.attrelid = l.inhrelid AND a.attnum = -1"""


def parts_lost(connection: Connection, before: SourceTable, now: SourceTable) -> str | None:
    """Why the rows of a table are not those that its changes tell of; None when they are."""
    known, found = {part.oid: part for part in before.parts}, {part.oid: part for part in now.parts}
    gone = [known[oid].name for oid in known if oid not in found]
    if gone:
        return f"its part {gone[0]!r} was detached or dropped"
    again = [part.name for oid, part in known.items() if found[oid].since != part.since]
    if again:
        return f"its part {again[0]!r} was detached, and attached again"
    new = [oid for oid in found if oid not in known]
    if not new:
        return None
    if now.kind is not Relkind.PARTITIONED:
        # Nothing publishes or watches a table that inherits until the source is armed again.
        return f"{found[new[0]].name!r} inherits from it now"
    links = {
        child: (parent, attached)
        for child, parent, attached in connection.execute(_LINKS, {"root": before.oid}).fetchall()
    }
    settled = {oid for part in known for oid in _above(part, links)}
    for oid in new:
        if any(links[one][1] for one in [oid, *_above(oid, links)] if one in links and one not in settled):
            return f"its part {found[oid].name!r} was attached"
    return None


def _above(oid: int, links: dict[int, tuple[int, bool]]) -> Collection[int]:
    """The tables that a part belongs to, from the nearest on."""
    above: list[int] = []
    while oid in links:
        oid = links[oid][0]
        above.append(oid)
    return above
