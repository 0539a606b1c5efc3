from __future__ import annotations

import io
from pathlib import Path

import pytest

from trickle.cli.arguments import parse_options, read_text
from trickle.errors import InvalidOption


def test_sql_comes_from_an_argument_a_file_or_stdin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "a.sql"
    file.write_bytes(b"\xef\xbb\xbfSELECT '\xc3\xa9'")
    assert read_text("SELECT 1", None) == "SELECT 1"
    assert read_text(None, file) == "SELECT 'é'"
    assert read_text(None, None) is None
    for given in (("-", None), (None, Path("-"))):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"SELECT 2")))
        assert read_text(*given) == "SELECT 2"


def test_sql_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "a.sql"
    file.write_bytes(b"SELECT '\xff'")
    with pytest.raises(InvalidOption, match="is not UTF-8 text"):
        read_text(None, file)
    with pytest.raises(InvalidOption, match="cannot read"):
        read_text(None, tmp_path / "missing.sql")
    with pytest.raises(InvalidOption, match="cannot read"):
        read_text(None, tmp_path)
    with pytest.raises(InvalidOption, match="given twice"):
        read_text("SELECT 1", file)


def test_options_have_types() -> None:
    given = ["a=1", "b=0.5", "c=TRUE", "d=", "e=x=y", " f = g "]
    assert parse_options(given) == {"a": 1, "b": 0.5, "c": True, "d": None, "e": "x=y", "f": "g"}


@pytest.mark.parametrize("pair", ["fuse", "=1", ""])
def test_what_is_no_option_is_refused(pair: str) -> None:
    with pytest.raises(InvalidOption, match="not an option"):
        parse_options([pair])
