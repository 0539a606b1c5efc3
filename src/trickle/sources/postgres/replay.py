"""From a stream of pgoutput messages to the changes of each table.

The stream holds more than is asked for: it begins where the slot stands, and tables may be ahead of that. So every
transaction is judged by where its commit record begins and by its id: for each table it is already in the lake, or
beyond ``upto``, or belongs to the range (``positions.py``). What a transaction did is taken whole or not at all.

Rows come with the relation that holds them, a leaf partition for instance, and the stream names its columns as they
were at that moment. A relation that lacks a used column, or has it with another type, ends the account of its table:
``schema_changed`` says what was seen, and nothing is guessed. So does one huge transaction: it cannot be divided.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from trickle.errors import InternalError
from trickle.postgres.tables import SourceColumn, SourceTable
from trickle.postgres.types import mapped
from trickle.sources.postgres.books import Doubtful, KeyedBook, WholeBook, filled, picking, texts, values
from trickle.sources.postgres.capture import Bound, Changes
from trickle.sources.postgres.pgoutput import (
    UNCHANGED,
    Begin,
    Column,
    Delete,
    Insert,
    Message,
    Relation,
    Row,
    Truncate,
    Update,
    decode,
)
from trickle.sources.postgres.positions import WalPosition

PIECE_BYTES = 8 * 1024 * 1024
"""Bytes of messages after which rows are put away into Arrow, which takes less room than Python's objects."""

_ROW_MESSAGES = b"IUD"


class TableLog:
    """What happens to one table in the range that is asked for."""

    def __init__(self, table: SourceTable, after: WalPosition, bound: Bound | None = None) -> None:
        self.table = table
        self.after = after
        self._bound = bound or Bound()
        self._rows = self._bytes = 0
        self._truncated = False
        self._doubt: str | None = None
        self._book: WholeBook | KeyedBook | None = None

    def take(self, shape: Shape, message: Insert | Update | Delete, size: int) -> None:
        """A row came, changed or went, by a message of so many bytes."""
        if self._doubt is not None:
            return
        self._rows += 1
        self._bytes += size
        too_much = self._bound.exceeded(self._rows, self._bytes)
        if too_much is not None:
            self.doubt(too_much)
            return
        try:
            if isinstance(message, Insert):
                (self._book or self._open()).insert(shape.pick(message.new))
            elif isinstance(message, Update):
                self._update(shape, message)
            elif message.is_key:
                self._keyed(shape).delete(shape.pick(message.old))
            else:
                (self._book or self._open()).delete(shape.pick(message.old))
        except Doubtful as error:
            self.doubt(str(error))

    def _update(self, shape: Shape, message: Update) -> None:
        new = shape.pick(message.new)
        if message.old is None or message.is_key:
            self._keyed(shape).update(None if message.old is None else shape.pick(message.old), new)
            return
        old = shape.pick(message.old)
        if UNCHANGED in new:
            new = filled(new, old)
        book = self._book or self._open()
        book.delete(old)
        book.insert(new)

    def truncate(self, relations: Iterable[int], parts: Mapping[int, str]) -> None:
        """Some or all of the tables that hold rows were emptied."""
        if self._doubt is not None:
            return
        left = set(parts) - set(relations)
        if left:
            names = ", ".join(sorted(parts[oid] for oid in parts if oid not in left))
            self.doubt(f"of its parts, {names} was truncated and others were not")
        else:
            self._truncated, self._book = True, None
            self._rows = self._bytes = 0

    def doubt(self, why: str) -> None:
        """From here on nothing is certain; the first reason stays."""
        self._doubt = self._doubt or why
        self._book = None

    def put_away(self) -> None:
        if self._book is not None:
            self._book.put_away()

    def changes(self) -> Changes | None:
        """The account; None when nothing happened."""
        if self._doubt is None and self._book is not None:
            try:
                return self._book.changes(truncated=self._truncated)
            except Doubtful as error:
                self.doubt(str(error))
        if self._doubt is None and not self._truncated:
            return None
        nothing = values(self.table, texts(self.table, [], []))
        return Changes(nothing, truncated=self._truncated, schema_changed=self._doubt)

    def _open(self) -> WholeBook:
        self._book = WholeBook(self.table)
        return self._book

    def _keyed(self, shape: Shape) -> KeyedBook:
        """The book by key. What was written down in whole rows so far is told to it first."""
        key = shape.key
        if isinstance(self._book, KeyedBook):
            if not self._book.is_by(key):
                raise Doubtful("its replica identity is another key than before")
            return self._book
        book = KeyedBook(self.table, key, is_emptied=self._truncated)
        if self._book is not None:
            self._book.replay(book)
        self._book = book
        return book


@dataclass(frozen=True)
class Shape:
    """How rows of a relation become rows of its table."""

    relation: Relation
    log: TableLog
    pick: Callable[[Row], Row]
    """The used columns of a row; raises Doubtful when they are not what they were."""

    @cached_property
    def key(self) -> tuple[str, ...]:
        """The columns that identify an old row, in the whole table and not in one part of it alone."""
        table = self.log.table
        key = tuple(_name(column) for column in self.relation.columns if column.is_key)
        if not set(key) <= {column.name for column in table.columns}:
            raise Doubtful(f"its replica identity has the columns {', '.join(key)}, and not all of them are used")
        if self.relation.oid != table.oid and set(key) != set(table.key):
            raise Doubtful(f"the replica identity of its part {_text(self.relation.name)} is not the key of the table")
        return key


def collect(
    messages: Iterable[bytes],
    logs: Mapping[int, TableLog],
    upto: WalPosition,
) -> Iterator[tuple[SourceTable, Changes]]:
    """The changes of each table between its position and ``upto``. ``logs`` has one for the oid of every relation that
    holds rows: those of the parts of each table.
    """
    reader = _Reader(logs, upto)
    waiting = 0
    for data in messages:
        reader.take(data)
        waiting += len(data)
        if waiting > PIECE_BYTES:
            reader.put_away()
            waiting = 0
    for log in reader.logs:
        found = log.changes()
        if found is not None:
            yield log.table, found


class _Reader:
    def __init__(self, logs: Mapping[int, TableLog], upto: WalPosition) -> None:
        self._owners = logs
        self.logs = list({log.table.oid: log for log in logs.values()}.values())
        self._upto = upto
        self._first = min((log.after.lsn for log in self.logs), default=0)
        # From here on no table has anything of a transaction, so that none has to be asked.
        self._settled = max((max(log.after.lsn, log.after.until) for log in self.logs), default=0)
        self._shapes: dict[int, Shape | None] = {}
        self._transaction = Begin(0, 0, 0)
        self._skips = self._asks = True

    def put_away(self) -> None:
        for log in self.logs:
            log.put_away()

    def take(self, data: bytes) -> None:
        """One message."""
        if data[0] in _ROW_MESSAGES:
            if not self._skips:
                self._row(decode(data), len(data))
            return
        match decode(data):
            case Begin() as begin:
                self._transaction = begin
                self._skips = begin.final_lsn < self._first or not self._upto.holds(begin.final_lsn, begin.xid)
                self._asks = begin.final_lsn < self._settled
            case Relation() as relation:
                log = self._owners.get(relation.oid)
                self._shapes[relation.oid] = None if log is None else shape_of(relation, log)
            case Truncate() as truncate:
                if not self._skips:
                    self._truncate(truncate)
            case _:
                # Commits end what a Begin has judged; origins and names of types change nothing.
                pass

    def _row(self, message: Message, size: int) -> None:
        assert isinstance(message, Insert | Update | Delete)
        try:
            shape = self._shapes[message.relation]
        except KeyError:
            raise InternalError("the server sent a row of a relation that it had not described") from None
        if shape is not None and not (self._asks and self._is_held(shape.log)):
            shape.log.take(shape, message, size)

    def _truncate(self, message: Truncate) -> None:
        touched = {log.table.oid: log for oid in message.relations if (log := self._owners.get(oid)) is not None}
        for log in touched.values():
            if not (self._asks and self._is_held(log)):
                log.truncate(message.relations, self._parts(log))

    def _parts(self, log: TableLog) -> dict[int, str]:
        """The relations that hold rows of a table, with their names."""
        names = {part.oid: part.name for part in log.table.parts}
        return {oid: names.get(oid, str(oid)) for oid, one in self._owners.items() if one is log}

    def _is_held(self, log: TableLog) -> bool:
        return log.after.holds(self._transaction.final_lsn, self._transaction.xid)


def shape_of(relation: Relation, log: TableLog) -> Shape:
    """How rows of a relation, as it was just described, become rows of its table."""
    columns = log.table.columns
    places = {_name(column): place for place, column in enumerate(relation.columns)}
    for column in columns:
        if column.name not in places:
            return Shape(relation, log, _doubting(f"column {column.name!r} was dropped or renamed"))
        if not _fits(column, relation.columns[places[column.name]]):
            return Shape(relation, log, _doubting(f"the type of column {column.name!r} changed"))
    picked = [places[column.name] for column in columns]
    return Shape(relation, log, _as_it_is if picked == list(range(len(relation.columns))) else picking(picked))


def _doubting(why: str) -> Callable[[Row], Row]:
    def pick(_row: Row) -> Row:
        raise Doubtful(why)

    return pick


def _as_it_is(row: Row) -> Row:
    return row


def _fits(column: SourceColumn, seen: Column) -> bool:
    """Whether a column is what it was. A new limit of the same type, a longer varchar, may be the same in the lake."""
    if seen.type_oid != column.type_oid:
        return False
    if seen.typmod == column.typmod:
        return True
    if column.type_oid != column.type.oid:
        # Of a domain the modifier is not the one of the type below it.
        return False
    element = None if column.type.element is None else replace(column.type.element, typmod=seen.typmod)
    now = replace(column.type, typmod=seen.typmod, element=element)
    return bool(mapped(now).arrow == column.mapped.arrow)


def _name(column: Column) -> str:
    return _text(column.name)


def _text(name: bytes) -> str:
    return name.decode(errors="replace")
