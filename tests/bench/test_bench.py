"""The benchmarks run, and their results become a page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bench.__main__ import main
from bench.figures import Line
from bench.report import page
from bench.runner import BENCHMARKS
from bench.show import verdicts
from trickle.engine import Engine

COMPARED = ("groups", "growth", "peers", "tpch")
"""Those that measure ways beside each other have tests of their own."""


def test_all_benchmarks_run(engine: Engine, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wanted = [name for name in BENCHMARKS if name not in COMPARED]
    main(["--quick", "--only", ",".join(wanted), "--out", str(tmp_path)])
    (found,) = tmp_path.glob("*.json")
    results = json.loads(found.read_text(encoding="utf-8"))
    assert [one["name"] for one in results["benchmarks"]] == wanted
    assert "idle refresh, long log" in capsys.readouterr().out
    lines = {line["what"]: line for one in results["benchmarks"] for line in one["lines"]}
    assert lines["idle refresh, long log"]["facts"]["log_versions"] >= 20
    assert lines["UPDATE of 1 row"]["facts"]["files_rewritten"] == 1
    assert lines["t.table, the plan"]["facts"]["spark_jobs"] == 0
    for one in results["benchmarks"]:
        assert one["title"] in page(results)


def test_an_unknown_benchmark_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--only", "nothing"])
    assert "no benchmark 'nothing'" in capsys.readouterr().err


def test_a_quick_run_makes_no_page(tmp_path: Path) -> None:
    quick = tmp_path / "quick.json"
    quick.write_text(json.dumps({"machine": {}, "quick": True, "benchmarks": []}), encoding="utf-8")
    with pytest.raises(SystemExit, match="mean nothing"):
        main(["report", str(quick)])


def _results(date: str, *titles: str) -> dict[str, Any]:
    machine = {"date": date, "cores": 2, "load_average": 0.1}
    parts = [{"name": "idle", "title": title, "lines": []} for title in titles]
    return {"machine": machine, "quick": False, "benchmarks": parts}


def test_a_new_run_takes_the_place_of_older_figures_of_the_same_tables() -> None:
    first = page(_results("monday", "idle", "change"), _results("tuesday", "full"))
    second = page(_results("friday", "idle", "full"), before=first)
    assert [line.split(", ")[1] for line in second.splitlines() if line.startswith("## The machine")] == [
        "friday",
        "monday",
    ]
    assert (second.count("## idle"), second.count("## change"), second.count("## full")) == (1, 1, 1)
    assert page(_results("sunday", "change"), before=second).count("## The machine") == 2
    assert page(before=second) == second


def test_a_limit_is_about_the_median() -> None:
    kept = Line("kept", (1.0, 2.0, 90.0), limit_ms=10.0)
    broken = Line("broken", (1.0, 20.0, 90.0), limit_ms=10.0)
    assert (kept.p95_ms, kept.passed, broken.passed, Line("free", (1.0,)).passed) == (90.0, True, False, None)
    assert [text[:4] for text in verdicts({"lines": [kept.to_json(), broken.to_json()]})] == ["PASS", "FAIL"]
