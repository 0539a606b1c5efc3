"""Operator trees to SQL: a chain of common table expressions, then one query.

Every operator becomes a query over its inputs' names. Projections and filters are folded into the query below them
(``block.py``); equal subtrees are computed under one name (``sharing.py``). Names are unique in the whole statement and
differ from those of all tables and columns, so a column needs no qualifier and ``s.a`` can only be a field of a struct.

A recursion is iterated by whoever runs the tree, but for PostgreSQL's own trees: there it is WITH RECURSIVE.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from sqlglot import exp

from trickle.algebra.weights import FILE, ROW, WEIGHT
from trickle.errors import UnsupportedQuery
from trickle.operators import (
    Aggregate,
    Expr,
    Face,
    Filter,
    Generate,
    InvalidTree,
    Join,
    JoinKind,
    Operator,
    Project,
    Recursion,
    RecursiveRef,
    Scan,
    Step,
    TopK,
    UnionAll,
    Values,
    Window,
    WindowOrder,
    col,
)
from trickle.sql.lower.block import Block, Closed, from_, passed
from trickle.sql.lower.dialects import Dialect, written
from trickle.sql.lower.generators import generated
from trickle.sql.lower.joins import joined
from trickle.sql.lower.nesting import nested
from trickle.sql.lower.sharing import Shared
from trickle.sql.lower.values import values_block

NameOf = Callable[[Scan | Step], str]

# PostgreSQL cuts names after 63 bytes, and a number may come behind.
_NAME_LENGTH = 40
_NO_WORD = re.compile(r"[^A-Za-z0-9]+")
_JOIN_NAMES = {
    JoinKind.INNER: "join",
    JoinKind.LEFT: "left_join",
    JoinKind.SEMI: "semi_join",
    JoinKind.ANTI: "anti_join",
}


def lower(
    tree: Operator,
    name_of: NameOf,
    dialect: Dialect = "spark",
    *,
    pretty: bool = False,
    alone: bool = False,
    is_nested: bool = False,
) -> str:
    """The SQL text of a tree, whose columns are the tree's, in order.

    ``name_of`` tells the table or view (unquoted) that holds a leaf's rows under the names of its source. With
    ``alone``, Spark is told to do it all in one task, which asks that every leaf has one partition. What ``is_nested``
    has names only for what is used twice (``nesting.py``): quicker to analyse, and hard to read.

    >>> orders = Scan("orders", (("id", "id"), ("total", "total")))
    >>> big = Filter(orders, exp.GT(this=col("total"), expression=exp.Literal.number(9)))
    >>> lower(big, lambda leaf: "v1")
    'SELECT `id`, `total` FROM `v1` WHERE `total` > 9'
    >>> print(lower(Aggregate(UnionAll((big, orders)), ("id",)), lambda leaf: "v1", "duckdb", pretty=True))
    WITH "orders_new" AS (
      SELECT
        "id",
        "total"
      FROM "v1"
    ), "union_1" AS (
      SELECT
        "id",
        "total"
      FROM "orders_new"
      WHERE
        "total" > 9
      UNION ALL
      SELECT
        "id",
        "total"
      FROM "orders_new"
    )
    SELECT
      "id"
    FROM "union_1"
    GROUP BY
      "id"
    """
    statement = _Lowering(tree, name_of, dialect, alone=alone).statement()
    return written(nested(statement) if is_nested else statement, dialect, pretty=pretty)


@dataclass(frozen=True)
class _Loop:
    """A recursion that is being written: its name in the statement, and its columns."""

    name: str
    columns: tuple[str, ...]


class _Lowering:
    def __init__(
        self,
        tree: Operator,
        name_of: NameOf,
        dialect: Dialect,
        *,
        alone: bool,
        loops: Mapping[str, _Loop] | None = None,
        taken: frozenset[str] = frozenset(),
    ) -> None:
        self._alone = alone
        self._loops = loops or {}
        self._is_recursive = False
        self._shared = Shared(tree)
        self._name_of = name_of
        self._dialect = dialect
        self._ctes: list[exp.CTE] = []
        self._names: dict[int, str] = {}
        self._columns = {name.lower() for node in self._shared.nodes for name in _column_names(node)}
        leaves = [node for node in self._shared.nodes if isinstance(node, Scan | Step)]
        self._taken = self._columns | {name_of(leaf).lower() for leaf in leaves} | taken

    def statement(self) -> exp.Query:
        query = self._finished(self._build(self._shared.root))
        if self._ctes:
            query.set("with_", exp.With(expressions=self._ctes, recursive=self._is_recursive))
        return query

    def _finished(self, built: Block | Closed) -> exp.Query:
        return built.select(self._dialect) if isinstance(built, Block) else built.query

    def _relation(self, node: Operator) -> str:
        """The name of a relation with exactly the columns of a node."""
        if id(node) not in self._names:
            self._define(node, self._build(node))
        return self._names[id(node)]

    def _define(self, node: Operator, built: Block | Closed) -> None:
        name = self._fresh(built.name, numbered=not isinstance(_source(node), Scan | Step))
        self._names[id(node)] = name
        alias = exp.TableAlias(this=exp.to_identifier(name, quoted=True))
        # PostgreSQL would compute what is read twice as a whole, and no index could help.
        inlined = False if self._dialect == "postgres_own" else None
        self._ctes.append(exp.CTE(this=self._finished(built), alias=alias, materialized=inlined))

    def _block(self, node: Operator) -> Block:
        """A block with a node's rows, to which more can be added."""
        if not self._shared.is_shared(node):
            built = self._build(node)
            if isinstance(built, Block):
                return built
            self._define(node, built)
        return self._read(node)

    def _read(self, node: Operator) -> Block:
        name = self._relation(node)
        return Block(name, from_(name), passed(node.columns))

    def _fresh(self, stem: str, *, numbered: bool) -> str:
        """A name that nothing else has: ``orders_new``, ``orders_new_2``; ``join_1``, ``join_2``."""
        number = 1
        name = f"{stem}_1" if numbered else stem
        while name.lower() in self._taken:
            number += 1
            name = f"{stem}_{number}"
        self._taken.add(name.lower())
        return name

    def _build(self, node: Operator) -> Block | Closed:
        match node:
            case Scan() | Step():
                return self._leaf(node)
            case Values():
                return values_block(node, self._fresh("rows", numbered=True), self._dialect)
            case Filter():
                return self._filter(node)
            case Project():
                return self._project(node)
            case Generate():
                source = generated(node, self._relation(node.input), self._fresh("made", numbered=True), self._dialect)
                return Block("generate", source, passed(node.columns))
            case UnionAll():
                return self._union(node)
            case Join():
                left, right = self._relation(node.left), self._relation(node.right)
                source, conditions = joined(node, left, right, self._dialect, alone=self._alone)
                return Block(_JOIN_NAMES[node.kind], source, passed(node.columns), written=conditions)
            case Aggregate():
                return self._aggregate(node)
            case Window():
                return self._window(node)
            case TopK():
                return self._top(node)
            case Recursion() | RecursiveRef():
                return self._recursive(node)
            case _:
                raise InvalidTree(f"{type(node).__name__} has no SQL")

    def _recursive(self, node: Recursion | RecursiveRef) -> Block:
        if self._dialect != "postgres_own":
            raise UnsupportedQuery(
                "a recursive query has no single statement", detail=f"recursion {node.name} is iterated"
            )
        if isinstance(node, Recursion):
            return self._recursion(node)
        loop = self._loops[node.name]
        values: dict[str, Expr] = {name: col(column) for name, column in zip(node.names, loop.columns, strict=True)}
        return Block(_word(node.name), from_(loop.name), values)

    def _recursion(self, node: Recursion) -> Block:
        loop = _Loop(self._fresh(_word(node.name), numbered=True), node.names)
        base, step = (
            _Lowering(
                part,
                self._name_of,
                self._dialect,
                alone=self._alone,
                loops=loops,
                taken=frozenset(self._taken),
            ).statement()
            for part, loops in ((node.base, self._loops), (node.step, {**self._loops, node.name: loop}))
        )
        query = exp.Union(this=exp.Subquery(this=base), expression=exp.Subquery(this=step), distinct=node.distinct)
        columns = [exp.to_identifier(name, quoted=True) for name in node.names]
        alias = exp.TableAlias(this=exp.to_identifier(loop.name, quoted=True), columns=columns)
        self._ctes.append(exp.CTE(this=query, alias=alias))
        self._is_recursive = True
        return Block(loop.name, from_(loop.name), passed(node.names))

    def _leaf(self, node: Scan | Step) -> Block:
        relation = self._name_of(node)
        # A struct's field must not be taken for a column of a table of the struct's name.
        alias = self._fresh("source", numbered=True) if relation.lower() in self._columns else None
        values: dict[str, Expr] = {name: col(column) for column, name in node.fields}
        if isinstance(node, Step):
            return Block(_word(node.name), from_(relation, alias), values)
        added = (WEIGHT,) if node.face is Face.CHANGE else (FILE, ROW) if node.located else ()
        return Block(f"{_word(node.table)}_{node.face.value}", from_(relation, alias), values | passed(added))

    def _filter(self, node: Filter) -> Block:
        block = self._block(node.input)
        if not block.can_take((node.condition,), keeps_columns=True):
            block = self._read_block(node.input, block)
        return block.where(node.condition)

    def _project(self, node: Project) -> Block:
        block = self._block(node.input)
        if not block.can_take(node.expressions):
            block = self._read_block(node.input, block)
        return block.projected(node.outputs)

    def _read_block(self, node: Operator, block: Block) -> Block:
        """What a block has, read under a name."""
        if id(node) not in self._names:
            self._define(node, block)
        return self._read(node)

    def _union(self, node: UnionAll) -> Block | Closed:
        if len(node.parts) == 1:
            return self._block(node.parts[0])
        first, *others = map(self._part, node.parts)
        query = first
        for other in others:
            query = exp.Union(this=query, expression=other, distinct=False)
        return Closed("union", query)

    def _part(self, node: Operator) -> exp.Query:
        # The order and the limit of a part would be taken for those of the union.
        if self._shared.is_shared(node) or isinstance(node, TopK):
            return self._finished(self._read(node))
        return self._finished(self._build(node))

    def _aggregate(self, node: Aggregate) -> Closed:
        block = self._block(node.input)
        # GROUP BY takes a number for a place in the list, so keys are columns and nothing else.
        keys = {key: block.values[key] for key in node.keys}
        if not (all(isinstance(key, exp.Column) for key in keys.values()) and block.can_take(node.expressions)):
            block = self._read_block(node.input, block)
            keys = {key: block.values[key] for key in node.keys}
        calls = {call.name: block.value_of(call.value) for call in node.calls}
        query = block.select(self._dialect, keys | calls)
        if keys:
            query.group_by(*(key.copy() for key in keys.values()), copy=False)
        return Closed("aggregate" if calls else "distinct", query)

    def _window(self, node: Window) -> Closed:
        block = self._block(node.input)
        if not block.is_renaming:
            block = self._read_block(node.input, block)
        calls = {call.name: block.value_of(call.value) for call in node.calls}
        return Closed("window", block.select(self._dialect, {**block.values, **calls}))

    def _top(self, node: TopK) -> Closed:
        block = self._block(node.input)
        # A name in ORDER BY may be taken for one of the input.
        if any(value != col(name) for name, value in block.values.items()):
            block = self._read_block(node.input, block)
        query = block.select(self._dialect)
        if node.order:
            query.order_by(*map(_ordered, node.order), copy=False)
        if node.limit is not None:
            query.limit(node.limit, copy=False)
        if node.offset:
            query.offset(node.offset, copy=False)
        return Closed("top", query)


def _ordered(term: WindowOrder) -> exp.Ordered:
    return exp.Ordered(this=col(term.name), desc=term.descending or None, nulls_first=term.nulls_first)


def _column_names(node: Operator) -> Iterator[str]:
    yield from node.columns
    if isinstance(node, Scan | Step):
        yield from (column for column, _ in node.fields)


def _source(node: Operator) -> Operator:
    """The operator whose rows a chain of projections and filters reads."""
    while isinstance(node, Project | Filter):
        node = node.input
    return node


def _word(name: str) -> str:
    """A name that needs no quotes.

    >>> _word("sales.`big orders`")
    'sales_big_orders'
    """
    return _NO_WORD.sub("_", name).strip("_")[:_NAME_LENGTH] or "relation"
