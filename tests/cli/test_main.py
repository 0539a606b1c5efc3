from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.cli.runner import COMMAND, PATIENCE, Cli, spawn
from trickle.cli import main
from trickle.engine.launch import MEMORY_VARIABLE


def test_a_whole_story_in_a_process_of_its_own(tmp_path: Path) -> None:
    """Spark starts for real: nothing but the document on stdout, nothing at all on stderr."""
    place = ["-w", str(tmp_path / "wh")]
    assert spawn(*place, "init").code == 0
    told = spawn(
        *place,
        "sql",
        "-",
        "--json",
        text="CREATE TABLE a (n INT); INSERT INTO a VALUES (1), (NULL); SELECT COUNT(n) AS n FROM a; SELECT m FROM a",
        **{MEMORY_VARIABLE: "1g"},
    )
    assert told.code == 2
    created, inserted, rows = json.loads(told.out)
    assert (created["message"], inserted["rows_inserted"], rows) == ("table a created", 2, [{"n": 1}])
    assert told.error == {
        "code": "UNKNOWN_COLUMN",
        "message": "statement 4 of 4 (line 1): unknown column m",
        "detail": None,
        "hint": told.error["hint"],
        "statement": 4,
    }


def test_without_java_the_ways_to_get_it_are_told(cli: Cli) -> None:
    ran = spawn("-w", str(cli.warehouse), "sql", "SELECT 1", PATH="", JAVA_HOME="")
    assert ran.code == 5
    assert ran.err.startswith("error: Spark needs Java 17 or newer [JAVA_MISSING]\n")
    assert all(way in ran.err for way in ("apt-get install", "brew install", "conda install"))
    assert "Traceback" not in ran.err


def test_a_database_that_does_not_answer(cli: Cli) -> None:
    dead = "postgresql://nobody@127.0.0.1:1/nothing"
    ran = cli("--catalog", dead, "status", "--json")
    assert ran.code == 4
    assert ran.error["code"] == "CATALOG_UNREACHABLE"
    assert ran.out == ""


def test_an_interrupt_is_one_line(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    class Keyboard(io.RawIOBase):
        """A stdin at which Ctrl-C is pressed."""

        def read(self, _size: int = -1) -> bytes:
            signal.raise_signal(signal.SIGINT)
            return b""

    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=Keyboard()))
    ran = cli("sql", "-")
    assert (ran.code, ran.out, ran.err) == (130, "", "interrupted\n")


def test_a_reader_that_goes_away_is_no_error(cli: Cli) -> None:
    with subprocess.Popen(
        [*COMMAND, "-w", str(cli.warehouse), "settings"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        process.stdout.close()
        _, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, err) == (141, b"")


def test_a_terminal_that_knows_no_unicode_gets_numbers(cli: Cli) -> None:
    ran = spawn("-w", str(cli.warehouse), "table", "größe", PYTHONIOENCODING="ascii")
    assert ran.code == 2
    assert "gr\\xf6\\xdfe" in ran.err


def test_a_defect_is_no_traceback(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("oh")

    monkeypatch.setattr("trickle.api.Trickle.status", broken)
    ran = cli("status")
    assert ran.code == 70
    assert ran.err.startswith("internal error: ZeroDivisionError: oh\n")
    assert cli("status", "--json").error["code"] == "INTERNAL"


def test_json_is_wanted_only_where_it_is_an_option() -> None:
    assert main._wants_json(["status", "--json"])
    assert not main._wants_json(["sql", "--", "--json"])


@pytest.mark.parametrize("words", [["version"], ["--help"], ["refresh", "--help"], ["watermark", "--help"]])
def test_version_and_help_are_told_without_spark_sqlalchemy_or_sqlglot(words: list[str]) -> None:
    code = (
        f"import sys; from trickle.cli.main import run; run({words!r}); "
        "print(sorted({'pyspark', 'sqlalchemy', 'sqlglot', 'pyarrow', 'prompt_toolkit'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=os.environ)
    assert done.stdout.splitlines()[-1] == "[]"
