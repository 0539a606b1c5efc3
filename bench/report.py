"""Writes docs/benchmarks.md from the JSON of a run."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

from bench.show import markdown, peers_of, verdicts

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "benchmarks.md"
RESULTS = ROOT / "build" / "bench"

_HEAD = """\
# Benchmarks

<!-- Made by `python -m bench report` from the JSON of a run; never by hand. -->

`make bench` runs these on your machine (`python -m bench --only idle` for one of them) and writes the figures as JSON
to `build/bench/`; `python -m bench report` makes this page from the newest of them. Times are wall-clock times of calls
to the Python API on a warm Spark session, over Delta tables on the local disk. FULL / DIFFERENTIAL says how many times
faster a refresh by changes is. `python -m bench --only tpch,peers --scale 10 --changes 0.0001,0.001,0.01,0.1` chooses
sizes; `python -m bench report a.json b.json` makes one page of several runs.
"""

_LABELS = {"memory_gib": "memory, GiB", "load_average": "load average at the start"}


def newest() -> Path | None:
    """The newest results."""
    return max(RESULTS.glob("*.json"), default=None, key=lambda path: path.name)


def page(*runs: dict[str, Any]) -> str:
    """The page as Markdown, from the results of one or several runs."""
    parts = [_HEAD]
    peers = peers_of(part for results in runs for part in results["benchmarks"])
    for results in runs:
        parts += [f"## The machine{_when(results) if len(runs) > 1 else ''}\n", _machine(results["machine"]), ""]
        if "command" in results:
            parts += [f"The command: `{results['command']}`\n"]
        for part in results["benchmarks"]:
            parts += [f"## {part['title']}\n", _about(part["name"]) + "\n", markdown(part, peers)]
            parts += [f"{verdict}\n" for verdict in verdicts(part)]
    return "\n".join(parts).rstrip() + "\n"


def _when(results: dict[str, Any]) -> str:
    return f", {results['machine']['date']}"


def _about(name: str) -> str:
    """The head of a benchmark's module."""
    return " ".join((importlib.import_module(f"bench.{name}").__doc__ or "").split())


def _machine(facts: dict[str, Any]) -> str:
    rows = ["| fact | value |", "|---|---|"]
    rows += [f"| {_LABELS.get(name, name)} | {value} |" for name, value in facts.items() if value is not None]
    busy = facts["load_average"] > facts["cores"]
    note = "\n\nOther programs were using the machine during this run: the figures are too high." if busy else ""
    return "\n".join(rows) + note


def write(*sources: Path) -> Path:
    """Make the page from some results, the newest by default."""
    chosen = sources or tuple(filter(None, [newest()]))
    if not chosen:
        raise SystemExit(f"no results in {RESULTS}; run: python -m bench")
    runs = [json.loads(source.read_text(encoding="utf-8")) for source in chosen]
    for source, results in zip(chosen, runs, strict=True):
        if results["quick"]:
            raise SystemExit(f"{source} is of a quick run, whose figures mean nothing")
    PAGE.write_text(page(*runs), encoding="utf-8")
    return PAGE
