"""The leaves of plans as DataFrames: tables at their old and new version, their changes, and steps."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property, partial

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StructField, StructType

from trickle.algebra.names import quote
from trickle.algebra.weights import WEIGHT
from trickle.delta.optimize.nulls import Removal
from trickle.delta.reach import given_together
from trickle.delta.typed import Types
from trickle.engine import Engine, Left, spark_errors
from trickle.engine.tuning import Load, is_light, load_of
from trickle.lake.datafile import DataFile
from trickle.lake.few import Few, rows_at_hand
from trickle.lake.lookup import Lookups, Wanted
from trickle.lake.scan import pick, scan
from trickle.lake.snapshot import Snapshot
from trickle.lake.tuples import matching
from trickle.operators import Face, Filter, Join, Operator, Output, Project, Scan, Step, Values, col, transformed, walk
from trickle.refresh.held import Held
from trickle.refresh.narrowing import Narrowing, empty_steps, files_with, together, without_empty
from trickle.refresh.ranges import is_ranged, ranges_of
from trickle.refresh.recursion import MAX_DEPTH, resolved
from trickle.refresh.texts import Known, Texts
from trickle.refresh.views import Rows, View, Views
from trickle.sql.clock import with_moments

__all__ = ["Faces", "Held", "Planned", "Table", "change_columns"]

MOST_HELD = 2_000_000
"""Rows that are held on the driver at the most; more are held by Spark."""
MOST_CHOSEN = 1_000_000
"""Rows at hand of which those that a condition leaves are computed at once."""
MOST_AT_HAND = 2_000
"""Rows of a table up to which it travels with the plan: no file is opened by Spark, no job broadcasts it."""
MOST_BROADCAST = 10_000_000
"""Changed rows up to which what is joined with them is told to be sent to every task; of more, memory would run out."""

_texts = Texts()


@dataclass(frozen=True)
class Table:
    """A table that plans read: two versions of it, and how the change between them is read."""

    old: Snapshot | None
    new: Snapshot
    change: Callable[[Sequence[str]], DataFrame] | None = None
    local: Callable[[Sequence[str]], pa.Table | None] | None = None


@dataclass(frozen=True)
class Planned:
    """A query of Spark's, and how much it is to read."""

    engine: Engine
    text: str
    load: Load

    @cached_property
    def frame(self) -> DataFrame:
        """The query as a DataFrame."""
        return self.engine.sql(self.text)


@dataclass
class Faces:
    """What the leaves of the plans of one refresh stand for."""

    engine: Engine
    is_small: bool
    """Whether what is computed from the changes fits on the driver."""
    moments: Mapping[str, datetime] = field(default_factory=dict)
    """The times that ``NOW`` and ``NOW_OLD`` stand for."""
    tables: dict[str, Table] = field(default_factory=dict)
    changes: dict[str, Held] = field(default_factory=dict)
    steps: dict[str, Held] = field(default_factory=dict)
    types: Types = field(default_factory=dict)
    """Those of columns that NULL may take the place of, in the trees of the stage that is being computed."""
    max_depth: int = MAX_DEPTH
    """Rounds after which a recursion is taken for endless."""
    files_read: int = 0
    lookups: Lookups = field(default_factory=Lookups)
    views: Views = field(init=False)
    _cached: ExitStack = field(default_factory=ExitStack)
    _sources: dict[int, Held | Snapshot] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.views = Views(self.engine)
        self._cached.callback(self.views.close)

    def run(self, tree: Operator) -> DataFrame:
        """A tree as a DataFrame. Recursions in it are computed at once."""
        return self.planned(tree).frame

    def without_nulls(self, tree: Operator) -> tuple[Operator, list[bool]]:
        """The tree without parts that ask for NULL where there is none, and what tells how it was made of the tree."""
        removal = Removal(self._has_no_null)
        return removal.tree(tree), removal.answers

    def planned(self, tree: Operator, known: Known | None = None) -> Planned:
        """A tree as a query of Spark's; ``known`` is what it will come again as."""
        final = resolved(self, with_moments(tree, self.moments), self.max_depth)
        known = None if final is not tree else known or Known(tree)
        if not self.is_small:
            return self._run(final, known)
        steps = dict(self.steps)
        narrowing = Narrowing(self._snapshot, self._values, self._look_up, self._counts, self._computed, steps)
        with self._stepping(narrowing.steps):
            less = narrowing.tree(final)
            empty = empty_steps(less, self.steps)
            less = without_empty(less, empty)
            return self._run(less, None if narrowing.done is None else known and known.then(narrowing.done, empty))

    @contextmanager
    def _stepping(self, steps: dict[str, Held]) -> Iterator[None]:
        """Steps that are there for one tree."""
        before, self.steps = self.steps, steps
        try:
            yield
        finally:
            self.steps = before

    def _computed(self, part: Operator) -> Held:
        return self._hold(self._run(part, None))

    def _look_up(
        self, leaf: Scan, key: StructField, keys: pa.ChunkedArray, nulls: bool, wanted_with: pa.Table | None
    ) -> Held | None:
        """The rows of a table that have some keys, where they can be looked up here."""
        wanted = Wanted.of(keys, key, nulls=nulls)
        if wanted is None:
            return None
        snapshot = replace(self._snapshot(leaf), files=tuple(self._files(leaf)))
        ranges = ranges_of(pa.chunked_array([wanted.values])) if is_ranged(key.dataType) else []

        def choose(files: Sequence[DataFile]) -> Sequence[DataFile]:
            # No ranges say nothing: there are values that Python does not have.
            return files_with(files, key, ranges, nulls=nulls) if ranges else files

        schema = pick(snapshot.schema, [own for own, _ in leaf.fields])
        found = self.lookups.find(snapshot, schema, key, wanted, choose=choose, located=leaf.located)
        if found is None:
            return None
        rows, shape = found
        if wanted_with is not None:
            rows = matching(rows, shape, wanted_with)
        return Held(None, rows.num_rows, rows, shape)

    def _run(self, tree: Operator, known: Known | None) -> Planned:
        tree, known = self._inlined(tree, known)
        if sum(held.rows for held in self.changes.values()) > MOST_BROADCAST:
            tree, known = transformed(tree, _without_hint), None
        leaves: dict[str, list[Scan | Step]] = {}
        for node in walk(tree):
            if isinstance(node, Scan | Step):
                leaves.setdefault(_leaf_key(node), []).append(node)
        load = self._load(tree)
        # What only picks from rows at hand takes no task at all.
        alone = load in ("alone", "light") and not all(map(_is_at_hand, walk(tree)))
        # Handing rows over is a plan too, which may be compiled or interpreted.
        with self.engine.tuned(load):
            views = self._shown(leaves, alone)
        return Planned(self.engine, _texts.text(tree, _leaf_key, views, self.types, known=known, alone=alone), load)

    def _shown(self, leaves: Mapping[str, Sequence[Scan | Step]], alone: bool) -> dict[str, View]:
        """Where Spark finds leaves, with the columns that are wanted of them; ``alone`` for one task."""
        keys: dict[str, Hashable] = {}
        at_hand: dict[Hashable, Rows] = {}
        for name, same in leaves.items():
            first, columns = same[0], _columns(same)
            source = self._source(first)
            # A name may come to stand for something else, and an identity too once what had it is gone: it is kept.
            self._sources[id(source)] = source
            keys[name] = key = (name, tuple(columns), alone, id(source))
            if key not in self.views:
                rows = self._rows(first, columns)
                if rows is None:
                    self.views.show(key, self._frame(first, columns), alone=alone)
                else:
                    at_hand[key] = rows
        self.views.show_rows(at_hand, alone=alone)
        return {name: self.views[key] for name, key in keys.items()}

    def _source(self, leaf: Scan | Step) -> Held | Snapshot:
        """What a leaf stands for now."""
        if isinstance(leaf, Step):
            return self.steps[leaf.name]
        return self.changes[leaf.table] if leaf.face is Face.CHANGE else self._snapshot(leaf)

    @property
    def is_light(self) -> bool:
        """Whether all tables together are little to read."""
        return is_light(file.rows for table in self.tables.values() for file in table.new.files)

    def few(self, load: Load) -> Few | None:
        """Whether a plan that reads so much makes few rows."""
        return Few(self.engine, load) if self.is_small else None

    def _load(self, tree: Operator) -> Load:
        if not self.is_small:
            return "change"
        return load_of(self._counts(tree))

    def _counts(self, tree: Operator) -> Iterator[int | None]:
        """How many rows each leaf of a tree has, where that is known."""
        for node in walk(tree):
            if isinstance(node, Step) or (isinstance(node, Scan) and node.face is Face.CHANGE):
                held = self._source(node)
                assert isinstance(held, Held)
                if held.tree is None:
                    yield held.rows
                else:
                    yield from self._counts(held.tree)
            elif isinstance(node, Scan):
                yield from [file.rows for file in self._files(node)] if node.rows is None else [node.rows]

    def _hold(self, planned: Planned) -> Held:
        # In the text: to limit a frame, Spark looks at its whole plan a second time.
        return self._computed_once(lambda most: self.engine.sql(planned.text, most=most), planned.load)

    def _computed_once(self, rows: Callable[[int | None], DataFrame], load: Load) -> Held:
        """Compute rows once: on the driver when they are few, else where Spark keeps them."""
        if self.is_small:
            found = self.engine.collect_few(rows, MOST_HELD, load=load)
            if not isinstance(found, Left):
                return Held(None, found[0].num_rows, *found)
        with spark_errors():
            kept = rows(None).persist()
            self._cached.callback(kept.unpersist)
            return Held(kept, kept.count())

    def hold_step(self, tree: Operator, known: Known | None = None) -> Held:
        """The rows of a step. What only picks from changes at hand costs nothing to repeat, and no job to look at."""
        if isinstance(tree, Step) and all(own == given for own, given in tree.fields):
            return self.steps[tree.name]
        if self.is_small and all(map(_is_at_hand, walk(tree))):
            return self._picked(tree, known)
        return self._hold(self.planned(tree, known))

    def _picked(self, tree: Operator, known: Known | None) -> Held:
        """What only picks from rows at hand. Spark chooses among few of them without a task: then they are known. All
        others stand for themselves where they are used, and are looked at where there may be none.
        """
        final = with_moments(tree, self.moments)
        whole, lasting = self._inlined(final, None if final is not tree else known or Known(tree))
        if not any(isinstance(node, Filter) for node in walk(whole)):
            return Held(None, 1, tree=whole, known=lasting)
        chosen = self._run(whole, lasting)
        if sum(rows or 0 for rows in self._counts(whole)) <= MOST_CHOSEN:
            return self._hold(chosen)
        with spark_errors(), self.engine.tuned("light"):
            return Held(None, 0 if chosen.frame.isEmpty() else 1, tree=whole, known=lasting)

    def _inlined(self, tree: Operator, known: Known | None) -> tuple[Operator, Known | None]:
        """The tree with the trees of steps that were not computed in the place of these."""
        names = sorted({node.name for node in walk(tree) if isinstance(node, Step)})
        for name in names:
            part = self.steps[name]
            if part.tree is not None:
                tree = transformed(tree, partial(_in_place, name, part.tree))
                known = known.having(name, part.known) if known is not None and part.known is not None else None
        return tree, known

    def hold_change(self, table: str, columns: Sequence[str]) -> Held:
        """The net change of a table, each row with a weight of +1 or -1; computed once."""
        if table not in self.changes:
            source = self.tables[table]
            assert source.change is not None
            rows = source.local(columns) if self.is_small and source.local is not None else None
            if rows is None:
                change = _single(source.change(columns))
                self.changes[table] = self._computed_once(
                    lambda most: change if most is None else change.limit(most), "small"
                )
            else:
                fields = [StructField(f.name, f.dataType) for f in pick(source.new.schema, columns).fields]
                shape = StructType([*fields, StructField(WEIGHT, LongType())])
                self.changes[table] = Held(None, rows.num_rows, rows, shape)
        return self.changes[table]

    def close(self) -> None:
        """Let go of what Spark keeps."""
        self._cached.close()

    def _rows(self, leaf: Scan | Step, columns: Sequence[str]) -> Rows | None:
        """The rows of a leaf that the driver has, or reads because they are few."""
        if isinstance(leaf, Step):
            return self.steps[leaf.name].at_hand(columns)
        if leaf.face is Face.CHANGE:
            return self.changes[leaf.table].at_hand([*columns, WEIGHT])
        snapshot, files = self._snapshot(leaf), self._files(leaf)
        shape = pick(snapshot.schema, columns)
        found = rows_at_hand(snapshot.location, files, shape, located=leaf.located, most=MOST_AT_HAND)
        self.files_read += 0 if found is None else len(files)
        return found

    def _frame(self, leaf: Scan | Step, columns: Sequence[str]) -> DataFrame:
        """A leaf that the driver does not have."""
        held = self._held(leaf)
        if held is not None:
            assert held.frame is not None, "rows are on the driver or in a frame"
            return held.frame
        assert isinstance(leaf, Scan)
        snapshot, files = self._snapshot(leaf), self._files(leaf)
        self.files_read += len(files)
        with spark_errors():
            return scan(self.engine, snapshot, columns=columns, files=files, located=leaf.located)

    def _files(self, leaf: Scan) -> Sequence[DataFile]:
        """The files that have to be read."""
        files = self._snapshot(leaf).files
        if leaf.files is None:
            return files
        chosen = frozenset(leaf.files)
        return [file for file in files if file.path in chosen]

    def _snapshot(self, leaf: Scan) -> Snapshot:
        table = self.tables[leaf.table]
        snapshot = table.new if leaf.face is Face.NEW else table.old
        assert snapshot is not None, f"{leaf.table} has no {leaf.face} version"
        return snapshot

    def _has_no_null(self, leaf: Scan | Step, column: str) -> bool:
        """Whether a column is known to have no NULL: counted where the driver has it, else told by the files."""
        if isinstance(leaf, Step) or leaf.face is Face.CHANGE:
            held = self._held(leaf)
            return held is not None and held.table is not None and not held.table.column(column).null_count
        name = pick(self._snapshot(leaf).schema, [column])[0].name
        return all(file.nulls.get(name) == 0 for file in self._files(leaf))

    def _values(self, leaf: Scan | Step, columns: Sequence[str]) -> pa.Table | None:
        """Some columns of what the driver has; perhaps some more rows."""
        held = self._held(leaf)
        if held is None:
            return None
        if held.table is not None:
            return held.table.select(columns)
        below = None if held.tree is None else given_together(held.tree, columns)
        parts = [self._values(leaf, names) for leaf, names in below or ()]
        return together(parts, columns)

    def _held(self, leaf: Scan | Step) -> Held | None:
        """What a change or step was computed to be."""
        if isinstance(leaf, Step):
            return self.steps.get(leaf.name)
        return self.changes.get(leaf.table) if leaf.face is Face.CHANGE else None


def _in_place(name: str, part: Operator, node: Operator) -> Operator:
    """A step's tree where the step is used."""
    if not isinstance(node, Step) or node.name != name:
        return node
    return Project(part, tuple(Output(given, col(own)) for own, given in node.fields))


def _without_hint(node: Operator) -> Operator:
    """A join that Spark chooses the way of."""
    return replace(node, small=None) if isinstance(node, Join) and node.small is not None else node


def _is_at_hand(node: Operator) -> bool:
    match node:
        case Scan():
            return node.face is Face.CHANGE
        case Step() | Filter() | Project() | Values():
            return True
        case _:
            return False


def change_columns(trees: Iterable[Operator]) -> Mapping[str, Sequence[str]]:
    """For each table whose change trees read: the columns of it that they use."""
    found: dict[str, list[Scan | Step]] = {}
    for tree in trees:
        for node in walk(tree):
            if isinstance(node, Scan) and node.face is Face.CHANGE:
                found.setdefault(node.table, []).append(node)
    return {table: _columns(leaves) for table, leaves in found.items()}


def _columns(leaves: Sequence[Scan | Step]) -> list[str]:
    return list(dict.fromkeys(column for leaf in leaves for column, _ in leaf.fields))


def _leaf_key(leaf: Scan | Step) -> str:
    match leaf:
        case Step():
            return f"step {leaf.name}"
        case Scan():
            return f"{leaf.face} {leaf.located} {leaf.table} {leaf.files}"


def _single(rows: DataFrame) -> DataFrame:
    """Rows whose weights are all +1 or -1: a row of weight -3 is there three times."""
    columns = [F.col(quote(name)) for name in rows.columns if name != WEIGHT]
    sign = F.signum(F.col(WEIGHT)).cast("int")
    return rows.select(*columns, F.explode(F.array_repeat(sign, F.abs(F.col(WEIGHT)).cast("int"))).alias(WEIGHT))
