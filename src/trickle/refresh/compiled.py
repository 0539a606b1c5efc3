"""A query compiled: its tree, and the stages in which its result is kept.

Compiling asks Spark for names and types and nothing else. It is done once for a query and the columns of its sources.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from threading import Lock

from pyspark.sql.types import StructType

from trickle.algebra.names import INTERNAL_PREFIX, TableName
from trickle.delta.groups import Groups
from trickle.delta.plan import OWN
from trickle.delta.stages import Stage, split, unrestricted
from trickle.delta.typed import aligned, types_of_gaps
from trickle.engine import Engine
from trickle.operators import Operator, Output, Project, show, walk
from trickle.operators.clock import NOW
from trickle.refresh.analyst import Analyst
from trickle.refresh.dependencies import DEEPEST
from trickle.sql import Query
from trickle.sql.build import build_tree
from trickle.sql.clock import bind_clock
from trickle.sql.rewrites import rewrite
from trickle.tables.reading import Reading

_REMEMBERED = 256


@dataclass(frozen=True)
class Compiled:
    """A query's tree and stages. ``signature`` changes whenever what is stored does."""

    tree: Operator
    stages: tuple[Stage, ...]
    signature: str
    unrestricted: tuple[str, ...]

    @cached_property
    def reads_clock(self) -> bool:
        """Whether the result depends on the time."""
        return any(NOW in node.used for node in walk(self.tree))

    @property
    def is_floating(self) -> bool:
        """Whether floating sums are kept by adding to them."""
        parts = [part for stage in self.stages if isinstance(stage.keeping, Groups) for part in stage.keeping.parts]
        return any(part.is_floating for part in parts)

    @property
    def own(self) -> Stage:
        """The stage that is the stream table itself."""
        return self.stages[-1]

    @property
    def inner(self) -> tuple[Stage, ...]:
        """The stages that are kept in tables of their own."""
        return self.stages[:-1]


@dataclass(frozen=True)
class Question:
    """What is compiled. ``wanted`` are the columns of the query that are stored; None for all."""

    text: str
    views: tuple[tuple[TableName, str], ...]
    schemas: tuple[tuple[TableName, str], ...]
    wanted: tuple[str, ...] | None
    max_depth: int


class _Remembered:
    """The latest answers."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._known: OrderedDict[Question, Compiled] = OrderedDict()

    def get(self, question: Question) -> Compiled | None:
        with self._lock:
            found = self._known.get(question)
            if found is not None:
                self._known.move_to_end(question)
            return found

    def put(self, question: Question, answer: Compiled) -> None:
        with self._lock:
            self._known[question] = answer
            while len(self._known) > _REMEMBERED:
                self._known.popitem(last=False)


_remembered = _Remembered()


def compile_query(
    engine: Engine, question: Question, schemas: Mapping[TableName, StructType], names: Callable[[], Sequence[str]]
) -> Compiled:
    """The stages of a query. UnsupportedQuery, with the construct, for what cannot be kept by its changes.

    ``names`` asks Spark for the names of the query's columns.
    """
    found = _remembered.get(question)
    if found is None:
        all_names = tuple(names())
        found = _compiled(engine, question, schemas, all_names)
        _remembered.put(question, found)
        if question.wanted is None:
            # What a refresh asks for, once the table is there.
            _remembered.put(replace(question, wanted=all_names), found)
    return found


def visible(schema: StructType) -> StructType:
    """A table's columns without the internal ones."""
    return StructType([field for field in schema.fields if not field.name.startswith(INTERNAL_PREFIX)])


def described(schemas: Mapping[TableName, StructType]) -> dict[TableName, dict[str, str]]:
    """The columns that queries see of tables, with their types."""
    return {
        name: {field.name: field.dataType.simpleString() for field in visible(schema).fields}
        for name, schema in schemas.items()
    }


def _compiled(
    engine: Engine, question: Question, schemas: Mapping[TableName, StructType], names: tuple[str, ...]
) -> Compiled:
    columns = described(schemas)
    tree = build_tree(question.text, columns, views=dict(question.views), max_depth=question.max_depth, names=names)
    if question.wanted is not None and question.wanted != names:
        tree = Project(tree, Output.keep(question.wanted))
    tree = bind_clock(rewrite(tree, columns))
    analyst = Analyst(engine, {str(name): visible(schema) for name, schema in schemas.items()})
    analyst.refuse_chance(tree)
    tree = aligned(tree, analyst.columns_of)
    gaps = {name: kind for name, kind in types_of_gaps(tree, analyst.columns_of).items() if kind != "void"}
    stages = split(tree, analyst.types_of, OWN, analyst.stored_types, gaps)
    layout = "\n".join(f"{stage.table} {', '.join(stage.columns)}\n{show(stage.whole)}" for stage in stages)
    return Compiled(
        tree=tree,
        stages=stages,
        signature=hashlib.sha256(layout.encode()).hexdigest()[:16],
        unrestricted=tuple(dict.fromkeys(reason for stage in stages for reason in unrestricted(stage))),
    )


def compile_reading(text: Query, reading: Reading, wanted: tuple[str, ...] | None = None) -> Compiled:
    """The stages of a query over what it reads; ``wanted`` are the columns to keep, all by default."""
    schemas = {source.name: reading.schema(source) for source in reading.tables}
    question = Question(
        text=text.text,
        views=tuple((name, view.text) for name, view in sorted(reading.views.items())),
        schemas=tuple((name, schema.json()) for name, schema in sorted(schemas.items())),
        wanted=wanted,
        # What was parsed at creation is not too deep now.
        max_depth=DEEPEST,
    )
    return compile_query(reading.warehouse.engine, question, schemas, lambda: reading.described(text, DEEPEST).columns)
