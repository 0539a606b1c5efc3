"""Ways to keep the same query, measured beside each other: in full, by changes, and as AUTO decides."""

from __future__ import annotations

import json
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from bench.figures import Fact, timed
from bench.meter import reading, tidy
from trickle import Trickle
from trickle.errors import TrickleError

FULL, DIFFERENTIAL, AUTO = MODES = ("FULL", "DIFFERENTIAL", "AUTO")
_ORDERS = (
    (FULL, DIFFERENTIAL, AUTO),
    (FULL, AUTO, DIFFERENTIAL),
    (AUTO, DIFFERENTIAL, FULL),
    (DIFFERENTIAL, FULL, AUTO),
    (DIFFERENTIAL, AUTO, FULL),
    (AUTO, FULL, DIFFERENTIAL),
)


@dataclass(frozen=True)
class Refreshed:
    """One refresh, or why there was none. None is a figure that is not known."""

    ms: float | None
    action: str | None = None
    code: str | None = None
    """Why the refresh went the way it did, where its history says."""
    jobs: int | None = None
    files_read: int | None = None
    files_added: int | None = None
    files_rewritten: int | None = None
    rows_read: int | None = None
    changed_rows: int | None = None
    """Rows of the sources that changed, as the refresh counted them."""
    rows_written: int | None = None
    error: str | None = None


@dataclass(frozen=True)
class Beside:
    """What was refreshed, and how that went in each mode, once or several times."""

    group: str
    """The heading of the table that this is a row of."""
    what: str
    runs: Mapping[str, Sequence[Refreshed]]
    facts: Mapping[str, Fact] = field(default_factory=dict)

    def ms(self, mode: str) -> float | None:
        """The median of a mode; None when a refresh failed."""
        times = [run.ms for run in self.runs.get(mode, ())]
        known = [ms for ms in times if ms is not None]
        return statistics.median(known) if known and len(known) == len(times) else None

    def quickest(self, mode: str) -> float | None:
        """The least of a mode; None when a refresh failed."""
        return None if self.ms(mode) is None else min(run.ms for run in self.runs[mode] if run.ms is not None)

    def ratio(self, mode: str, base: str = FULL) -> float | None:
        """How many times faster a mode is than another."""
        slow, fast = self.ms(base), self.ms(mode)
        return None if slow is None or fast is None else slow / fast

    def to_json(self) -> dict[str, Any]:
        """Plain values; the figures beside the times are those of the last run."""
        return {
            "group": self.group,
            "what": self.what,
            "facts": dict(self.facts),
            "ratio": _rounded(self.ratio(DIFFERENTIAL)),
            "modes": {mode: self._mode(mode, runs) for mode, runs in self.runs.items() if runs},
        }

    def _mode(self, mode: str, runs: Sequence[Refreshed]) -> dict[str, Any]:
        last = {name: value for name, value in asdict(runs[-1]).items() if name != "ms"}
        return {"ms": _rounded(self.ms(mode)), "samples_ms": [_rounded(run.ms) for run in runs], **last}


def refreshed(t: Trickle, name: str) -> Refreshed:
    """Refresh a stream table and find out what that took."""
    tidy(t.warehouse.engine)
    try:
        with reading(t.warehouse.engine) as reads:
            ms, result = timed(t.refresh_stream_table, name)
    except TrickleError as error:
        return Refreshed(None, error=failure(error))
    details = json.loads(t.refresh_history(name, limit=1)[0].details)
    return Refreshed(
        ms=ms,
        action=result.action,
        code=details.get("code"),
        jobs=result.spark_jobs,
        files_read=_sum(reads.files, details.get("files_looked_through", 0)),
        files_added=details.get("files_added", 0),
        files_rewritten=details.get("files_removed", 0),
        rows_read=_sum(reads.rows, details.get("rows_looked_through", 0)),
        changed_rows=details.get("changed_rows"),
        rows_written=result.rows_inserted + result.rows_deleted,
    )


def _sum(by_spark: int | None, by_driver: int) -> int | None:
    return None if by_spark is None else by_spark + by_driver


def in_turn(turn: int) -> Sequence[str]:
    """The modes in one of six orders. From turn to turn each mode comes after each other one equally often.

    Who comes first finds files cold and plans of the same shape not compiled, and who comes after FULL finds the JVM
    tidying up.

    >>> in_turn(4)
    ('DIFFERENTIAL', 'AUTO', 'FULL')
    """
    return _ORDERS[turn % len(_ORDERS)]


def failure(error: TrickleError) -> str:
    """What went wrong, in one line: the other figures of a long run are worth having."""
    return f"{type(error).__name__}: {error.message}"


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)
