"""Deletion vectors: the rows of a data file that are no longer in the table.

A vector lies inline in the log or in a file of its own, as a 64-bit roaring bitmap: buckets of 2^32 rows, each a
standard 32-bit roaring bitmap of containers of 2^16 rows (sorted array, bit set, or runs).
"""

from __future__ import annotations

import base64
import struct
import sys
import zlib
from array import array
from collections.abc import Iterable
from functools import lru_cache
from uuid import UUID

from trickle.errors import CorruptTable, HistoryLost
from trickle.lake.location import Location
from trickle.lake.paths import is_absolute

_Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_RFC1924 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
_TO_RFC1924 = str.maketrans(_Z85, _RFC1924)

_MAGIC = 1681511377
_COOKIE_WITH_RUNS = 12347
_COOKIE_WITHOUT_RUNS = 12346
_OFFSETS_FROM = 4
_LARGEST_ARRAY = 4096
_BITS_SIZE = 8192
_UUID_LENGTH = 20


def hidden_rows(location: Location, vector_ids: Iterable[str]) -> dict[str, array[int]]:
    """The row positions that each deletion vector hides, by the vector's id. A file is fetched once for all in it."""
    fetch = lru_cache(maxsize=1)(lambda path: _fetch(location, path))
    found: dict[str, array[int]] = {}
    for vector_id in sorted(set(vector_ids)):
        path, offset = _place(vector_id)
        data = _decode85(vector_id[1:]) if path is None else _slice(fetch(path), offset, path)
        try:
            found[vector_id] = decode(data)
        except (struct.error, ValueError, IndexError) as error:
            raise CorruptTable(
                "a deletion vector is not readable", detail=f"{vector_id[:60]} in {location.uri}: {error}"
            ) from error
    return found


def decode(data: bytes) -> array[int]:
    """Row positions from the protocol's bitmap format, ascending."""
    magic, buckets = struct.unpack_from("<iq", data)
    if magic != _MAGIC:
        raise ValueError(f"unknown bitmap format {magic}")
    rows: array[int] = array("q")
    position = 12
    for _ in range(buckets):
        (high,) = struct.unpack_from("<I", data, position)
        position = _read_bucket(data, position + 4, high << 32, rows)
    return rows


def _read_bucket(data: bytes, position: int, base: int, rows: array[int]) -> int:
    """Append the rows of one 32-bit roaring bitmap; the position behind it."""
    (cookie,) = struct.unpack_from("<I", data, position)
    position += 4
    with_runs = cookie & 0xFFFF == _COOKIE_WITH_RUNS
    run_flags = b""
    if with_runs:
        containers = (cookie >> 16) + 1
        run_flags = data[position : position + (containers + 7) // 8]
        position += len(run_flags)
    elif cookie == _COOKIE_WITHOUT_RUNS:
        (containers,) = struct.unpack_from("<I", data, position)
        position += 4
    else:
        raise ValueError(f"unknown bitmap cookie {cookie}")
    descriptions = struct.unpack_from(f"<{2 * containers}H", data, position)
    position += 4 * containers
    if not with_runs or containers >= _OFFSETS_FROM:
        position += 4 * containers
    for index in range(containers):
        start = base + (descriptions[2 * index] << 16)
        count = descriptions[2 * index + 1] + 1
        if with_runs and run_flags[index // 8] >> index % 8 & 1:
            position = _read_runs(data, position, start, rows)
        elif count <= _LARGEST_ARRAY:
            rows.extend(start + low for low in _shorts(data, position, count))
            position += 2 * count
        else:
            position = _read_bits(data, position, start, rows)
    return position


def _read_runs(data: bytes, position: int, start: int, rows: array[int]) -> int:
    runs: int = struct.unpack_from("<H", data, position)[0]
    pairs = _shorts(data, position + 2, 2 * runs)
    for first, further in zip(pairs[::2], pairs[1::2], strict=True):
        rows.extend(range(start + first, start + first + further + 1))
    return position + 2 + 4 * runs


def _read_bits(data: bytes, position: int, start: int, rows: array[int]) -> int:
    bits = data[position : position + _BITS_SIZE]
    if len(bits) != _BITS_SIZE:
        raise ValueError("the bitmap ends too early")
    for offset, byte in enumerate(bits):
        if byte:
            rows.extend(start + 8 * offset + bit for bit in range(8) if byte >> bit & 1)
    return position + _BITS_SIZE


def _shorts(data: bytes, position: int, count: int) -> array[int]:
    found = array("H", data[position : position + 2 * count])
    if len(found) != count:
        raise ValueError("the bitmap ends too early")
    if sys.byteorder == "big":
        found.byteswap()
    return found


def _place(vector_id: str) -> tuple[str | None, int]:
    """The file that holds a vector, as the log would spell it, and the offset in it; None when it is inline."""
    kind, rest = vector_id[0], vector_id[1:]
    if kind == "i":
        return None, 0
    name, at, offset = rest.rpartition("@")
    # Z85 itself has an @: only digits behind the last one are an offset, and a bare uuid has 20 characters.
    if not at or not offset.isdigit() or (kind == "u" and len(name) < _UUID_LENGTH):
        name, offset = rest, "0"
    if kind == "p":
        return name, int(offset)
    if kind != "u":
        raise CorruptTable(f"unknown storage type {kind!r} of a deletion vector")
    prefix, encoded = name[:-_UUID_LENGTH], name[-_UUID_LENGTH:]
    file_name = f"deletion_vector_{UUID(bytes=_decode85(encoded))}.bin"
    return (f"{prefix}/{file_name}" if prefix else file_name), int(offset)


def _fetch(location: Location, path: str) -> bytes:
    folder, name = location, path
    if is_absolute(path):
        parent, _, name = path.rpartition("/")
        folder = Location.of(parent, dict(location.options))
    content = folder.read(name)
    if content is None:
        raise HistoryLost("a deletion vector is gone", detail=f"{path} in {location.uri}")
    return content


def _slice(content: bytes, offset: int, path: str) -> bytes:
    (size,) = struct.unpack_from(">i", content, offset)
    data = content[offset + 4 : offset + 4 + size]
    (checksum,) = struct.unpack_from(">I", content, offset + 4 + size)
    if zlib.crc32(data) != checksum:
        raise CorruptTable("a deletion vector does not match its checksum", detail=f"{path} at {offset}")
    return data


def _decode85(text: str) -> bytes:
    return base64.b85decode(text.translate(_TO_RFC1924))
