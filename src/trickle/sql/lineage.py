"""Which columns a query may read: an over-estimate that never misses one."""

from __future__ import annotations

from collections.abc import Iterable

from sqlglot import exp, parse_one


def columns_used(texts: Iterable[str]) -> frozenset[str] | None:
    """Lower-case names of all columns that the queries mention; None when a star or NATURAL JOIN takes them all.

    >>> sorted(columns_used(["SELECT o.A + b FROM t o WHERE c > (SELECT count(*) FROM u)"]) or ())
    ['a', 'b', 'c']
    >>> columns_used(["SELECT t.* FROM t"]) is None
    True
    """
    found: set[str] = set()
    for text in texts:
        tree = parse_one(text, read="spark")
        if any(not isinstance(star.parent, exp.Count) for star in tree.find_all(exp.Star)):
            return None
        for join in tree.find_all(exp.Join):
            if join.method == "NATURAL":
                return None
            found.update(key.name.lower() for key in join.args.get("using") or ())
        found.update(column.name.lower() for column in tree.find_all(exp.Column))
        found.update(dot.name.lower() for dot in tree.find_all(exp.Dot))
    return frozenset(found)
