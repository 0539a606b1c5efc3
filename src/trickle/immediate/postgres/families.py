"""Which stream tables share a lock (pure).

A writer that takes several locks one after the other may meet another who takes them in another order. So stream tables
that are locked as a whole share one lock where a transaction is likely to need several: those that read each other, and
those that read the same table.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from trickle.immediate.postgres.registry import Record


def relatives(records: Iterable[Record], sources: Collection[int], *, by_group: bool) -> list[Record]:
    """The stream tables that share a lock with a new one that reads ``sources``."""
    known = list(records)
    found = [each for each in known if each.relation in sources]
    if not by_group or found:
        found += [each for each in known if not each.by_group and set(each.sources) & set(sources)]
    family: dict[int, Record] = {}
    while found:
        one = found.pop()
        if one.number in family:
            continue
        family[one.number] = one
        found += [each for each in known if _are_related(one, each)]
    return sorted(family.values(), key=lambda each: each.number)


def _are_related(one: Record, other: Record) -> bool:
    if one.family == other.family or one.relation in other.sources or other.relation in one.sources:
        return True
    return not other.by_group and bool(set(one.sources) & set(other.sources))
