"""The benchmarks that measure ways beside each other run at tiny sizes, and say what they found."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from bench.__main__ import main
from bench.report import page
from trickle.engine import Engine


def quickly(tmp_path: Path, *arguments: str) -> dict[str, Any]:
    main(["--quick", "--data", str(tmp_path / "data"), "--out", str(tmp_path / "out"), *arguments])
    (found,) = (tmp_path / "out").glob("*.json")
    results: dict[str, Any] = json.loads(found.read_text(encoding="utf-8"))
    assert not [row for part in results["benchmarks"] for row in part["rows"] if None in row["modes"].values()]
    return results


def claims(results: dict[str, Any]) -> dict[str, float]:
    return {claim["what"]: claim["value"] for part in results["benchmarks"] for claim in part["claims"]}


def test_groups(engine: Engine, tmp_path: Path) -> None:
    results = quickly(tmp_path, "--only", "groups")
    (row,) = results["benchmarks"][0]["rows"]
    actions = {mode: run["action"] for mode, run in row["modes"].items()}
    assert actions == {"FULL": "FULL", "DIFFERENTIAL": "DIFFERENTIAL", "AUTO": "DIFFERENTIAL"}
    full, kept = row["modes"]["FULL"], row["modes"]["DIFFERENTIAL"]
    # Of ten rows six are new, two updated (each an old row and a new one) and two deleted.
    assert (full["rows_read"], kept["files_rewritten"], kept["changed_rows"]) == (5_000 + 6 - 2, 1, 12)
    assert kept["rows_read"] < full["rows_read"]
    assert claims(results)["files that DIFFERENTIAL rewrote, of those touched"] == 1


def test_growth(engine: Engine, tmp_path: Path) -> None:
    results = quickly(tmp_path, "--only", "growth", "--growth-rows", "1000,2000")
    rows = results["benchmarks"][0]["rows"]
    assert [(row["group"], row["what"]) for row in rows] == [
        ("aggregate", "1,000 rows"),
        ("aggregate", "2,000 rows"),
        ("join", "1,000 rows"),
        ("join", "2,000 rows"),
    ]
    assert all(row["modes"]["DIFFERENTIAL"]["action"] == "DIFFERENTIAL" for row in rows)
    assert claims(results)["join: growth from 1,000 to 2,000 rows"] > 0


def test_tpch(engine: Engine, tmp_path: Path) -> None:
    # Full refreshes in the first round only: both agree at the end all the same.
    results = quickly(tmp_path, "--only", "tpch", "--repeat", "2", "--full-rounds", "1")
    rows = results["benchmarks"][0]["rows"]
    assert [row["what"] for row in rows] == ["q12"]
    assert {mode for row in rows for mode in row["modes"]} == {"FULL", "DIFFERENTIAL", "AUTO"}
    assert all(row["modes"]["DIFFERENTIAL"]["action"] == "DIFFERENTIAL" for row in rows)
    found = claims(results)
    assert found["queries whose results differ between FULL and DIFFERENTIAL"] == 0
    assert found["SF 0.01, 1 %: queries that failed"] == 0
    assert "| q12 |" in page(results)


def test_peers_are_columns_of_the_same_table(tmp_path: Path) -> None:
    results = quickly(tmp_path, "--only", "peers")
    (peer,) = results["benchmarks"][0]["peers"]
    assert peer["duckdb_ms"] > 0
    assert peer["postgres_ms"] > 0
    run = {"ms": 1.0, "action": "FULL", "jobs": 1, "files_read": 1, "files_rewritten": 1, "rows_read": 1, "error": None}
    row = {"group": "SF 0.01", "what": "q12", "facts": {"scale": 0.01}, "ratio": None, "modes": {"FULL": run}}
    tpch = {"name": "tpch", "title": "TPC-H", "lines": [], "rows": [row], "claims": [], "peers": []}
    (heading,) = [
        line
        for line in page({**results, "benchmarks": [*results["benchmarks"], tpch]}).splitlines()
        if "FULL |" in line
    ]
    assert heading.endswith("| DuckDB | PostgreSQL |")
