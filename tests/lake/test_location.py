from __future__ import annotations

from pathlib import Path

import pytest

from trickle.lake.location import Location


@pytest.fixture(params=["path", "uri"])
def location(request: pytest.FixtureRequest, tmp_path: Path) -> Location:
    """The same folder as a local path and through delta-rs as a URI: both must behave alike."""
    folder = tmp_path / "a b"
    folder.mkdir()
    return Location.of(folder) if request.param == "path" else Location(folder.as_uri())


def put(location: Location, path: str, content: bytes = b"x") -> None:
    place = Path(location.for_spark.removeprefix("file://"), path)
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(content)


def test_a_file_is_read_and_a_missing_one_is_none(location: Location) -> None:
    put(location, "log/0.json", b"hello")
    assert location.read("log/0.json") == b"hello"
    assert location.read("log/1.json") is None
    assert location.exists("log/0.json")
    assert not location.exists("log/1.json")


@pytest.mark.parametrize("name", ["a b", "a%20b", "a+b", "ü", "x=y", "q?", "[1]", "{a,b}", "#1"])
def test_names_are_taken_as_they_are(location: Location, name: str) -> None:
    put(location, f"{name}/f", b"inside")
    assert location.exists(f"{name}/f")
    assert location.read(f"{name}/f") == b"inside"
    assert [f.path for f in location.walk()] == [f"{name}/f"]


def test_a_file_has_nothing_inside(tmp_path: Path) -> None:
    location = Location.of(tmp_path)
    put(location, "f")
    assert location.read("f/inside") is None


def test_walking_lists_every_file_below_and_none_where_there_is_no_folder(location: Location) -> None:
    put(location, "p=1/a.parquet", b"12345")
    put(location, "p=1/deep/b.parquet")
    put(location, "other/c.parquet")
    assert [(f.path, f.size) for f in location.walk("p=1")] == [("p=1/a.parquet", 5), ("p=1/deep/b.parquet", 1)]
    assert {f.path for f in location.walk()} == {"p=1/a.parquet", "p=1/deep/b.parquet", "other/c.parquet"}
    assert list(location.walk("nowhere")) == []


def test_deleting_takes_a_file_or_a_folder_and_minds_nothing_missing(location: Location) -> None:
    put(location, "stage/a.parquet")
    put(location, "stage/b.parquet")
    put(location, "kept.parquet")
    location.delete("stage")
    location.delete("nowhere")
    assert [f.path for f in location.walk()] == ["kept.parquet"]


def test_children_of_a_uri_keep_its_scheme_and_bucket() -> None:
    table = Location.of("s3://bucket/wh", {"region": "x"}).child("default", "orders")
    assert table.uri == "s3://bucket/wh/default/orders"
    assert table.storage_options == {"region": "x"}
    assert Location.of("s3://bucket").child("orders").uri == "s3://bucket/orders"


def test_spark_gets_its_own_scheme_and_a_path_without_quoting() -> None:
    assert Location.of("s3://bucket/a%20b/t").for_spark == "s3a://bucket/a b/t"
    assert Location.of("abfss://box@host/t").for_spark == "abfss://box@host/t"


def test_a_relative_path_is_absolute_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert Location.of("wh/t").uri == str(tmp_path / "wh" / "t")


def test_secrets_do_not_show_in_messages() -> None:
    assert "hidden" not in repr(Location.of("s3://bucket/t", {"secret_access_key": "hidden"}))
