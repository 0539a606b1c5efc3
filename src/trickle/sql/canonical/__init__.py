"""Queries whose result SQL leaves open get one result: the same in full and differential refresh, and for the oracle.

The rules are in ``aggregates``, ``windows`` and ``limits``. Every one picks a result that the query could have had.
What Spark has no words for, ``quantifiers`` says in others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from sqlglot import exp

from trickle.algebra.names import TableName
from trickle.sql.canonical.aggregates import settle_aggregates
from trickle.sql.canonical.columns import Columns, Schemas
from trickle.sql.canonical.limits import settle_limit
from trickle.sql.canonical.parsing import root_of, written
from trickle.sql.canonical.quantifiers import settle_quantifiers
from trickle.sql.canonical.windows import settle_windows
from trickle.sql.depth import room_to_recurse
from trickle.sql.query import DEFAULT_MAX_DEPTH

__all__ = ["Canonical", "canonical"]


@dataclass(frozen=True)
class Canonical:
    """A query with one result. ``notices`` say in words where the text was made more definite."""

    text: str
    notices: tuple[str, ...] = ()


def canonical(
    text: str,
    schemas: Schemas,
    *,
    views: Mapping[TableName, str] | None = None,
    max_depth: int = DEFAULT_MAX_DEPTH,
) -> Canonical:
    """The query with its order-sensitive parts made definite; the very same text when there are none.

    Raises ``UnsupportedQuery`` where no fixed result can be written down. ``schemas`` and ``views`` are what the query
    reads; the texts of views are not changed here: each is a query of its own.

    >>> tables = {TableName.of(["t"]): {"k": "int", "x": "string"}}
    >>> canonical("SELECT k, first(x) AS x FROM t GROUP BY k", tables).text
    'SELECT k, min(x) AS x FROM t GROUP BY k'
    >>> canonical("select K, min( x ) AS x from t GROUP BY k", tables).text
    'select K, min( x ) AS x from t GROUP BY k'
    """
    with room_to_recurse():
        root = root_of(text, max_depth)
        quantified = list(settle_quantifiers(root))
        notices = tuple(dict.fromkeys((*quantified, *_settle(root, Columns(schemas, views or {}, max_depth)))))
        return Canonical(written(root), notices) if notices else Canonical(text)


def _settle(root: exp.Expr, columns: Columns) -> Iterator[str]:
    queries = [node for node in root.dfs() if isinstance(node, exp.Query | exp.Values)]
    # Limits first: an item without a name is compared with the order as the user wrote both.
    for query in queries:
        yield from settle_limit(query, columns)
    # Windows last: what they write is settled.
    yield from reversed(list(settle_aggregates(root, columns)))
    for query in queries:
        if isinstance(query, exp.Select):
            yield from reversed(list(settle_windows(query, columns)))
