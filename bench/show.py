"""Figures as tables, on the terminal and in Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from rich.table import Table

HEADINGS = ("what", "runs", "median", "95 %", "facts")
_COUNTS = {
    "jobs": "Spark jobs",
    "files_read": "files read",
    "files_rewritten": "files rewritten",
    "rows_read": "rows read",
}
_PEERS = {"duckdb_ms": "DuckDB", "postgres_ms": "PostgreSQL"}

Cells = tuple[str, ...]
Peers = Mapping[tuple[float, str], Mapping[str, Any]]


def milliseconds(value: float) -> str:
    """A duration, with as many digits as mean something.

    >>> milliseconds(3.14159), milliseconds(1234.5), milliseconds(98765.0)
    ('3.1 ms', '1.23 s', '98.8 s')
    """
    if value < 1000:
        return f"{value:.1f} ms" if value < 100 else f"{value:.0f} ms"
    return f"{value / 1000:.2f} s" if value < 10_000 else f"{value / 1000:.1f} s"


def cells(line: Mapping[str, Any]) -> Cells:
    """A line of the results as text."""
    facts = ", ".join(f"{name.replace('_', ' ')} {_fact(value)}" for name, value in line["facts"].items())
    return line["what"], str(line["runs"]), milliseconds(line["median_ms"]), milliseconds(line["p95_ms"]), facts


def tables(part: Mapping[str, Any], peers: Peers) -> Iterator[tuple[str, list[Cells]]]:
    """The tables of one benchmark: a title, perhaps empty, and rows of text of which the first are the headings."""
    if part["lines"]:
        yield "", [HEADINGS, *(cells(line) for line in part["lines"])]
    for group, rows in groupby(part.get("rows", ()), key=lambda row: str(row["group"])):
        yield group, _beside(list(rows), peers)
    if part.get("peers"):
        rows_ = [(p["what"], *(_duration(p[name]) for name in _PEERS)) for p in part["peers"]]
        yield "", [("query", *_PEERS.values()), *rows_]


def peers_of(benchmarks: Iterable[Mapping[str, Any]]) -> Peers:
    """How long others took, by scale and query."""
    return {(peer["scale"], peer["what"]): peer for part in benchmarks for peer in part.get("peers", ())}


def _beside(rows: Sequence[Mapping[str, Any]], peers: Peers) -> list[Cells]:
    modes = list(dict.fromkeys(mode for row in rows for mode in row["modes"]))
    known = [peers.get((row["facts"].get("scale", 0), row["what"])) for row in rows]
    asked = [name for name in _PEERS if any(peer and peer[name] is not None for peer in known)]
    ratio = ("FULL / DIFFERENTIAL",) if "FULL" in modes else ()
    headings = ("what", *modes, *ratio, "rows changed", *_COUNTS.values(), *(_PEERS[name] for name in asked))
    found = [headings]
    for row, peer in zip(rows, known, strict=True):
        times = (_time(mode, row["modes"].get(mode)) for mode in modes)
        ratios = (("" if row["ratio"] is None else f"{row['ratio']:.2f}"),) if ratio else ()
        counts = (" / ".join(_fact(row["modes"][mode][name]) for mode in row["modes"]) for name in _COUNTS)
        changed = _fact(row["modes"].get("DIFFERENTIAL", {}).get("changed_rows"))
        others = (_duration(peer[name] if peer else None) for name in asked)
        found.append((row["what"], *times, *ratios, changed, *counts, *others))
    return found


def _time(mode: str, run: Mapping[str, Any] | None) -> str:
    if run is None:
        return ""
    if run["ms"] is None:
        return f"failed: {run['error']}" if run["error"] else "failed"
    way = "" if run["action"] == mode else f" ({run['action']})"
    return milliseconds(run["ms"]) + way


def terminal(part: Mapping[str, Any], peers: Peers) -> Iterator[Table]:
    """The tables of one benchmark for a terminal."""
    for title, (headings, *rows) in tables(part, peers):
        table = Table(*headings, title=title or part["title"], title_justify="left")
        for row in rows:
            table.add_row(*row)
        yield table


def markdown(part: Mapping[str, Any], peers: Peers) -> str:
    """The tables of one benchmark for a page."""
    found = []
    for title, (headings, *rows) in tables(part, peers):
        lines = [headings, ("---",) * len(headings), *rows]
        text = "\n".join("| " + " | ".join(row) + " |" for row in lines)
        found.append(f"### {title}\n\n{text}\n" if title else f"{text}\n")
    return "\n".join(found)


def verdicts(part: Mapping[str, Any]) -> list[str]:
    """PASS or FAIL for everything that has a limit, and figures over whole tables without one."""
    lines = [
        f"{_verdict(line)}: {line['what']}, median {milliseconds(line['median_ms'])}, "
        f"limit {milliseconds(line['limit_ms'])}"
        for line in part["lines"]
        if line["limit_ms"] is not None
    ]
    return [*lines, *(_claim(claim) for claim in part.get("claims", ()))]


def _verdict(one: Mapping[str, Any]) -> str:
    return {True: "PASS", False: "FAIL", None: "UNKNOWN"}[one["passed"]]


def _claim(claim: Mapping[str, Any]) -> str:
    value = "unknown" if claim["value"] is None else f"{claim['value']:,.4g}"
    bounds = [f"{words} {claim[name]:g}" for name, words in (("at_least", "at least"), ("at_most", "at most"))
              if claim[name] is not None]  # fmt: skip
    if not bounds:
        return f"{claim['what']}: {value}"
    return f"{_verdict(claim)}: {claim['what']}: {value}, {' and '.join(bounds)}"


def _duration(value: float | None) -> str:
    return "" if value is None else milliseconds(value)


def _fact(value: object) -> str:
    if value is None:
        return "unknown"
    return f"{value:,}" if isinstance(value, int) else str(value)
