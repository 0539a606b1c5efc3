"""A large table aggregated into many groups, of which some change: 70 % of the changed rows are new, 15 % updated and
15 % deleted. The same aggregate is kept in full, by changes, and as AUTO decides. Files touched are those of the
stream table that hold a group that changes; no others need to be rewritten. Figures of several modes stand in the
order FULL / DIFFERENTIAL / AUTO; the first round warms Spark up, and which mode comes first alternates.
"""

from __future__ import annotations

from collections.abc import Iterator

from pyspark.sql import functions as F

from bench.beside import AUTO, DIFFERENTIAL, MODES, Beside, Refreshed, in_turn, refreshed
from bench.data import SUMMARY, Changing, fill
from bench.figures import Claim, Line, Note, timed
from bench.sizes import Sizes
from trickle import Trickle
from trickle.algebra.weights import FILE
from trickle.lake.location import Location
from trickle.lake.log import read_commits
from trickle.lake.scan import scan
from trickle.lake.snapshot import open_snapshot

FASTER = 3.0
JOBS = 3


def run(t: Trickle, sizes: Sizes) -> Iterator[Line | Beside | Claim | Note]:
    """Load, make the three stream tables, change some rows, refresh all."""
    took, _ = timed(fill, t, "grouped", sizes.big_rows, sizes.big_groups)
    yield Line("load the table", (took,), {"rows": sizes.big_rows})
    for mode in MODES:
        took, _ = timed(t.create_stream_table, _name(mode), SUMMARY.format(table="grouped"), refresh_mode=mode)
        yield Line(f"create and fill, {mode}", (took,), {"groups": sizes.big_groups})
    changing = Changing("grouped", sizes.big_rows, sizes.big_groups)
    runs: dict[str, list[Refreshed]] = {mode: [] for mode in MODES}
    for number in range(1 - sizes.warm, sizes.repeat + 1):
        ids = changing.apply(t, sizes.changed_rows)
        touched = _touched(t, _name(DIFFERENTIAL), {i % sizes.big_groups for i in ids})
        for mode in in_turn(number):
            run_ = refreshed(t, _name(mode))
            if number > 0:
                runs[mode].append(run_)
            yield Note(f"round {number}, {mode}: {run_.error or run_.action}, {run_.ms or 0:,.0f} ms")
    facts = {"changed_rows": sizes.changed_rows, "files_touched": touched}
    row = Beside("", f"{sizes.big_rows:,} rows, {sizes.big_groups:,} groups", runs, facts)
    yield row
    yield Claim("FULL / DIFFERENTIAL", row.ratio(DIFFERENTIAL), at_least=FASTER)
    yield Claim("FULL / AUTO", row.ratio(AUTO))
    yield Claim("Spark jobs of DIFFERENTIAL", runs[DIFFERENTIAL][-1].jobs, at_most=JOBS)
    rewritten = _rewritten(t, _name(DIFFERENTIAL))
    yield Claim("files that DIFFERENTIAL rewrote, of those touched", rewritten, at_most=touched)


def _name(mode: str) -> str:
    return f"grouped_{mode.lower()}"


def _place(t: Trickle, name: str) -> Location:
    return Location.of(next(row.location or "" for row in t.status() if row.name == name))


def _touched(t: Trickle, name: str, groups: set[int]) -> int:
    """How many files of the stream table hold a group that changes."""
    held = scan(t.warehouse.engine, open_snapshot(_place(t, name)), columns=["grp"], located=True)
    return held.where(F.col("grp").isin(sorted(groups))).select(FILE).distinct().count()


def _rewritten(t: Trickle, name: str) -> int:
    """How many files the newest refresh took out."""
    place = _place(t, name)
    version = open_snapshot(place).version
    return len(read_commits(place, version - 1, version)[0].removes)
