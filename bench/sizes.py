"""How large the benchmarks are."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Sizes:
    """Rows, files and repetitions."""

    table_rows: int = 1_000_000
    table_groups: int = 1_000
    changed_rows: int = 1_000
    changes: int = 10
    big_rows: int = 20_000_000
    big_groups: int = 100_000
    big_refreshes: int = 3
    log_versions: int = 1_000
    idle_refreshes: int = 200
    commits: int = 100
    dml_rounds: int = 5
    dml_files: int = 64
    scan_files: int = 256
    scan_rounds: int = 5
    wake_rows: int = 100_000
    wakes: int = 15
    resting_tables: int = 1_000
    resting_sources: int = 100
    ingest_rows: int = 1_000_000
    ingest_changed: int = 200_000
    ingest_rounds: int = 5
    capture_rows: int = 200_000
    capture_rounds: int = 7
    capture_seconds: int = 2
    repeat: int = 1
    """Timed rounds where ways are measured beside each other."""
    warm: int = 1
    """Rounds that come first, before each size of change, and are not timed."""
    scale: float = 1.0
    """Of TPC-H."""
    queries: tuple[str, ...] = ()
    """Of TPC-H; all when empty."""
    shares: tuple[float, ...] = (0.001,)
    """Of orders, lineitem and partsupp that change."""
    dimensions: bool = False
    """Whether rows of customer, part and supplier change too."""
    full_rounds: int | None = None
    """In how many of the rounds of each size of change full refreshes are timed; in all by default."""
    data: Path = Path(tempfile.gettempdir(), "trickle-tpch")
    """Where generated tables are kept between runs."""
    growth_rows: tuple[int, ...] = (1_000_000, 10_000_000)
    growth_groups: int = 10_000
    postgres_scale: float = 1.0
    """Up to which PostgreSQL is asked."""


LARGE_ROWS = 100_000_000
FULL = Sizes()
QUICK = Sizes(
    table_rows=2_000,
    table_groups=10,
    changed_rows=10,
    changes=1,
    big_rows=5_000,
    big_groups=50,
    big_refreshes=1,
    log_versions=20,
    idle_refreshes=20,
    commits=5,
    dml_rounds=1,
    dml_files=4,
    scan_files=40,
    scan_rounds=1,
    wake_rows=100,
    wakes=1,
    resting_tables=20,
    resting_sources=2,
    ingest_rows=2_000,
    ingest_changed=200,
    ingest_rounds=1,
    capture_rows=100,
    capture_rounds=1,
    capture_seconds=1,
    warm=0,
    scale=0.01,
    queries=("q12",),
    shares=(0.01,),
    growth_rows=(2_000, 5_000),
    growth_groups=20,
)
"""Small enough for a test; the figures mean nothing."""
