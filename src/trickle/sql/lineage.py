"""Which columns a query may read: an over-estimate that never misses one."""

from __future__ import annotations

from collections.abc import Iterable

from sqlglot import exp

from trickle.sql.tokens import read_source
from trickle.sql.trees import query_tree


def columns_used(texts: Iterable[str], max_depth: int) -> frozenset[str] | None:
    """Lower-case names in the queries that may be columns; None when a star or NATURAL JOIN takes them all.

    >>> sorted(columns_used(["SELECT o.A + b FROM t o WHERE c > (SELECT count(*) FROM u)"], 64) or ())
    ['a', 'b', 'c', 'o']
    >>> columns_used(["SELECT t.* FROM t"], 64) is None
    True
    """
    found: set[str] = set()
    for text in texts:
        source = read_source(text)
        tree = query_tree(source, source.tokens, max_depth).root
        if any(not _is_counted(star) for star in tree.find_all(exp.Star)):
            return None
        for join in tree.find_all(exp.Join):
            if join.method == "NATURAL":
                return None
            found.update(key.name.lower() for key in join.args.get("using") or ())
        # What looks like a table may be a column that is a struct.
        found.update(part.name.lower() for column in tree.find_all(exp.Column) for part in column.parts)
    return frozenset(found)


def _is_counted(star: exp.Star) -> bool:
    """Whether the star is that of count(*), which reads no column."""
    call = star.parent
    return isinstance(call, exp.Count) or (isinstance(call, exp.Anonymous) and call.name.lower() == "count")
