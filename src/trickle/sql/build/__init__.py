"""Text of a query to a tree of operators, with subqueries as Apply nodes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from trickle.algebra.names import TableName
from trickle.errors import InvalidName, UserError
from trickle.operators import Expr, Operator, Output, Project, col
from trickle.sql.build.check import checked
from trickle.sql.build.context import Built, Context, Schemas
from trickle.sql.build.prune import pruned
from trickle.sql.build.query import build_query, build_text
from trickle.sql.build.scope import Scope
from trickle.sql.depth import room_to_recurse

__all__ = ["Schemas", "build_root", "build_tree"]

DEFAULT_MAX_DEPTH = 64


def build_tree(
    text: str,
    schemas: Schemas,
    *,
    views: Mapping[TableName, str] | None = None,
    names: Sequence[str] | None = None,
    aggregates: Collection[str] = (),
    standard: bool = False,
    max_depth: int = DEFAULT_MAX_DEPTH,
) -> Operator:
    """The tree of a query. Its root gives the columns their visible names: ``names``, or those that the text says.

    ``aggregates`` are the user's own aggregate functions. Spark departs from standard SQL in two places, and so
    does the tree unless ``standard`` is given: IN as a value is false where it should be NULL, and over no rows ROLLUP
    and its kin have no grand total.

    >>> from trickle.operators import show
    >>> schemas = {TableName.of(["t"]): {"id": "int", "a": "int"}}
    >>> print(show(build_tree("SELECT Id, a + 1 AS b FROM t WHERE a > 0", schemas)))
    project id as Id, a + 1 as b
      filter a > 0
        scan t new: id, a
    """
    own = frozenset(name.lower() for name in aggregates)
    context = Context(schemas, views or {}, own, max_depth, build_query, build_text, standard=standard)
    with room_to_recurse():
        built = build_text(context, text)
        return checked(pruned(_root(built, names)))


def build_root(
    root: Expr,
    schemas: Schemas,
    *,
    views: Mapping[TableName, str],
    tree_of: Callable[[str], Expr],
    names: Sequence[str],
    aggregates: Collection[str],
    max_depth: int = DEFAULT_MAX_DEPTH,
) -> Operator:
    """The tree of a query that was parsed already, in standard SQL; ``tree_of`` parses the texts of views."""

    def build_view(context: Context, text: str) -> Built:
        return build_query(context, tree_of(text), Scope())

    context = Context(schemas, views, frozenset(aggregates), max_depth, build_query, build_view, standard=True)
    with room_to_recurse():
        return checked(pruned(_root(build_query(context, root, Scope()), names)))


def _root(built: Built, names: Sequence[str] | None) -> Operator:
    visible = [column.name for column in built.columns] if names is None else list(names)
    if len(visible) != len(built.columns):
        raise UserError(f"{len(visible)} names for {len(built.columns)} columns")
    seen: set[str] = set()
    for name in visible:
        if name.lower() in seen:
            raise InvalidName(f"column {name!r} is there twice", hint="give one of them another name with AS")
        seen.add(name.lower())
    pairs = zip(visible, built.columns, strict=True)
    return Project(built.tree, tuple(Output(name, col(column.column)) for name, column in pairs))
