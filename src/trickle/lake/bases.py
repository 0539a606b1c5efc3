"""Bases: versions of tables whose files are indexed, and from which the rows of other versions are found.

A statement that changes one row of a file writes the file anew, and the file's index is of no use any more. But the
rows of a version are those of another version and what changed between the two. So a big table that is looked up again
and again by a key gets a base: the version that it has then. Rows of later versions are found by the indexes of the
base's files, and among the rows that changed since, which are kept in memory. When these are many, the version that is
looked up becomes the base: most of its files have their indexes already. A base that did not last is given up.

As with indexes, all of it is a cache. A base is a mere number: what it stands for is asked of the log.
"""

from __future__ import annotations

import logging
import shutil
import threading
import uuid
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from trickle.algebra.weights import WEIGHT
from trickle.errors import TrickleError
from trickle.lake.local import local_changes
from trickle.lake.location import Location
from trickle.lake.snapshot import Snapshot, open_snapshot

LEAST_ROWS = 200_000
"""Rows of a table that is worth a base."""
MOST_SHARE = 0.02
"""Changed rows, measured by those of the table, up to which a base serves: every lookup looks through them."""
MOST_VERSIONS = 256
"""Versions between it and the one that is asked for: a process that begins reads what each of them changed."""
LOOKS = 3
"""The refresh that makes a base is the third one that looks rows up by the key."""
MOST_BYTES = 512 << 20
"""Of changes that stay in memory, all together."""
_MOST_VERSIONS_KEPT = 4
_MOST_CHUNKS = 16

_BASE = "base"
_logger = logging.getLogger(__name__)
_Place = tuple[str, str, int]
"""A table by its place and its identity there, and its base."""


@dataclass(frozen=True)
class Near:
    """A base, and the weighted rows, packed, that lead from it to the wanted version; None when it is that version."""

    base: Snapshot
    since: pa.Table | None = None


@dataclass(frozen=True)
class _Kept:
    """What changed since a base, by version, with all columns that were asked for."""

    columns: tuple[str, ...] = ()
    versions: dict[int, pa.Table] = field(default_factory=dict)


@dataclass
class Bases:
    """Bases in a folder, and in memory what changed since."""

    folder: Path
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _kept: OrderedDict[_Place, _Kept] = field(default_factory=OrderedDict)

    def near(self, name: str, snapshot: Snapshot, columns: Sequence[str]) -> Near | None:
        """The base of a table for lookups by a key, which the name stands for; None where there is none that serves."""
        rows = sum(file.rows or 0 for file in snapshot.files)
        if rows < LEAST_ROWS:
            return None
        try:
            return self._near(name, snapshot, columns, int(MOST_SHARE * rows)) if _is_committed(snapshot) else None
        except (OSError, ValueError, TrickleError) as failure:
            _logger.info("no base of %s: %s", snapshot.location.uri, failure)
            self.forget(name)
            return None

    def _near(self, name: str, snapshot: Snapshot, columns: Sequence[str], most: int) -> Near | None:
        base = self._noted(name, snapshot)
        if base is None:
            return Near(snapshot) if self._is_due(name, snapshot, columns) else None
        if base.version == snapshot.version:
            return Near(base)
        since = self._since(base, snapshot, columns, most)
        if since is not None:
            return Near(base, since)
        if snapshot.version >= base.version + LOOKS and _is_told(snapshot, columns):
            self._note(name, snapshot)
            return Near(snapshot)
        if snapshot.version > base.version:
            self.forget(name)
        return None

    def forget(self, name: str) -> None:
        """Begin to count anew."""
        shutil.rmtree(self.folder / name, ignore_errors=True)

    def _since(self, base: Snapshot, snapshot: Snapshot, columns: Sequence[str], most: int) -> pa.Table | None:
        """What changed from a base to another version; None when that is much, or not told."""
        far = abs(snapshot.version - base.version) > MOST_VERSIONS
        if far or base.table_id != snapshot.table_id:
            return None
        place = (base.location.uri, base.table_id, base.version)
        with self._lock:
            kept = self._kept.get(place, _Kept())
            known = dict(kept.versions)
        if not set(columns) <= set(kept.columns):
            kept, known = _Kept(tuple(dict.fromkeys((*kept.columns, *columns)))), {}
        found = known.get(snapshot.version)
        if found is None:
            try:
                found = _read(base, snapshot.version, kept.columns, known, most)
            except TrickleError:
                # Perhaps another's column is gone.
                if set(kept.columns) == set(columns):
                    raise
                kept = _Kept(tuple(columns))
                found = _read(base, snapshot.version, kept.columns, {}, most)
        if found is not None and found.nbytes > MOST_BYTES and set(kept.columns) != set(columns):
            kept, found = _Kept(tuple(columns)), found.select([*columns, WEIGHT])
        if found is None or found.num_rows > most or found.nbytes > MOST_BYTES:
            return None
        self._keep(place, kept.columns, snapshot.version, found)
        return found.select([*columns, WEIGHT])

    def _keep(self, place: _Place, columns: tuple[str, ...], version: int, found: pa.Table) -> None:
        with self._lock:
            kept = self._kept.get(place)
            if kept is None or kept.columns != columns:
                kept = self._kept[place] = _Kept(columns)
            kept.versions.pop(version, None)
            kept.versions[version] = found
            for old in list(kept.versions)[:-_MOST_VERSIONS_KEPT]:
                del kept.versions[old]
            self._kept.move_to_end(place)
            while sum(_size(one.versions) for one in self._kept.values()) > MOST_BYTES:
                self._kept.popitem(last=False)

    def _noted(self, name: str, snapshot: Snapshot) -> Snapshot | None:
        """The version that was made the base."""
        try:
            number = int((self.folder / name / _BASE).read_text(encoding="ascii"))
        except FileNotFoundError:
            return None
        return open_snapshot(snapshot.location, number)

    def _is_due(self, name: str, snapshot: Snapshot, columns: Sequence[str]) -> bool:
        """Note a lookup. The one that makes the version a base says so, if later changes are likely to be told."""
        folder = self.folder / name
        folder.mkdir(parents=True, exist_ok=True)
        looks = sum(1 for _ in folder.iterdir()) + 1
        if looks < LOOKS:
            (folder / str(looks)).touch()
            return False
        if not _is_told(snapshot, columns):
            return False
        self._note(name, snapshot)
        return True

    def _note(self, name: str, snapshot: Snapshot) -> None:
        """Make a version the base."""
        folder = self.folder / name
        aside = folder / f"{uuid.uuid4().hex}.part"
        aside.write_text(str(snapshot.version), encoding="ascii")
        aside.replace(folder / _BASE)


def unpacked(rows: pa.Table, shape: pa.Schema) -> pa.Table:
    """Weighted rows with the types that their columns have in a shape."""
    types = {**dict(zip(shape.names, shape.types, strict=True)), WEIGHT: pa.int64()}
    return rows.cast(pa.schema([(name, types[name]) for name in rows.column_names]))


def _packed(rows: pa.Table) -> pa.Table:
    """The same with as few bytes for decimals as their digits need, and for weights."""
    return rows.cast(pa.schema([(field.name, _packed_type(field)) for field in rows.schema]))


def _packed_type(field: pa.Field) -> pa.DataType:
    kind = field.type
    if field.name == WEIGHT:
        return pa.int8()
    if not pa.types.is_decimal128(kind) or kind.precision > 18:
        return kind
    return (pa.decimal32 if kind.precision <= 9 else pa.decimal64)(kind.precision, kind.scale)


def _read(
    base: Snapshot, version: int, columns: Sequence[str], known: Mapping[int, pa.Table], most: int
) -> pa.Table | None:
    """The same, read: of what is known already, the last part."""
    if version < base.version:
        found = _changed(base.location, version, base.version, columns, most)
        return None if found is None else _negated(found)
    nearest = max((one for one in known if base.version < one < version), default=base.version)
    found = _changed(base.location, nearest, version, columns, most)
    if found is None or nearest == base.version:
        return found
    both = pa.concat_tables([known[nearest], found])
    return both.combine_chunks() if both.column(0).num_chunks > _MOST_CHUNKS else both


def _size(kept: Mapping[int, pa.Table]) -> int:
    """The bytes of what is kept for some columns. Versions share what the earlier ones have, until it is combined."""
    largest = max(kept.values(), key=lambda table: table.num_rows)
    apart = [table for table in kept.values() if _beginning(table) != _beginning(largest)]
    return int(largest.nbytes) + sum(int(table.nbytes) for table in apart)


def _beginning(table: pa.Table) -> int | None:
    """Where the weights lie in memory."""
    chunks = [chunk for chunk in table.column(WEIGHT).chunks if len(chunk)]
    return int(chunks[0].buffers()[1].address) if chunks else None


def _is_told(snapshot: Snapshot, columns: Sequence[str]) -> bool:
    """Whether the last change is told, as later ones are then, most likely."""
    version = snapshot.version
    return not version or local_changes(snapshot.location, version - 1, version, columns) is not None


def _is_committed(snapshot: Snapshot) -> bool:
    """Whether this is a version as the log has it: others are staged, or cut down to some files."""
    try:
        known = open_snapshot(snapshot.location, snapshot.version)
    except TrickleError:
        return False
    return known.files == snapshot.files


def _changed(location: Location, old: int, new: int, columns: Sequence[str], most: int) -> pa.Table | None:
    """What changed between two versions, read in parts where it is much at once; None when it is more than that."""
    found = local_changes(location, old, new, columns)
    if found is not None:
        # The log may spell them otherwise.
        return _packed(found.rename_columns([*columns, WEIGHT])) if found.num_rows <= most else None
    if new - old == 1:
        return None
    middle = (old + new) // 2
    first = _changed(location, old, middle, columns, most)
    second = None if first is None else _changed(location, middle, new, columns, most - first.num_rows)
    return None if first is None or second is None else pa.concat_tables([first, second])


def _negated(rows: pa.Table) -> pa.Table:
    place = rows.column_names.index(WEIGHT)
    return rows.set_column(place, WEIGHT, pc.negate(rows.column(WEIGHT)))
