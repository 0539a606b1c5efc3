"""Types of PostgreSQL in the lake, and how their texts are read.

Every value travels as PostgreSQL's own text: out of COPY, out of a capture buffer and out of pgoutput alike, under the
settings of ``connect.SPELLING``. So there is one way to read a value, and it is here.

| PostgreSQL | lake | note |
|---|---|---|
| boolean | boolean | |
| smallint, integer, bigint | smallint, int, bigint | |
| oid | bigint | |
| real, double precision | float, double | NaN and infinities as they are |
| numeric(p, s) | decimal(p, s) | up to 38 digits; a scale below 0 or above p gives the decimal that holds it |
| numeric | decimal(38, 18) | a value that does not fit, and NaN, is an error: nothing is rounded |
| numeric(p, s) of more than 38 digits | decimal(38, s) | the same |
| text, varchar, char, name, "char" | string | char keeps its padding |
| bytea | binary | |
| date | date | years 1 to 9999; infinity is an error |
| timestamp | timestamp_ntz | the same |
| timestamptz | timestamp | the same |
| arrays | array of the element's type | one dimension; its lower bound is not kept |
| domains | as the type that they are over | |
| time, interval, uuid, json, jsonb, inet, ranges, enums, xml, money, ... | string | PostgreSQL's own text |
| types of extensions and of users | string | the same |
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import pyarrow as pa
import pyarrow.compute as pc

from trickle.errors import InvalidData
from trickle.postgres.arrays import read_array

DIGITS = 38
"""The most digits of a decimal in Spark and Delta."""
_OPEN_SCALE = 18

_SHOWN = 60


@dataclass(frozen=True)
class PgType:
    """A type as ``pg_type`` has it, domains looked through. ``element`` is there for an array."""

    oid: int
    name: str
    typmod: int = -1
    builtin: bool = True
    """Whether it comes with PostgreSQL: others may be changed or dropped by their owner."""
    element: PgType | None = None
    delimiter: str = ","


@dataclass(frozen=True)
class Mapped:
    """A type in the lake: as Spark writes it and as Arrow holds it."""

    spark: str
    arrow: pa.DataType
    read: Callable[[pa.Array], pa.Array]
    """From PostgreSQL's texts to values. Raises ArrowInvalid or ValueError for one that does not fit."""


def mapped(kind: PgType) -> Mapped:
    """How a type is kept in the lake.

    >>> mapped(PgType(1700, "numeric", typmod=(12 << 16 | 2) + 4)).spark
    'decimal(12,2)'
    >>> mapped(PgType(1007, "_int4", element=PgType(23, "int4"))).spark
    'array<int>'
    """
    return _mapped(kind)


@lru_cache(maxsize=4096)
def _mapped(kind: PgType) -> Mapped:
    if kind.element is not None:
        return _array(mapped(kind.element), kind.delimiter)
    if not kind.builtin:
        return _STRING
    if kind.name == "numeric":
        return _numeric(kind.typmod)
    return _PLAIN.get(kind.name, _STRING)


def read_texts(texts: pa.Array, kind: PgType, column: str, table: str) -> pa.Array:
    """PostgreSQL's texts as values of the lake; a value that the lake cannot hold is named with its column."""
    how = mapped(kind)
    try:
        return how.read(texts)
    except (pa.ArrowInvalid, ValueError) as error:
        raise InvalidData(
            f"column {column!r} of {table} holds a value that the lake cannot hold",
            detail=f"{_culprit(texts, how)} does not fit {how.spark}: {str(error).splitlines()[0]}",
            hint="change the value at the source, or leave the column out when the table is attached",
        ) from None


def _culprit(texts: pa.Array, how: Mapped) -> str:
    """The first text that cannot be read, found by halves."""
    while len(texts) > 1:
        half = len(texts) // 2
        try:
            how.read(texts.slice(0, half))
        except (pa.ArrowInvalid, ValueError):
            texts = texts.slice(0, half)
        else:
            texts = texts.slice(half)
    found = str(texts[0].as_py())
    return repr(found if len(found) <= _SHOWN else found[:_SHOWN] + "...")


def _cast_to(arrow: pa.DataType) -> Callable[[pa.Array], pa.Array]:
    return lambda texts: pc.cast(texts, arrow)


def _as_it_is(texts: pa.Array) -> pa.Array:
    return texts


def _booleans(texts: pa.Array) -> pa.Array:
    return pc.equal(texts, "t")


def _bytes(texts: pa.Array) -> pa.Array:
    found = [None if text is None else bytes.fromhex(text[2:]) for text in texts.to_pylist()]
    return pa.array(found, pa.binary())


def _decimals(arrow: pa.DataType) -> Callable[[pa.Array], pa.Array]:
    """Arrow's cast to 128 bits overflows without a word where digits and scale are more than 38: those go over 256."""
    room = arrow.precision - arrow.scale
    wide = pa.decimal256(76, arrow.scale)

    def read(texts: pa.Array) -> pa.Array:
        longest = pc.max(pc.binary_length(texts)).as_py() or 0
        if longest <= room:
            return pc.cast(texts, arrow)
        whole = pc.max(pc.binary_length(pc.replace_substring_regex(texts, r"^-?0*|\..*$", ""))).as_py()
        if whole > room:
            raise ValueError(f"{whole} digits before the point, and there is room for {room}")
        return pc.cast(pc.cast(texts, wide), arrow)

    return read


_STRING = Mapped("string", pa.string(), _as_it_is)


def _plain(spark: str, arrow: pa.DataType) -> Mapped:
    return Mapped(spark, arrow, _cast_to(arrow))


_PLAIN: dict[str, Mapped] = {
    "bool": Mapped("boolean", pa.bool_(), _booleans),
    "int2": _plain("smallint", pa.int16()),
    "int4": _plain("int", pa.int32()),
    "int8": _plain("bigint", pa.int64()),
    "oid": _plain("bigint", pa.int64()),
    "float4": _plain("float", pa.float32()),
    "float8": _plain("double", pa.float64()),
    "bytea": Mapped("binary", pa.binary(), _bytes),
    "date": _plain("date", pa.date32()),
    "timestamp": _plain("timestamp_ntz", pa.timestamp("us")),
    "timestamptz": _plain("timestamp", pa.timestamp("us", "UTC")),
}


def _numeric(typmod: int) -> Mapped:
    """``numeric`` keeps precision and scale in its typmod: 16 bits, then a signed number of 11."""
    if typmod < 0:
        return _decimal(DIGITS, _OPEN_SCALE)
    packed = typmod - 4
    precision, scale = packed >> 16 & 0xFFFF, (packed & 0x7FF ^ 1024) - 1024
    if scale < 0:
        precision, scale = precision - scale, 0
    precision = max(precision, scale)
    return _decimal(precision, scale) if precision <= DIGITS else _decimal(DIGITS, min(scale, DIGITS))


def _decimal(precision: int, scale: int) -> Mapped:
    arrow = pa.decimal128(precision, scale)
    return Mapped(f"decimal({precision},{scale})", arrow, _decimals(arrow))


def _array(inner: Mapped, delimiter: str) -> Mapped:
    arrow = pa.list_(pa.field("element", inner.arrow))

    def read(texts: pa.Array) -> pa.Array:
        lists = [None if text is None else read_array(text, delimiter) for text in texts.to_pylist()]
        flat = pa.array([item for items in lists if items is not None for item in items], pa.string())
        offsets: list[int | None] = []
        place = 0
        for items in lists:
            offsets.append(None if items is None else place)
            place += len(items or ())
        return pa.ListArray.from_arrays(pa.array([*offsets, place], pa.int32()), inner.read(flat), type=arrow)

    return Mapped(f"array<{inner.spark}>", arrow, read)
