"""Facts about the machine: a figure without them says nothing."""

from __future__ import annotations

import os
import platform
import subprocess
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import trickle
from trickle.engine.java import require_java


@dataclass(frozen=True)
class Machine:
    """Where and when figures were taken."""

    date: str
    commit: str | None
    cores: int
    cpu: str
    memory_gib: float
    load_average: float
    """Over the last minute, before the first benchmark: above the number of cores, others were at work too."""
    system: str
    java: str
    python: str
    trickle: str
    pyspark: str
    deltalake: str
    duckdb: str

    def to_json(self) -> dict[str, object]:
        """Plain values."""
        return asdict(self)


def machine() -> Machine:
    """The machine that this process runs on."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    java = require_java()
    return Machine(
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        commit=_commit(),
        cores=len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
        cpu=_cpu(),
        memory_gib=round(memory / 2**30, 1),
        load_average=round(os.getloadavg()[0], 1),
        system=f"{platform.system()} {platform.release()}",
        java=f"{java.major} ({java.program})",
        python=platform.python_version(),
        trickle=trickle.__version__,
        pyspark=version("pyspark"),
        deltalake=version("deltalake"),
        duckdb=version("duckdb"),
    )


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _commit() -> str | None:
    """The checkout's commit, marked when files differ from it."""
    root = Path(__file__).resolve().parent.parent
    try:
        ran = subprocess.run(
            ["git", "describe", "--always", "--dirty", "--exclude=*"],
            cwd=root, capture_output=True, text=True, timeout=10, check=True,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return None
    return ran.stdout.strip()
