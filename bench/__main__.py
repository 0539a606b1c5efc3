"""The command: ``python -m bench [--quick] [--only change,idle] [--out folder]``, ``python -m bench report [file]``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from rich.console import Console

from bench import report, runner


def main(arguments: list[str] | None = None) -> int:
    """Run what the arguments say; 1 when a limit was not kept."""
    given = sys.argv[1:] if arguments is None else arguments
    if given[:1] == ["report"]:
        parser = argparse.ArgumentParser(prog="python -m bench report", description=report.__doc__)
        parser.add_argument("file", nargs="?", type=Path, help="results of a run; the newest by default")
        print(f"wrote {report.write(parser.parse_args(given[1:]).file)}")
        return 0
    parser = argparse.ArgumentParser(prog="python -m bench", description=runner.__doc__)
    parser.add_argument("--quick", action="store_true", help="tiny sizes: shows that it runs, the figures mean nothing")
    parser.add_argument("--only", type=_names, default=list(runner.BENCHMARKS), help=", ".join(runner.BENCHMARKS))
    parser.add_argument("--out", type=Path, default=report.RESULTS, help="folder for the JSON (build/bench)")
    options = parser.parse_args(given)
    path, kept = runner.run(options.only, quick=options.quick, out=options.out, console=Console())
    print(f"wrote {path}")
    return 0 if kept else 1


def _names(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    for name in names:
        if name not in runner.BENCHMARKS:
            raise argparse.ArgumentTypeError(f"no benchmark {name!r}: choose from {', '.join(runner.BENCHMARKS)}")
    return names


if __name__ == "__main__":
    sys.exit(main())
