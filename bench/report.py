"""Writes docs/benchmarks.md from the JSON of runs: they take the place of older runs of the same tables, and
what no new run measured stays, with its own machine, commit and command.
"""

from __future__ import annotations

import importlib
import json
import re
from pathlib import Path
from typing import Any

from bench.show import Peers, markdown, peers_of, verdicts

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "benchmarks.md"
RESULTS = ROOT / "build" / "bench"

_HEAD = """\
# Benchmarks

<!-- Made by `python -m bench report` from the JSON of a run; never by hand. -->

`make bench` runs these on your machine (`python -m bench --only idle` for one of them) and writes the figures as JSON
to `build/bench/`. `python -m bench report` puts the newest of them into this page, `python -m bench report a.json
b.json` those of some runs, in the place of older runs of the same tables. Times are wall-clock times of calls to the
Python API on a warm Spark session, over Delta tables on the local disk. FULL / DIFFERENTIAL says how many times faster
a refresh by changes is. `python -m bench --only tpch,peers --scale 10 --changes 0.0001,0.001,0.01,0.1` chooses sizes.
"""
_RUN = "## The machine"

_LABELS = {"memory_gib": "memory, GiB", "load_average": "load average at the start"}


def newest() -> Path | None:
    """The newest results."""
    return max(RESULTS.glob("*.json"), default=None, key=lambda path: path.name)


def page(*runs: dict[str, Any], before: str = "") -> str:
    """The page as Markdown: the results of some runs, then what they do not replace of the page ``before``."""
    peers = peers_of(part for results in runs for part in results["benchmarks"])
    new = [_run(results, peers) for results in runs]
    tables = {heading for run in new for heading in _headings(run)}
    _, *old = re.split(rf"^(?={_RUN})", before, flags=re.MULTILINE)
    kept = [rest for run in old if (rest := _without(run, tables))]
    return "\n".join([_HEAD, *(run.rstrip() + "\n" for run in (*new, *kept))]).rstrip() + "\n"


def _run(results: dict[str, Any], peers: Peers) -> str:
    parts = [f"{_RUN}, {results['machine']['date']}\n", _machine(results["machine"]), ""]
    if "command" in results:
        parts += [f"The command: `{results['command']}`\n"]
    for part in results["benchmarks"]:
        parts += [f"## {part['title']}\n", _about(part["name"]) + "\n", markdown(part, peers)]
        parts += [f"{verdict}\n" for verdict in verdicts(part)]
    return "\n".join(parts)


def _without(run: str, tables: set[str]) -> str:
    """What is left of a run's part of the page when others have some of its tables; nothing if they have all."""
    head, *benchmarks = re.split(r"^(?=## )(?!## The machine)", run, flags=re.MULTILINE)
    left = [one for one in benchmarks if not _headings(one) <= tables]
    return "".join([head, *left]) if left else ""


def _headings(run: str) -> set[str]:
    """What a run's part of the page has tables of; benchmarks with several tables name each of them."""
    return {line for line in run.splitlines() if line.startswith("##") and not line.startswith(_RUN)}


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
    before = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
    PAGE.write_text(page(*runs, before=before), encoding="utf-8")
    return PAGE
