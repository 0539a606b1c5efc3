"""The command: ``python -m bench [--quick] [--only change,idle] [options]``, ``python -m bench report [files]``."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from rich.console import Console

from bench import report, runner
from bench.sizes import FULL, LARGE_ROWS, QUICK, Sizes
from bench.tpch_tables import QUERIES


def main(arguments: list[str] | None = None) -> int:
    """Run what the arguments say; 1 when a limit was not kept."""
    given = sys.argv[1:] if arguments is None else arguments
    if given[:1] == ["report"]:
        parser = argparse.ArgumentParser(prog="python -m bench report", description=report.__doc__)
        parser.add_argument("files", nargs="*", type=Path, help="results of runs; the newest by default")
        print(f"wrote {report.write(*parser.parse_args(given[1:]).files)}")
        return 0
    options = _parser().parse_args(given)
    # Wide tables in a file or a pipe, where lines have no end.
    console = Console() if sys.stdout.isatty() else Console(width=220)
    how = runner.How(options.quick, shlex.join(["python", "-m", "bench", *given]), options.out)
    path, kept = runner.run(options.only, sizes_of(options), how, console)
    print(f"wrote {path}")
    return 0 if kept else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench", description=runner.__doc__)
    parser.add_argument("--quick", action="store_true", help="tiny sizes: shows that it runs, the figures mean nothing")
    parser.add_argument(
        "--only",
        type=_listed(lambda text: _one_of(text, "benchmark", runner.BENCHMARKS)),
        default=list(runner.BENCHMARKS),
        help=", ".join(runner.BENCHMARKS),
    )
    parser.add_argument("--out", type=Path, default=report.RESULTS, help="folder for the JSON (build/bench)")
    parser.add_argument("--repeat", type=int, help="timed rounds of groups, growth, peers and tpch (1)")
    tpch = parser.add_argument_group("tpch and peers")
    tpch.add_argument("--scale", type=float, help="scale factor (1)")
    tpch.add_argument("--queries", type=_listed(lambda text: _one_of(text, "query", QUERIES)), help="q01,q05 (all)")
    tpch.add_argument(
        "--changes", type=_listed(float), dest="shares", help="shares of orders that change: 0.0001,0.001 (0.001)"
    )
    tpch.add_argument("--dimensions", action="store_true", default=None, help="customer, part and supplier change too")
    tpch.add_argument("--full-rounds", type=int, help="timed rounds of each size of change with full refreshes (all)")
    tpch.add_argument("--warm", type=int, help="rounds of each size before those that are timed (1)")
    tpch.add_argument("--data", type=Path, help=f"where generated tables are kept ({FULL.data})")
    large = parser.add_argument_group("groups and growth")
    large.add_argument("--rows", type=int, dest="big_rows", help="rows of groups (20000000)")
    large.add_argument("--groups", type=int, dest="big_groups", help="groups of groups (100000)")
    large.add_argument("--growth-rows", type=_listed(int), help="sizes of growth (1000000,10000000)")
    large.add_argument("--large", action="store_true", help=f"growth up to {LARGE_ROWS:,} rows")
    return parser


def sizes_of(options: argparse.Namespace) -> Sizes:
    """The sizes that the options ask for."""
    sizes = QUICK if options.quick else FULL
    given: dict[str, Any] = {field.name: getattr(options, field.name, None) for field in fields(Sizes)}
    chosen: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in given.items() if value is not None
    }
    sizes = replace(sizes, **chosen)
    return replace(sizes, growth_rows=(*sizes.growth_rows, LARGE_ROWS)) if options.large else sizes


def _listed(one: Callable[[str], Any]) -> Callable[[str], list[Any]]:
    def parse(text: str) -> list[Any]:
        return [one(part.strip()) for part in text.split(",") if part.strip()]

    return parse


def _one_of(name: str, what: str, known: dict[str, str]) -> str:
    if name not in known:
        raise argparse.ArgumentTypeError(f"no {what} {name!r}: choose from {', '.join(known)}")
    return name


if __name__ == "__main__":
    sys.exit(main())
