"""Writes docs/benchmarks.md from the JSON of a run."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

from bench.show import markdown, verdicts

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "benchmarks.md"
RESULTS = ROOT / "build" / "bench"

_HEAD = """\
# Benchmarks

<!-- Made by `python -m bench report` from the JSON of a run; never by hand. -->

`make bench` runs these on your machine (`python -m bench --only idle` for one of them) and writes the figures as JSON
to `build/bench/`; `python -m bench report` makes this page from the newest of them. Times are wall-clock times of calls
to the Python API on a warm Spark session, over Delta tables on the local disk. In this version every refresh that has
something to do is a full one.
"""

_LABELS = {"memory_gib": "memory, GiB", "load_average": "load average at the start"}


def newest() -> Path | None:
    """The newest results."""
    return max(RESULTS.glob("*.json"), default=None, key=lambda path: path.name)


def page(results: dict[str, Any]) -> str:
    """The page as Markdown."""
    parts = [_HEAD, "## The machine\n", _machine(results["machine"]), ""]
    for benchmark in results["benchmarks"]:
        parts += [f"## {benchmark['title']}\n", _about(benchmark["name"]) + "\n", markdown(benchmark["lines"]), ""]
        parts += [f"{verdict}\n" for verdict in verdicts(benchmark["lines"])]
    return "\n".join(parts).rstrip() + "\n"


def _about(name: str) -> str:
    """The head of a benchmark's module."""
    return " ".join((importlib.import_module(f"bench.{name}").__doc__ or "").split())


def _machine(facts: dict[str, Any]) -> str:
    rows = ["| fact | value |", "|---|---|"]
    rows += [f"| {_LABELS.get(name, name)} | {value} |" for name, value in facts.items() if value is not None]
    busy = facts["load_average"] > facts["cores"]
    note = "\n\nOther programs were using the machine during this run: the figures are too high." if busy else ""
    return "\n".join(rows) + note


def write(source: Path | None = None) -> Path:
    """Make the page from some results, the newest by default."""
    chosen = source or newest()
    if chosen is None:
        raise SystemExit(f"no results in {RESULTS}; run: python -m bench")
    results = json.loads(chosen.read_text(encoding="utf-8"))
    if results["quick"]:
        raise SystemExit(f"{chosen} is of a quick run, whose figures mean nothing")
    PAGE.write_text(page(results), encoding="utf-8")
    return PAGE
