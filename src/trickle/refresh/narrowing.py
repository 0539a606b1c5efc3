"""Reading less of big tables: a join's keys are looked at before its tables are.

The rows of the tables on the other side that have these keys are looked up on the driver (``lake/lookup.py``), and
stand in the plan in place of the table: the next join finds its keys in them.

A table that is too large for that is read by Spark. The keys are put into a few ranges, and only those are read: whole
files are left out by their statistics, and what Parquet can skip inside of them by a condition that says the same. Rows
in no order of the key are everywhere in the table: then nothing is gained, and nothing is added to the plan. Where the
keys are not at hand, because the small side reads tables itself, it is computed and held first: that costs a job and
saves reading a table.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import DateType, DecimalType, StructField

from trickle.algebra.weights import FILE, ROW
from trickle.delta.optimize.join_order import is_small
from trickle.delta.optimize.prune import prune
from trickle.delta.reach import conjuncts, equalities, given_by, given_together, narrowed
from trickle.lake.datafile import DataFile
from trickle.lake.scan import pick
from trickle.lake.skipping import span
from trickle.lake.snapshot import Snapshot
from trickle.lake.tuples import all_match
from trickle.operators import Aggregate, Face, Filter, Join, JoinKind, Operator, Project, Scan, Step, UnionAll, walk
from trickle.refresh.held import Held
from trickle.refresh.ranges import Range, covered, distance, is_ranged, ranges_of, within
from trickle.sql.rewrites.conditions import chooses

BIG_ROWS = 200_000
"""Rows of a table from which on it is worth a condition."""
HOLD_ROWS = 2_000_000
"""Rows of a table from which on it is worth a job."""
MANY_ROWS = 20_000
"""Rows at hand from which on it is worth a job to be rid of most of them."""
_FOUND = "found"
"""The kind of step that has rows which were looked up."""
_MOST_COVERED = 0.5
PAGE_ROWS = 20_000
"""Rows of a page of a Parquet file as Spark writes it: of a range at least one page is read."""

Values = Callable[[Scan | Step, Sequence[str]], pa.Table | None]
"""Columns of a change or step that is on the driver."""
SnapshotOf = Callable[[Scan], Snapshot]
_End = tuple[str, str, bool]
"""A column of the small side, the column of the other side that it equals, and whether NULL equals NULL."""
LookUp = Callable[[Scan, StructField, pa.ChunkedArray, bool, pa.Table | None], Held | None]
"""The rows of a table that have some values in a column, or NULL where that counts; None when that is too much. The
last are values of several columns of which they need only have those that are there together."""


@dataclass
class Narrowing:
    """What is known while a tree is narrowed. ``counts`` tells how many rows the leaves of a tree have, ``hold``
    computes a relation, and ``steps`` has what was held.
    """

    snapshot_of: SnapshotOf
    values_of: Values
    look_up: LookUp
    counts: Callable[[Operator], Iterable[int | None]]
    hold: Callable[[Operator], Held]
    steps: dict[str, Held]
    done: list[str] | None = field(default_factory=list)
    """What was done, from the first join to the last. It tells the narrowed tree; None when other keys would too."""

    def tree(self, tree: Operator) -> Operator:
        """The tree with less to read; what is held on the way becomes a step."""
        inputs = [self.tree(child) for child in tree.inputs]
        if any(new is not old for new, old in zip(inputs, tree.inputs, strict=True)):
            tree = tree.with_inputs(inputs)
        return self._join(tree) if isinstance(tree, Join) else tree

    def _join(self, join: Join) -> Operator:
        """A join of which each side that may restrict the other does."""
        pairs = list(equalities(join))
        if pairs and is_small(join.left):
            ends = [(one.left, one.right, one.null_safe) for one in pairs]
            left, right = self._restricted(join.left, join.right, ends)
            join = replace(join, left=left, right=right)
        if pairs and is_small(join.right) and join.kind in (JoinKind.INNER, JoinKind.SEMI):
            ends = [(one.right, one.left, one.null_safe) for one in pairs]
            right, left = self._restricted(join.right, join.left, ends)
            join = replace(join, left=left, right=right)
            if join.kind is JoinKind.SEMI:
                meet = self._all_meet(join, ends)
                self._note("all meet" if meet else "asked")
                return join.left if meet else join
        return join

    def _all_meet(self, join: Join, ends: list[_End]) -> bool:
        """Whether all rows of the left side were found by what is on the right: then a semi join leaves them all."""
        if join.condition is None or len(conjuncts(join.condition)) > len(ends) or not self._is_exact(join.right):
            return False
        # Above anything else, a leaf need not have all values: an outer join adds NULL.
        is_plain = all(isinstance(node, Step | Project | Filter | UnionAll) for node in walk(join.left))
        found = given_together(join.left, [theirs for _, theirs, _ in ends]) if is_plain else None
        if found is None or not all(isinstance(leaf, Step) and leaf.name.startswith(_FOUND) for leaf, _ in found):
            return False
        wanted = self._values(join.right, [mine for mine, *_ in ends])
        return wanted is not None and all(
            isinstance(leaf, Step) and _have_all(self.steps[leaf.name], wanted.rename_columns(columns))
            for leaf, columns in found
        )

    def _is_exact(self, giver: Operator) -> bool:
        """Whether the values at hand of a relation are its values, and not perhaps some more."""
        match giver:
            case Step():
                held = self.steps.get(giver.name)
                return held is not None and (held.tree is None or self._is_exact(held.tree))
            case Scan():
                return giver.face is Face.CHANGE
            case Project():
                return self._is_exact(giver.input)
            case Aggregate():
                return bool(giver.keys) and self._is_exact(giver.input)
            case UnionAll():
                return all(map(self._is_exact, giver.parts))
            case _:
                return False

    def _restricted(self, giver: Operator, taker: Operator, ends: list[_End]) -> tuple[Operator, Operator]:
        """The small side of a join, held where that is worth it, and the other one with what it leaves to be read."""
        if self._is_worth_holding(giver, taker, ends):
            giver = self._held(giver)
        # A table is looked up by one column: the first that reaches it. Of what is found, the others choose.
        tightest = sorted(ends, key=lambda end: self._expected(giver, taker, end)) if len(ends) > 1 else ends
        others = self._reached_together(giver, taker, ends) if len(ends) > 1 else {}
        before = len(self.steps)
        for mine, theirs, null_safe in tightest:
            taker = self._narrowed(giver, mine, taker, theirs, null_safe, others)
        # What is at hand of the taker now may restrict the rest of it.
        again = len(self.steps) > before and self._has_big(taker)
        return giver, self.tree(taker) if again else taker

    def _has_big(self, tree: Operator) -> bool:
        """Whether a big table is left to be read."""
        tables = [node for node in walk(tree) if isinstance(node, Scan) and node.face is not Face.CHANGE]
        return any(_rows(self.snapshot_of(table)) >= BIG_ROWS for table in tables)

    def _reached_together(self, giver: Operator, taker: Operator, ends: list[_End]) -> dict[Scan, pa.Table]:
        """For tables that several columns of the giver reach: the values that their columns have together."""
        reached: dict[Scan, dict[str, tuple[str, bool]]] = {}
        for mine, theirs, null_safe in ends:

            def note(scan: Scan, column: str, end: tuple[str, bool] = (mine, null_safe)) -> Operator:
                reached.setdefault(scan, {}).setdefault(column, end)
                return scan

            narrowed(taker, theirs, note)
        found: dict[Scan, pa.Table] = {}
        for scan, columns in reached.items():
            # A table that is read twice may be reached by one column here and by the other there.
            if len(columns) == 1 or sum(node == scan for node in walk(taker)) > 1:
                continue
            values = self._values(giver, [mine for mine, _ in columns.values()])
            if values is not None and not _has_null(values, [null_safe for _, null_safe in columns.values()]):
                found[scan] = values.rename_columns(list(columns))
        return found

    def _expected(self, giver: Operator, taker: Operator, end: _End) -> float:
        """About how many rows have the giver's keys, when each value between the bounds of a column is as frequent."""
        mine, theirs, _ = end
        keys = self._keys(giver, mine)
        if keys is None:
            return math.inf
        found: list[float] = []

        def note(scan: Scan, column: str) -> Operator:
            snapshot = self.snapshot_of(scan)
            key = pick(snapshot.schema, [column])[0]
            bounds = span(snapshot.files, key) if is_ranged(key.dataType) and _same(keys.type, key) else None
            share = 1.0 if bounds is None else pc.count_distinct(keys).as_py() / (1.0 + distance(*bounds))
            found.append(_rows(snapshot) * min(1.0, share))
            return scan

        narrowed(taker, theirs, note)
        return sum(found) if found else math.inf

    def _keys(self, giver: Operator, mine: str) -> pa.ChunkedArray | None:
        values = self._values(giver, [mine])
        return None if values is None else values.column(0)

    def _values(self, giver: Operator, columns: Sequence[str]) -> pa.Table | None:
        """The values that columns have together, row by row; perhaps some more."""
        parts = [self.values_of(leaf, names) for leaf, names in given_together(giver, columns) or ()]
        return together(parts, columns)

    def _is_worth_holding(self, giver: Operator, taker: Operator, ends: list[_End]) -> bool:
        """Whether the keys are not at hand, or many of them need not be, and a big table would be narrowed by them."""
        at_hand = any(given_by(giver, mine) is not None for mine, *_ in ends)
        if at_hand and not self._leaves_few(giver):
            return False
        found: list[Scan] = []

        def note(scan: Scan, column: str) -> Operator:
            if self._field(scan, column) is not None and _rows(self.snapshot_of(scan)) >= HOLD_ROWS:
                found.append(scan)
            return scan

        for _, theirs, _ in ends:
            narrowed(taker, theirs, note)
        return bool(found)

    def _leaves_few(self, giver: Operator) -> bool:
        """Whether many rows are at hand, and what they are joined with leaves few of them."""
        joins = [node for node in walk(giver) if isinstance(node, Join)]
        if not any(join.kind in (JoinKind.INNER, JoinKind.SEMI) and _is_chosen(join) for join in joins):
            return False
        at_hand = [node for node in walk(giver) if isinstance(node, Step | Scan) and _is_at_hand(node)]
        return max((rows or 0 for leaf in at_hand for rows in self.counts(leaf)), default=0) >= MANY_ROWS

    def _held(self, giver: Operator) -> Step:
        return self._step("held", self.hold(giver), tuple((column, column) for column in giver.columns))

    def _step(self, kind: str, held: Held, fields: tuple[tuple[str, str], ...]) -> Step:
        """Rows at hand as a step. Its name is the same whenever the same is done to a tree."""
        name = f"{kind}_{1 + sum(one.startswith(kind) for one in self.steps)}"
        self.steps[name] = held
        self._note(name)
        return Step(name, fields)

    def _note(self, what: str) -> None:
        if self.done is not None:
            self.done.append(what)

    def _narrowed(
        self,
        giver: Operator,
        mine: str,
        taker: Operator,
        theirs: str,
        null_safe: bool,
        others: Mapping[Scan, pa.Table],
    ) -> Operator:
        """The taker, of which only those rows are read whose column can equal the giver's."""
        keys = self._keys(giver, mine)
        # Which column comes first depends on the rows.
        self._note(f"by {theirs}")
        if keys is None:
            self._note("unknown")
            return taker
        ranges: list[Range] | None = None

        def narrow(scan: Scan, column: str) -> Operator:
            nonlocal ranges
            nulls = null_safe and bool(keys.null_count)
            found = self.look_up(scan, pick(self.snapshot_of(scan).schema, [column])[0], keys, nulls, others.get(scan))
            if found is not None:
                places = ((FILE, FILE), (ROW, ROW)) if scan.located else ()
                return self._step(_FOUND, found, (*scan.fields, *places))
            key = self._field(scan, column)
            if key is None or not _same(keys.type, key):
                self._note("whole")
                return scan
            if ranges is None:
                ranges = ranges_of(keys)
            read = _read(scan, key, ranges, self.snapshot_of(scan), nulls=nulls)
            if read is scan:
                self._note("whole")
            else:
                self.done = None
            return read

        return narrowed(taker, theirs, narrow)

    def _field(self, scan: Scan, column: str) -> StructField | None:
        """The column of a table that is worth narrowing by it."""
        snapshot = self.snapshot_of(scan)
        field = pick(snapshot.schema, [column])[0]
        return field if is_ranged(field.dataType) and _rows(snapshot) >= BIG_ROWS else None


def together(parts: Sequence[pa.Table | None], names: Sequence[str]) -> pa.Table | None:
    """The rows of all parts under other names; None where one is not known, or is of other types."""
    known = [part for part in parts if part is not None]
    if not known or len(known) < len(parts) or any(part.schema.types != known[0].schema.types for part in known):
        return None
    # Whether a column may have NULL is told of some parts only.
    shape = pa.schema(list(zip(names, known[0].schema.types, strict=True)))
    return pa.concat_tables([pa.table(part.columns, schema=shape) for part in known])


def _has_null(values: pa.Table, counts: Sequence[bool]) -> bool:
    """Whether there is NULL in a column where it counts."""
    return any(column.null_count for column, count in zip(values.columns, counts, strict=True) if count)


def _is_at_hand(leaf: Scan | Step) -> bool:
    return isinstance(leaf, Step) or leaf.face is Face.CHANGE


def _is_chosen(join: Join) -> bool:
    """Whether conditions on one side of a join leave few of its rows."""
    filters = [node for side in join.inputs for node in walk(side) if isinstance(node, Filter)]
    return any(chooses(part) for node in filters for part in conjuncts(node.condition))


def _have_all(found: Held, wanted: pa.Table) -> bool:
    """Whether every row that was looked up is one of those wanted."""
    return found.table is not None and found.schema is not None and all_match(found.table, found.schema, wanted)


def _rows(snapshot: Snapshot) -> int:
    return sum(file.rows or 0 for file in snapshot.files)


def _same(kind: pa.DataType, field: StructField) -> bool:
    """Whether keys and column are compared without a cast that could change what is equal."""
    match field.dataType:
        case DateType():
            return bool(pa.types.is_date(kind))
        case DecimalType():
            return bool(pa.types.is_integer(kind) or pa.types.is_decimal(kind))
        case _:
            return bool(pa.types.is_integer(kind))


def _read(scan: Scan, field: StructField, ranges: list[Range], snapshot: Snapshot, *, nulls: bool) -> Operator:
    """A table, of which only some ranges of a column are read."""
    if not ranges:
        return scan
    files = snapshot.files if scan.files is None else [f for f in snapshot.files if f.path in set(scan.files)]
    whole = span(files, field)
    if whole is None or covered(ranges, whole) > _MOST_COVERED:
        return scan
    read = files_with(files, field, ranges, nulls=nulls)
    chosen, rows = tuple(file.path for file in read), sum(_rows_within(file, field, ranges) for file in read)
    # A condition that skips little costs more than it saves: with other values each time, it is compiled each time.
    if rows > _MOST_COVERED * sum(file.rows or 0 for file in files):
        return scan
    name = next(given for own, given in scan.fields if own == field.name or own.lower() == field.name.lower())
    least = rows if scan.rows is None else min(rows, scan.rows)
    return Filter(replace(scan, files=chosen, rows=least), within(name, ranges, field.dataType, nulls=nulls))


def files_with(files: Sequence[DataFile], key: StructField, ranges: Sequence[Range], *, nulls: bool) -> list[DataFile]:
    """The files that may have values of the ranges in a column, or NULL where that counts."""
    highs = [high for _, high in ranges]

    def may_have(file: DataFile) -> bool:
        if nulls and file.nulls.get(key.name) != 0:
            return True
        within = span([file], key)
        if within is None:
            return file.rows is None or file.rows != file.nulls.get(key.name, 0)
        # Ranges are in order and apart: the first one that ends after the file begins decides.
        place = bisect_left(highs, within[0])
        return place < len(ranges) and bool(ranges[place][0] <= within[1])

    return [file for file in files if may_have(file)]


def _rows_within(file: DataFile, field: StructField, ranges: Sequence[Range]) -> int:
    """About how many rows of a file are read where only ranges of a column are wanted."""
    rows, whole = file.rows or 0, span([file], field)
    if whole is None:
        return rows
    reached = sum(bool(low <= whole[1] and high >= whole[0]) for low, high in ranges)
    return min(rows, int(rows * covered(ranges, whole)) + reached * PAGE_ROWS)


def empty_steps(tree: Operator, steps: Mapping[str, Held]) -> list[str]:
    """The steps of a tree that turned out to be empty."""
    used = {node.name for node in walk(tree) if isinstance(node, Step)}
    return sorted(name for name in used if name in steps and not steps[name].rows)


def without_empty(tree: Operator, empty: Collection[str]) -> Operator:
    """The tree without what depends on empty steps, or on tables of which nothing is wanted."""
    unread = any(isinstance(node, Scan) and node.files == () for node in walk(tree))
    return prune(tree, (), empty) if empty or unread else tree
