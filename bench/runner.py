"""Runs benchmarks one after the other, each in a warehouse of its own."""

from __future__ import annotations

import importlib
import json
import tempfile
from collections.abc import Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console

import trickle
from bench.machine import machine
from bench.show import terminal, verdicts
from bench.sizes import FULL, QUICK
from trickle.engine import Engine

BENCHMARKS = {
    "change": "From a change to the refreshed result",
    "full": "Full refresh of a large table",
    "idle": "Nothing has changed",
    "commit": "One commit",
    "dml": "SQL statements on one row",
    "scan": "Reading many files",
}
"""The modules of this package that are benchmarks, in the order in which they run."""


def run(names: Sequence[str], *, quick: bool, out: Path, console: Console) -> tuple[Path, bool]:
    """Run benchmarks, print their tables, write the JSON; its path, and whether every limit was kept."""
    facts = machine()
    console.print(", ".join(f"{name} {value}" for name, value in facts.to_json().items()), style="dim")
    found = []
    # One session for all: it stops with the last engine that uses it.
    with closing(Engine.open()) as engine:
        engine.sql("SELECT 1").collect()
        for name in names:
            found.append(_one(name, quick=quick))
            console.print(terminal(found[-1]["title"], found[-1]["lines"]))
            for verdict in verdicts(found[-1]["lines"]):
                console.print(verdict, style="bold green" if verdict.startswith("PASS") else "bold red")
    out.mkdir(parents=True, exist_ok=True)
    path = out / f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}.json"
    path.write_text(json.dumps({"machine": facts.to_json(), "quick": quick, "benchmarks": found}, indent=1))
    return path, all(line["passed"] is not False for one in found for line in one["lines"])


def _one(name: str, *, quick: bool) -> dict[str, Any]:
    module = importlib.import_module(f"bench.{name}")
    sizes = QUICK if quick else FULL
    with tempfile.TemporaryDirectory(prefix="trickle-bench-") as folder, trickle.connect(folder) as t:
        lines = [line.to_json() for line in module.run(t, sizes)]
    return {"name": name, "title": BENCHMARKS[name], "lines": lines}
