from __future__ import annotations

import random
import struct
import zlib
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from hypothesis import given
from hypothesis import strategies as st

from tests.lake.conftest import MakeForeign
from tests.lake.foreign import add, bitmap, inline_vector, multiset, stored_vectors
from trickle.engine import Engine
from trickle.errors import CorruptTable, HistoryLost
from trickle.lake.actions import vector_id
from trickle.lake.location import Location
from trickle.lake.scan import scan
from trickle.lake.snapshot import open_snapshot
from trickle.lake.vectors import decode, hidden_rows

KINDS = {
    "one row": [7],
    "sparse": [0, 3, 9_999],
    "one run": list(range(100, 9_000)),
    "dense": [row for row in range(20_000) if row % 3],
    "many containers": [container << 16 | 5 for container in range(9)],
    "beyond 32 bits": [1, 1 << 32, (5 << 32) + 70_000],
}


@pytest.mark.parametrize("runs", [False, True], ids=["plain", "runs"])
@pytest.mark.parametrize("rows", KINDS.values(), ids=KINDS.keys())
def test_every_container_is_decoded(rows: list[int], runs: bool) -> None:
    assert decode(bitmap(rows, runs=runs)).tolist() == sorted(rows)


@given(st.sets(st.integers(0, 1 << 34), max_size=50), st.booleans())
def test_any_set_of_rows_survives(rows: set[int], runs: bool) -> None:
    assert decode(bitmap(rows, runs=runs)).tolist() == sorted(rows)


def test_an_empty_vector_hides_nothing() -> None:
    assert decode(bitmap([])).tolist() == []


@pytest.mark.parametrize("rows", [[1, 2, 3], list(range(0, 20_000, 2))], ids=["array", "bits"])
@pytest.mark.parametrize("kept", [3, 11, 20, -1])
def test_a_vector_that_ends_too_early_is_a_corrupt_table(tmp_path: Path, rows: list[int], kept: int) -> None:
    data = bitmap(rows)[:kept]
    place = tmp_path / "v.bin"
    place.write_bytes(b"\x01" + struct.pack(">i", len(data)) + data + struct.pack(">I", zlib.crc32(data)))
    with pytest.raises(CorruptTable, match="not readable"):
        hidden_rows(Location.of(tmp_path), [f"p{place.as_uri()}@1"])


def test_an_unknown_format_is_refused(tmp_path: Path) -> None:
    vector = inline_vector([1])
    broken = vector | {"pathOrInlineDv": "00000" + vector["pathOrInlineDv"][5:]}
    with pytest.raises(CorruptTable, match="not readable"):
        hidden_rows(Location.of(tmp_path), [vector_id(broken) or ""])


@pytest.mark.parametrize("prefix, absolute", [("", False), ("ab", False), ("", True)])
def test_vectors_in_one_file_are_told_apart_by_their_offset(tmp_path: Path, prefix: str, absolute: bool) -> None:
    stored = stored_vectors(tmp_path, [1, 2], [5], list(range(5_000)), prefix=prefix, absolute=absolute)
    ids = [vector_id(vector) or "" for vector in stored]
    found = hidden_rows(Location.of(tmp_path), ids)
    assert [found[i].tolist() for i in ids] == [[1, 2], [5], list(range(5_000))]


def test_a_vector_with_a_wrong_checksum_is_a_corrupt_table(tmp_path: Path) -> None:
    (stored,) = stored_vectors(tmp_path, [1, 2])
    (place,) = tmp_path.glob("*.bin")
    content = bytearray(place.read_bytes())
    content[-1] ^= 1
    place.write_bytes(content)
    with pytest.raises(CorruptTable, match="checksum"):
        hidden_rows(Location.of(tmp_path), [vector_id(stored) or ""])


def test_a_vector_file_that_is_gone_is_lost_history(tmp_path: Path) -> None:
    (stored,) = stored_vectors(tmp_path, [1, 2])
    for place in tmp_path.glob("*.bin"):
        place.unlink()
    with pytest.raises(HistoryLost):
        hidden_rows(Location.of(tmp_path), [vector_id(stored) or ""])


@pytest.mark.portable
def test_trap_hidden_rows_do_not_come_back_whatever_the_spelling_of_the_path(
    engine: Engine, foreign: MakeForeign
) -> None:
    """Inline and stored vectors, on plain, quoted and absolute paths."""
    table = foreign(name="t %41[x]", features=["deletionVectors"])
    stored = stored_vectors(table.root, [0, 1], [9], prefix="ab")
    paths = ["part-0.parquet", "p%20q/a%2520b.parquet", (table.root / "far" / "c d.parquet").as_uri(), "e.parquet"]
    vectors = [*stored, inline_vector([2, 4, 6]), None]
    for number, (path, vector) in enumerate(zip(paths, vectors, strict=True)):
        table.write(path, {"id": [number * 100 + row for row in range(10)]})
        table.commit(add(path, rows=10, vector=vector))
    ours = multiset(scan(engine, open_snapshot(table.location)))
    expected = [*range(2, 10), *range(100, 109), 200, 201, 203, 205, 207, 208, 209, *range(300, 310)]
    assert ours == multiset(pa.table({"id": expected}))


def test_vectors_are_read_as_deltalake_reads_them(engine: Engine, foreign: MakeForeign) -> None:
    table = foreign(features=["deletionVectors"])
    chance = random.Random(7)
    masks = [sorted(chance.sample(range(30_000), size)) for size in (1, 50, 4_096, 4_097, 29_999)]
    vectors = [inline_vector(masks[0]), *stored_vectors(table.root, *masks[1:])]
    for number, vector in enumerate(vectors):
        path = table.write(f"part-{number}.parquet", {"id": list(range(30_000))})
        table.commit(add(path, rows=30_000, vector=vector))
    theirs = {
        uri.rpartition("/")[2]: [row for row, kept in enumerate(mask) if not kept]
        for batch in DeltaTable(str(table.root)).deletion_vectors()
        for uri, mask in zip(*(pa.record_batch(batch).to_pydict().values()), strict=True)
    }
    assert theirs == {f"part-{number}.parquet": mask for number, mask in enumerate(masks)}
    snapshot = open_snapshot(table.location)
    assert [file.live_rows for file in snapshot.files] == [30_000 - len(mask) for mask in masks]
    assert scan(engine, snapshot).count() == sum(30_000 - len(mask) for mask in masks)
    located = scan(engine, snapshot, located=True, files=[snapshot.files[1]])
    assert not set(masks[1]) & {row["__trickle_row"] for row in located.collect()}
