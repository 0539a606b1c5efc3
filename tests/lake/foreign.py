"""Delta tables as others write them: by hand, action by action, so that a log can say what no writer at hand says."""

from __future__ import annotations

import base64
import json
import struct
import uuid
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from trickle.lake.location import Location

Action = dict[str, Any]


class ForeignTable:
    """A table whose log is written line by line."""

    def __init__(
        self,
        root: Path,
        ddl: str,
        *,
        partition_by: Sequence[str] = (),
        features: Sequence[str] | None = None,
        reader_version: int | None = None,
        properties: Mapping[str, str] | None = None,
        first_commit: bool = True,
    ) -> None:
        self.root = root
        self.location = Location.of(root)
        self.partition_by = list(partition_by)
        self.version = -1
        (root / "_delta_log").mkdir(parents=True)
        version = reader_version or (1 if features is None else 3)
        protocol: Action = {"minReaderVersion": version, "minWriterVersion": 2 if version < 3 else 7}
        if version >= 3:
            protocol |= {"readerFeatures": list(features or ()), "writerFeatures": list(features or ())}
        self.protocol = {"protocol": protocol}
        self.properties = dict(properties or {})
        if first_commit:
            self.commit(self.protocol, self.metadata(ddl))

    def metadata(self, ddl: str, *, partition_by: Sequence[str] | None = None) -> Action:
        return {
            "metaData": {
                "id": "6f0c61a4-0000-4000-8000-000000000001",
                "format": {"provider": "parquet", "options": {}},
                "schemaString": ddl if ddl.startswith("{") else schema(ddl).json(),
                "partitionColumns": self.partition_by if partition_by is None else list(partition_by),
                "configuration": self.properties,
                "createdTime": 0,
            }
        }

    def write(self, path: str, columns: Mapping[str, Any] | pa.Table) -> str:
        """Write a data file where the log's spelling ``path`` says; returns that spelling."""
        place = self._place(path)
        place.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(columns if isinstance(columns, pa.Table) else pa.table(dict(columns)), place)
        return path

    def _place(self, path: str) -> Path:
        return Path(unquote(path.removeprefix("file://"))) if "://" in path else self.root / unquote(path)

    def commit(self, *actions: Action) -> int:
        self.version += 1
        for action in actions:
            # deltalake trusts the size when it looks for a file's footer.
            if "add" in action and self._place(action["add"]["path"]).exists():
                action["add"]["size"] = self._place(action["add"]["path"]).stat().st_size
        lines = "".join(json.dumps(action) + "\n" for action in actions)
        (self.root / "_delta_log" / f"{self.version:020d}.json").write_text(lines)
        return self.version

    def read_by_deltalake(self, version: int | None = None) -> Counter[str]:
        return multiset(DeltaTable(str(self.root), version=version).to_pyarrow_table())


def schema(ddl: str) -> StructType:
    """``"id long, p string"`` as a schema; types by their Delta names."""
    fields = [part.strip().partition(" ") for part in ddl.split(", ")]
    return StructType.fromJson(
        {
            "type": "struct",
            "fields": [{"name": n, "type": t, "nullable": True, "metadata": {}} for n, _, t in fields],
        }
    )


def add(
    path: str,
    *,
    partition: Mapping[str, str | None] | None = None,
    rows: int | None = None,
    stats: str | None = None,
    vector: Action | None = None,
    data_change: bool = True,
) -> Action:
    text = json.dumps({"numRecords": rows}) if rows is not None and stats is None else stats
    action: Action = {
        "path": path,
        "partitionValues": dict(partition or {}),
        "size": 1000,
        "modificationTime": 0,
        "dataChange": data_change,
    }
    if text is not None:
        action["stats"] = text
    if vector is not None:
        action["deletionVector"] = vector
    return {"add": action}


def remove(
    path: str,
    *,
    partition: Mapping[str, str | None] | None = None,
    vector: Action | None = None,
    data_change: bool = True,
) -> Action:
    action: Action = {"path": path, "deletionTimestamp": 0, "dataChange": data_change}
    if partition is not None:
        action |= {"extendedFileMetadata": True, "partitionValues": dict(partition), "size": 1000}
    if vector is not None:
        action["deletionVector"] = vector
    return {"remove": action}


def trickle_info(**ours: Any) -> Action:
    return {"commitInfo": {"timestamp": 0, "operation": "WRITE", "trickle": ours}}


# Deletion vectors

_Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_RFC1924 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
_TO_Z85 = str.maketrans(_RFC1924, _Z85)


def z85(data: bytes) -> str:
    return base64.b85encode(data + b"\0" * (-len(data) % 4)).decode().translate(_TO_Z85)


def bitmap(rows: Iterable[int], *, runs: bool = False) -> bytes:
    """Row positions as the protocol's 64-bit roaring bitmap; ``runs`` prefers run containers."""
    buckets: dict[int, list[int]] = {}
    for row in sorted(set(rows)):
        buckets.setdefault(row >> 32, []).append(row & 0xFFFFFFFF)
    data = struct.pack("<iq", 1681511377, len(buckets))
    for high, lows in buckets.items():
        data += struct.pack("<I", high) + _bitmap32(lows, runs=runs)
    return data


def _bitmap32(values: list[int], *, runs: bool) -> bytes:
    containers: dict[int, list[int]] = {}
    for value in values:
        containers.setdefault(value >> 16, []).append(value & 0xFFFF)
    descriptions = b"".join(struct.pack("<HH", key, len(lows) - 1) for key, lows in containers.items())
    bodies = [_container(lows, runs=runs) for lows in containers.values()]
    if runs:
        flags = bytearray((len(containers) + 7) // 8)
        for index in range(len(containers)):
            flags[index // 8] |= 1 << index % 8
        head = struct.pack("<I", 12347 | (len(containers) - 1) << 16) + bytes(flags) + descriptions
    else:
        head = struct.pack("<II", 12346, len(containers)) + descriptions
    if not runs or len(containers) >= 4:
        offset = len(head) + 4 * len(containers)
        for body in bodies:
            head += struct.pack("<I", offset)
            offset += len(body)
    return head + b"".join(bodies)


def _container(lows: list[int], *, runs: bool) -> bytes:
    if runs:
        spans: list[list[int]] = []
        for low in lows:
            if spans and spans[-1][1] == low - 1:
                spans[-1][1] = low
            else:
                spans.append([low, low])
        return struct.pack("<H", len(spans)) + b"".join(struct.pack("<HH", a, b - a) for a, b in spans)
    if len(lows) <= 4096:
        return struct.pack(f"<{len(lows)}H", *lows)
    bits = bytearray(8192)
    for low in lows:
        bits[low // 8] |= 1 << low % 8
    return bytes(bits)


def inline_vector(rows: Sequence[int], *, runs: bool = False) -> Action:
    data = bitmap(rows, runs=runs)
    return {
        "storageType": "i",
        "pathOrInlineDv": z85(data),
        "sizeInBytes": len(data),
        "cardinality": len(set(rows)),
    }


def stored_vectors(root: Path, *vectors: Sequence[int], prefix: str = "", absolute: bool = False) -> list[Action]:
    """Several deletion vectors in one file below the table; a descriptor of each."""
    name = uuid.uuid4()
    content = b"\x01"
    described: list[Action] = []
    folder = root / prefix if prefix else root
    folder.mkdir(exist_ok=True)
    place = folder / f"deletion_vector_{name}.bin"
    for rows in vectors:
        data = bitmap(rows)
        described.append(
            {
                "storageType": "p" if absolute else "u",
                "pathOrInlineDv": place.as_uri() if absolute else prefix + z85(name.bytes),
                "offset": len(content),
                "sizeInBytes": len(data),
                "cardinality": len(set(rows)),
            }
        )
        content += struct.pack(">i", len(data)) + data + struct.pack(">I", zlib.crc32(data))
    place.write_bytes(content)
    return described


# Comparing


def multiset(rows: DataFrame | pa.Table) -> Counter[str]:
    """Rows without regard to order; NaN equals NaN."""
    table = rows.toArrow() if not isinstance(rows, pa.Table) else rows
    return Counter(repr(sorted(row.items())) for row in table.to_pylist())
