"""What happened to the rows of one table, written down change by change.

Two ways, by what the source says of old rows. A ``WholeBook`` is told old rows whole: each change is a row of weight
-1 or +1 or both, and the net is taken at the end. A ``KeyedBook`` is told keys. It follows each key
through the changes and comes out with the net: which rows of the replica go, and which rows come.

Rows are texts here, in the order of the table's columns, and become values at the end. A value that the lake cannot
hold and that was there only for a moment then does no harm.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from operator import itemgetter
from typing import Any, Protocol, TypeAlias, cast

import pyarrow as pa

from trickle.algebra.weights import WEIGHT
from trickle.errors import InvalidData
from trickle.postgres.rows import read_columns
from trickle.postgres.tables import SourceColumn, SourceTable
from trickle.sources.postgres.capture import Changes
from trickle.sources.postgres.netting import net_texts
from trickle.sources.postgres.pgoutput import UNCHANGED, Row

KEPT = pa.schema([("new", pa.int64()), ("old", pa.int64()), ("column", pa.string())])


class Doubtful(Exception):
    """The changes contradict each other: what the book was told of keys cannot be true."""


class Book(Protocol):
    """What happened to a table's rows."""

    def insert(self, new: Row) -> None: ...

    def delete(self, old: Row) -> None: ...

    def put_away(self) -> None:
        """Take less room."""

    def changes(self, *, truncated: bool) -> Changes: ...


class WholeBook:
    """Changes with whole old rows, in their order."""

    def __init__(self, table: SourceTable) -> None:
        self._table = table
        self._pieces: list[pa.Table] = []
        self._rows: list[Row] = []
        self._weights: list[int] = []

    def insert(self, new: Row) -> None:
        self._rows.append(new)
        self._weights.append(1)

    def delete(self, old: Row) -> None:
        self._rows.append(old)
        self._weights.append(-1)

    def put_away(self) -> None:
        """Take less room."""
        self._pieces.append(texts(self._table, self._rows, self._weights))
        self._rows, self._weights = [], []

    def changes(self, *, truncated: bool) -> Changes:
        """The net of all rows, as values."""
        self.put_away()
        return Changes(values(self._table, net_texts(pa.concat_tables(self._pieces), self._table.key)), truncated)

    def replay(self, book: Book) -> None:
        """Tell it all to another book."""
        self.put_away()
        for row in (row for piece in self._pieces for row in _rows(piece)):
            *old_or_new, weight = row
            (book.insert if weight > 0 else book.delete)(tuple(old_or_new))


# A row that is there now, and the key that it had in the replica if it was there before. A plain tuple: there are many,
# and the collector of garbage passes over tuples of texts.
_Live: TypeAlias = tuple[Row, Row | None]


class KeyedBook:
    """Changes whose old rows are known by their key alone."""

    def __init__(self, table: SourceTable, key: Sequence[str], *, is_emptied: bool) -> None:
        self._table = table
        names = [column.name for column in table.columns]
        self._key = tuple(key)
        self._places = [names.index(name) for name in key]
        self._live: dict[Row, _Live] = {}
        self._gone: dict[Row, int] = {}
        self._is_emptied = is_emptied
        self._key_of = picking(self._places)
        self._columns = frozenset(key)

    def is_by(self, key: Sequence[str]) -> bool:
        """Whether rows are known by these columns, in whatever order a part has them."""
        return key == self._key or self._columns == set(key)

    def insert(self, new: Row) -> None:
        self._put((new, None))

    def delete(self, old: Row) -> None:
        self._take(self._key_of(old))

    def update(self, old: Row | None, new: Row) -> None:
        """``old`` is there when the key changed. What was stored out of line and did not change is taken from it, from
        the row as this book knows it, or from the replica.
        """
        if old is not None and UNCHANGED in new:
            new = tuple(old[n] if n in self._places and one is UNCHANGED else one for n, one in enumerate(new))
        row, origin = self._take(self._key_of(new if old is None else old))
        if row and UNCHANGED in new:
            new = filled(new, row)
        self._put((new, origin))

    def put_away(self) -> None:
        """Keys are looked up until the end: there is nothing that could go."""

    def _take(self, key: Row) -> _Live:
        known = self._live.pop(key, None)
        if known is not None:
            return known
        if key in self._gone or self._is_emptied:
            raise Doubtful(f"a row with the key {_shown(key)} is gone and changes again")
        self._gone[key] = len(self._gone)
        return (), key

    def _put(self, live: _Live) -> None:
        key = self._key_of(live[0])
        if key in self._live:
            raise Doubtful(f"two rows have the key {_shown(key)}")
        self._live[key] = live

    def changes(self, *, truncated: bool) -> Changes:
        """The net: keys that go, then rows that come."""
        width = range(len(self._table.columns))
        places = [self._places.index(place) if place in self._places else None for place in width]
        rows: list[Row] = [tuple(None if n is None else key[n] for n in places) for key in self._gone]
        kept: list[tuple[int, int, str]] = []
        for row, origin in self._live.values():
            if UNCHANGED in row:
                kept.extend((len(rows), *one) for one in self._kept(row, origin))
                rows.append(tuple(None if one is UNCHANGED else one for one in row))
            else:
                rows.append(row)
        weights = [-1] * len(self._gone) + [1] * len(self._live)
        return Changes(
            values(self._table, texts(self._table, rows, weights)),
            truncated,
            by_key=True,
            key=self._key,
            kept=pa.Table.from_pylist([dict(zip(KEPT.names, one, strict=True)) for one in kept], KEPT)
            if kept
            else None,
        )

    def _kept(self, row: Row, origin: Row | None) -> Iterator[tuple[int, str]]:
        """For each value that was not sent: the row of weight -1 that leads to it, and its column."""
        if origin is None:
            raise Doubtful(f"a new row with the key {_shown(self._key_of(row))} was not sent whole")
        for column, value in zip(self._table.columns, row, strict=True):
            if value is UNCHANGED:
                yield self._gone[origin], column.name


def picking(places: Sequence[int]) -> Callable[[Row], Row]:
    """What takes these places out of a row."""
    if len(places) == 1:
        (only,) = places
        return lambda row: (row[only],)
    return cast("Callable[[Row], Row]", itemgetter(*places))


def filled(new: Row, old: Row) -> Row:
    """A new row with what did not change taken from the old one."""
    return tuple(before if now is UNCHANGED else now for now, before in zip(new, old, strict=True))


def texts(table: SourceTable, rows: Sequence[Row], weights: Sequence[int]) -> pa.Table:
    """Rows as texts in Arrow, with their weights."""
    columns = zip(*rows, strict=True) if rows else [()] * len(table.columns)
    arrays = [_text_array(found, column, table) for found, column in zip(columns, table.columns, strict=True)]
    names = [column.name for column in table.columns]
    return pa.Table.from_arrays([*arrays, pa.array(weights, pa.int64())], [*names, WEIGHT])


def _text_array(found: Sequence[Any], column: SourceColumn, table: SourceTable) -> pa.Array:
    try:
        return pa.array(found, pa.string())
    except (pa.ArrowInvalid, UnicodeDecodeError) as error:
        raise InvalidData(
            f"column {column.name!r} of {table.shown} holds a text that is not UTF-8",
            detail=str(error).splitlines()[0],
            hint="change the value at the source, or leave the column out when the table is attached",
        ) from None


def values(table: SourceTable, found: pa.Table) -> pa.Table:
    """Texts as values of the lake, weights as they are."""
    return read_columns(found, table.columns, table.shown).append_column(WEIGHT, found.column(WEIGHT))


def _rows(piece: pa.Table) -> Iterator[tuple[Any, ...]]:
    *columns, weights = piece.columns
    return zip(*(column.cast(pa.binary()).to_pylist() for column in columns), weights.to_pylist(), strict=True)


def _shown(key: Row) -> str:
    return ", ".join(one.decode(errors="replace") if isinstance(one, bytes) else str(one) for one in key)
