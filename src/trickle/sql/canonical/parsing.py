"""Text to a tree and back, for queries that are written anew."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.generators.spark import SparkGenerator

from trickle.sql.tokens import read_source
from trickle.sql.trees import query_tree


class _Writer(SparkGenerator):
    # sqlglot would write QUALIFY as a subquery; Spark has it.
    TRANSFORMS: ClassVar[dict[type[exp.Expr], Callable[..., str]]] = {
        kind: write for kind, write in SparkGenerator.TRANSFORMS.items() if kind is not exp.Select
    }


def written(root: exp.Expr) -> str:
    """The text of a tree, with functions as the user spelled them."""
    return str(_Writer(dialect=Spark(), normalize_functions=False).generate(root))


def root_of(text: str, max_depth: int) -> exp.Expr:
    """The tree of a query."""
    source = read_source(text)
    statements = source.statements()
    if len(statements) != 1:
        raise source.error(0, "one query is expected")
    tokens = source.tokens_between(statements[0][0].start, statements[0][-1].end)
    return query_tree(source, tokens, max_depth).root
