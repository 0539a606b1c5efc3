"""The messages of PostgreSQL's output plugin ``pgoutput``, protocol version 1, from bytes.

Version 1 sends a transaction when it has committed, whole: Begin, then for each relation that is new to the reader
or has changed its shape a Relation (and a Type for each type that is not built in), then row changes, then Commit.
Transactions come one after the other in the order of their commits. So a reader needs no state but the relations
that it has been told of.

Values stay bytes, in the encoding of the session that reads them: what they mean is for the reader, who knows the
columns. ``UNCHANGED`` stands for a value that was stored out of line and that an UPDATE did not touch; the server
does not send those, and a reader must take them from the old row.

    message    after its letter
    Begin      end of the transaction's WAL, time, transaction id (32 bits)
    Commit     flags, position of the commit record, position after it, time
    Origin     position, name
    Relation   oid, schema, name, replica identity, columns (flags, name, type, type modifier)
    Type       oid, schema, name
    Insert     oid of the relation, N new row
    Update     oid, then K key of the old row or O old row or neither, then N new row
    Delete     oid, K key of the old row or O old row
    Truncate   number of relations, flags, their oids
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from struct import Struct
from struct import error as StructError
from typing import Final, NamedTuple, TypeAlias

from trickle.errors import InternalError


class Unchanged(Enum):
    """Has one member, so that ``is`` narrows the type of a value."""

    UNCHANGED = "unchanged"

    def __repr__(self) -> str:
        return self.name


UNCHANGED: Final = Unchanged.UNCHANGED

Value: TypeAlias = bytes | Unchanged | None
Row: TypeAlias = tuple[Value, ...]


class Begin(NamedTuple):
    """A transaction begins. ``final_lsn`` is where its commit record begins."""

    final_lsn: int
    committed_at: int
    xid: int


class Commit(NamedTuple):
    """The transaction ends. ``end_lsn`` is where the record after its commit begins."""

    lsn: int
    end_lsn: int
    committed_at: int


class Origin(NamedTuple):
    """The transaction was replicated from another server."""

    lsn: int
    name: bytes


class Column(NamedTuple):
    """A column of a relation; ``is_key`` when it belongs to the replica identity."""

    is_key: bool
    name: bytes
    type_oid: int
    typmod: int


class Relation(NamedTuple):
    """The shape that rows of this relation have from here on. An empty schema is pg_catalog."""

    oid: int
    schema: bytes
    name: bytes
    identity: str
    columns: tuple[Column, ...]


class Type(NamedTuple):
    """The name of a type that is not built in."""

    oid: int
    schema: bytes
    name: bytes


class Insert(NamedTuple):
    """A new row."""

    relation: int
    new: Row


class Update(NamedTuple):
    """A row changed. ``old`` is None when only columns outside the replica identity did; ``is_key`` when it holds
    the columns of the replica identity and NULL in all others.
    """

    relation: int
    old: Row | None
    is_key: bool
    new: Row


class Delete(NamedTuple):
    """A row went; ``is_key`` as in Update."""

    relation: int
    old: Row
    is_key: bool


class Truncate(NamedTuple):
    """All rows of these relations went."""

    relations: tuple[int, ...]
    cascade: bool
    restart_identity: bool


Message: TypeAlias = Begin | Commit | Origin | Relation | Type | Insert | Update | Delete | Truncate

_BEGIN = Struct(">QqI")
_COMMIT = Struct(">BQQq")
_LSN = Struct(">Q")
_OID = Struct(">I")
_COUNT = Struct(">H")
_COLUMN_TYPE = Struct(">Ii")
_TRUNCATE = Struct(">IB")

_NULL, _TEXT, _UNCHANGED = b"ntu"
_NEW, _KEY, _OLD = b"NKO"


def decode(data: bytes) -> Message:
    r"""One message from its bytes, all of them.

    >>> decode(b"I" + (16384).to_bytes(4) + b"N" + b"\x00\x02" + b"t\x00\x00\x00\x011" + b"n")
    Insert(relation=16384, new=(b'1', None))
    """
    try:
        message, end = _READERS[data[0]](data)
    except KeyError:
        raise _broken(f"a message of an unknown kind: {data[:1]!r}") from None
    except (IndexError, ValueError, StructError):
        raise _broken(f"a message of kind {data[:1]!r} is cut off") from None
    if end != len(data):
        raise _broken(f"a message of kind {data[:1]!r} has {len(data)} bytes, and its parts have {end}")
    return message


def _broken(detail: str) -> InternalError:
    return InternalError(
        "the server's change stream cannot be read",
        detail=detail,
        hint="Trickle reads pgoutput, protocol version 1, of PostgreSQL 14 to 18",
    )


def _begin(data: bytes) -> tuple[Begin, int]:
    return Begin(*_BEGIN.unpack_from(data, 1)), 1 + _BEGIN.size


def _commit(data: bytes) -> tuple[Commit, int]:
    _flags, lsn, end_lsn, committed_at = _COMMIT.unpack_from(data, 1)
    return Commit(lsn, end_lsn, committed_at), 1 + _COMMIT.size


def _origin(data: bytes) -> tuple[Origin, int]:
    (lsn,) = _LSN.unpack_from(data, 1)
    name, at = _text(data, 1 + _LSN.size)
    return Origin(lsn, name), at


def _relation(data: bytes) -> tuple[Relation, int]:
    (oid,) = _OID.unpack_from(data, 1)
    schema, at = _text(data, 5)
    name, at = _text(data, at)
    identity = chr(data[at])
    (count,) = _COUNT.unpack_from(data, at + 1)
    at += 3
    columns = []
    for _ in range(count):
        flags = data[at]
        column, at = _text(data, at + 1)
        columns.append(Column(bool(flags & 1), column, *_COLUMN_TYPE.unpack_from(data, at)))
        at += _COLUMN_TYPE.size
    return Relation(oid, schema, name, identity, tuple(columns)), at


def _type(data: bytes) -> tuple[Type, int]:
    (oid,) = _OID.unpack_from(data, 1)
    schema, at = _text(data, 5)
    name, at = _text(data, at)
    return Type(oid, schema, name), at


def _insert(data: bytes) -> tuple[Insert, int]:
    (relation,) = _OID.unpack_from(data, 1)
    new, at = _row(data, _expect(data, 5, _NEW))
    return Insert(relation, new), at


def _update(data: bytes) -> tuple[Update, int]:
    (relation,) = _OID.unpack_from(data, 1)
    mark, at, old = data[5], 5, None
    if mark in (_KEY, _OLD):
        old, at = _row(data, 6)
    new, at = _row(data, _expect(data, at, _NEW))
    return Update(relation, old, mark == _KEY, new), at


def _delete(data: bytes) -> tuple[Delete, int]:
    (relation,) = _OID.unpack_from(data, 1)
    mark = data[5]
    old, at = _row(data, _expect(data, 5, _KEY, _OLD))
    return Delete(relation, old, mark == _KEY), at


def _truncate(data: bytes) -> tuple[Truncate, int]:
    count, flags = _TRUNCATE.unpack_from(data, 1)
    at = 1 + _TRUNCATE.size
    relations = tuple(_OID.unpack_from(data, at + n * _OID.size)[0] for n in range(count))
    return Truncate(relations, bool(flags & 1), bool(flags & 2)), at + count * _OID.size


def _row(data: bytes, at: int) -> tuple[Row, int]:
    """A row and the place after it. Most of the time of a decoding is spent here."""
    count = (data[at] << 8) | data[at + 1]
    at += 2
    values: list[Value] = []
    add, length = values.append, _OID.unpack_from
    for _ in range(count):
        kind = data[at]
        if kind == _TEXT:
            start = at + 5
            at = start + length(data, at + 1)[0]
            add(data[start:at])
        elif kind == _NULL:
            add(None)
            at += 1
        elif kind == _UNCHANGED:
            add(UNCHANGED)
            at += 1
        else:
            raise _broken(f"a value of an unknown kind: {kind:#04x}")
    return tuple(values), at


def _text(data: bytes, at: int) -> tuple[bytes, int]:
    """A text that ends with a zero byte, and the place after that."""
    end = data.index(0, at)
    return data[at:end], end + 1


def _expect(data: bytes, at: int, *marks: int) -> int:
    """The place after a mark that has to be there."""
    if data[at] not in marks:
        raise _broken(f"a message of kind {data[:1]!r} has {data[at]:#04x} where a row begins")
    return at + 1


_READERS: dict[int, Callable[[bytes], tuple[Message, int]]] = {
    ord("B"): _begin,
    ord("C"): _commit,
    ord("O"): _origin,
    ord("R"): _relation,
    ord("Y"): _type,
    ord("I"): _insert,
    ord("U"): _update,
    ord("D"): _delete,
    ord("T"): _truncate,
}
