"""Runs benchmarks one after the other, each in a warehouse of its own."""

from __future__ import annotations

import importlib
import json
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, assert_never

from rich.console import Console

import trickle
from bench.beside import Beside
from bench.figures import Claim, Line, Note
from bench.machine import machine
from bench.peers import Peer
from bench.show import peers_of, terminal, verdicts
from bench.sizes import Sizes
from trickle.engine import Engine

BENCHMARKS = {
    "change": "From a change to the refreshed result",
    "full": "Full refresh of a large table",
    "idle": "Nothing has changed",
    "wake": "The scheduler: from a commit to the result, and at rest",
    "commit": "One commit",
    "dml": "SQL statements on one row",
    "scan": "Reading many files",
    "capture": "Writing to PostgreSQL, captured and not",
    "ingest": "From PostgreSQL to the lake",
    "groups": "Some rows of a large aggregate change",
    "growth": "The same change of larger tables",
    "peers": "TPC-H by others",
    "tpch": "TPC-H: in full, by changes, AUTO",
}
"""The modules of this package that are benchmarks, in the order in which they run."""

Item = Line | Beside | Claim | Peer | Note


@dataclass(frozen=True)
class How:
    """How a run was asked for, and where its results go."""

    quick: bool
    command: str
    out: Path


def run(names: Sequence[str], sizes: Sizes, how: How, console: Console) -> tuple[Path, bool]:
    """Run benchmarks, print their tables, write the JSON; its path, and whether every limit was kept."""
    facts = machine()
    console.print(", ".join(f"{name} {value}" for name, value in facts.to_json().items()), style="dim")
    found: list[dict[str, Any]] = []
    how.out.mkdir(parents=True, exist_ok=True)
    path = how.out / f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}.json"
    # One session for all: it stops with the last engine that uses it.
    with closing(Engine.open()) as engine:
        engine.sql("SELECT 1").collect()
        for name in names:
            found.append({"name": name, "title": BENCHMARKS[name], "lines": [], "rows": [], "claims": [], "peers": []})
            for item in _items(name, sizes):
                _take(found[-1], item, console)
                # After every figure: what a long run has found survives it.
                results = {"machine": facts.to_json(), "command": how.command, "quick": how.quick, "benchmarks": found}
                path.write_text(json.dumps(results, indent=1), encoding="utf-8")
            _print(found[-1], found, console)
    return path, all(one["passed"] is not False for part in found for one in (*part["lines"], *part["claims"]))


def _items(name: str, sizes: Sizes) -> Iterator[Item]:
    module = importlib.import_module(f"bench.{name}")
    with tempfile.TemporaryDirectory(prefix="trickle-bench-") as folder, trickle.connect(folder) as t:
        yield from module.run(t, sizes)


def _take(part: dict[str, Any], item: Item, console: Console) -> None:
    match item:
        case Note():
            console.print(item.text, style="dim", highlight=False)
        case Line():
            part["lines"].append(item.to_json())
        case Beside():
            part["rows"].append(item.to_json())
        case Claim():
            part["claims"].append(item.to_json())
        case Peer():
            part["peers"].append(item.to_json())
        case _:
            assert_never(item)


def _print(part: dict[str, Any], found: Sequence[dict[str, Any]], console: Console) -> None:
    for table in terminal(part, peers_of(found)):
        console.print(table)
    for verdict in verdicts(part):
        style = {"PASS": "bold green", "FAIL": "bold red"}.get(verdict[:4], "")
        console.print(verdict, style=style, highlight=False)
