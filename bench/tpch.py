"""The 22 queries of TPC-H as stream tables over the same lake tables, three for each query: FULL (every refresh
overwrites the table with the query's result), DIFFERENTIAL (by changes) and AUTO. After each change set every one of
them is refreshed. Of the orders that change, with all their lines, 70 % are new (copies under keys above the largest),
15 % are updated and 15 % deleted; these are a contiguous range of recent keys plus some random ones (one in 20, at
most 3). Partsupp changes by the same share, in the same refresh; with ``--dimensions`` also three random rows of
customer, part and supplier each, for which the big tables have to be searched by other keys. Files and rows read are
what Spark tells about its scans, and what the driver looked through; files rewritten are those that the refresh took
out of the table and out of its inner tables. Before each size of change come rounds that are not counted (``--warm``),
as plans are compiled then, and AUTO learns what both ways take. FULL takes part in the very first of them only, and
with ``--full-rounds`` in so many timed rounds of each size: it does the same whatever changed. The order of the modes
changes from query to query, and garbage is collected before each refresh, outside of its time. Figures of several modes
stand in the order FULL / DIFFERENTIAL / AUTO.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence

from bench.beside import AUTO, DIFFERENTIAL, FULL, MODES, Beside, Refreshed, failure, in_turn, refreshed
from bench.figures import Claim, Line, Note, geometric_mean, timed
from bench.show import milliseconds
from bench.sizes import Sizes
from bench.tpch_changes import Changes, apply
from bench.tpch_tables import QUERIES, Data, generated, load
from trickle import Trickle
from trickle.errors import TrickleError

PROMISED = {(1.0, 0.001): (18, 3.0), (10.0, 0.001): (22, 10.0)}
"""By scale and share: in how many queries DIFFERENTIAL is faster than FULL, and how many times in the mean."""
AUTO_SLOWER = 1.15
_BY_CHANGES = (DIFFERENTIAL, AUTO)
"""The modes that are warmed up for each size of change. A full refresh does the same whatever changed."""


def run(t: Trickle, sizes: Sizes) -> Iterator[Line | Beside | Claim | Note]:
    """Load, make the stream tables, then one table of figures for each size of change."""
    data = generated(sizes.scale, sizes.data)
    took, rows = timed(load, t, data)
    yield Line(f"load SF {data.scale:g} into lake tables", (took,), {"rows": rows})
    queries = sizes.queries or tuple(QUERIES)
    broken: dict[str, str] = {}
    yield from _make(t, queries, broken)
    changes = Changes(data.rows("orders"), data.rows("part"))
    for share in sizes.shares:
        yield from _warm(t, data, queries, changes, share, broken, sizes)
        yield from _measure(t, data, queries, changes, share, broken, sizes)
    # The last rounds may have left full refreshes out.
    for query in queries:
        _one(t, query, FULL, broken)
    differing = [query for query in queries if not _agree(t, query, broken)]
    yield Claim("queries whose results differ between FULL and DIFFERENTIAL", len(differing), at_most=0)
    yield Note(f"results differ: {', '.join(differing) or 'none'}")


def _name(query: str, mode: str) -> str:
    return f"{query}_{mode.lower()}"


def _make(t: Trickle, queries: Sequence[str], broken: dict[str, str]) -> Iterator[Line | Note]:
    spent: dict[str, list[float]] = {mode: [] for mode in MODES}
    for query in queries:
        words = []
        for mode in MODES:
            name = _name(query, mode)
            try:
                took, _ = timed(t.create_stream_table, name, QUERIES[query], refresh_mode=mode)
                spent[mode].append(took)
                words.append(f"{mode} {milliseconds(took)}")
            except TrickleError as error:
                broken[name] = failure(error)
                words.append(f"{mode} {broken[name]}")
        yield Note(f"made {query}: {', '.join(words)}")
    for mode in MODES:
        if spent[mode]:
            yield Line(f"create and fill, {mode}", tuple(spent[mode]), {"queries": len(spent[mode])})


def _warm(
    t: Trickle,
    data: Data,
    queries: Sequence[str],
    changes: Changes,
    share: float,
    broken: dict[str, str],
    sizes: Sizes,
) -> Iterator[Note]:
    is_first = share == sizes.shares[0]
    for round_ in range(sizes.warm):
        modes = MODES if round_ == 0 and is_first else _BY_CHANGES
        took, _ = timed(apply, t, data, changes.next(share), dimensions=sizes.dimensions)
        yield Note(f"{_percent(share)}, warm-up: changes applied in {milliseconds(took)}")
        for query in queries:
            runs = {mode: [_one(t, query, mode, broken)] for mode in modes}
            yield Note(f"warm-up, {_said(query, runs)}")


def _measure(
    t: Trickle,
    data: Data,
    queries: Sequence[str],
    changes: Changes,
    share: float,
    broken: dict[str, str],
    sizes: Sizes,
) -> Iterator[Beside | Claim | Note]:
    runs: dict[str, dict[str, list[Refreshed]]] = {query: {mode: [] for mode in MODES} for query in queries}
    for round_ in range(sizes.repeat):
        change = changes.next(share)
        took, _ = timed(apply, t, data, change, dimensions=sizes.dimensions)
        yield Note(f"{_percent(share)}: {change.orders:,} orders and their lines changed, in {milliseconds(took)}")
        left_out = {FULL} if sizes.full_rounds is not None and round_ >= sizes.full_rounds else set()
        for turn, query in enumerate(queries, start=round_):
            for mode in in_turn(turn):
                if mode not in left_out:
                    runs[query][mode].append(_one(t, query, mode, broken))
            yield Note(_said(query, runs[query]))
    also = ", and some dimensions" if sizes.dimensions else ""
    group = f"SF {data.scale:g}, {_percent(share)} of orders, lineitem and partsupp changed{also}"
    found = [Beside(group, query, runs[query], {"scale": data.scale, "share": share}) for query in queries]
    yield from found
    yield from claims(found, data.scale, share)


def _one(t: Trickle, query: str, mode: str, broken: dict[str, str]) -> Refreshed:
    name = _name(query, mode)
    return Refreshed(None, error=broken[name]) if name in broken else refreshed(t, name)


def _said(query: str, runs: dict[str, list[Refreshed]]) -> str:
    last = {mode: found[-1] for mode, found in runs.items()}
    words = [
        f"{mode} {run.error if run.ms is None else milliseconds(run.ms)}" + (f" ({run.action})" if mode == AUTO else "")
        for mode, run in last.items()
    ]
    return f"{query}: " + ", ".join(words)


def claims(found: Sequence[Beside], scale: float, share: float) -> Iterator[Claim]:
    """What the rows of one table say together; a query that failed counts as slower."""
    where = f"SF {scale:g}, {_percent(share)}"
    all_there = len(found) == len(QUERIES)
    faster, mean = PROMISED.get((scale, share), (None, None)) if all_there else (None, None)
    ratios = [ratio for row in found if (ratio := row.ratio(DIFFERENTIAL)) is not None]
    yield Claim(
        f"{where}: queries of {len(found)} where DIFFERENTIAL is faster than FULL",
        sum(ratio > 1 for ratio in ratios),
        at_least=faster,
    )
    yield Claim(f"{where}: queries that failed", len(found) - len(ratios), at_most=0)
    yield Claim(f"{where}: FULL / DIFFERENTIAL, geometric mean", geometric_mean(ratios), at_least=mean)
    automatic = [ratio for row in found if (ratio := row.ratio(AUTO)) is not None]
    yield Claim(f"{where}: FULL / AUTO, geometric mean", geometric_mean(automatic))
    limit = AUTO_SLOWER if scale >= 1 else None
    for words, of_row in _RATIOS_OF_AUTO.items():
        behind = {row.what: ratio for row in found if (ratio := of_row(row)) is not None}
        if behind:
            worst = max(behind, key=behind.__getitem__)
            yield Claim(f"{where}: {words}, worst ({worst})", behind[worst], at_most=limit)
            yield Claim(f"{where}: {words}, geometric mean", geometric_mean(behind.values()))


def _choice_behind(row: Beside) -> float | None:
    """How many times as long what AUTO chose takes as the better of the two, by the refreshes of the others.

    Where both run the same plan, AUTO's own times beside theirs tell how much samples spread, and not what was chosen.
    The median of its choices: now and then AUTO tries the other way, at growing distances, of which a short run has too
    many.
    """
    times = {mode: ms for mode in (FULL, DIFFERENTIAL) if (ms := row.ms(mode)) is not None}
    chosen = [times[run.action] for run in row.runs.get(AUTO, ()) if run.action in times]
    return statistics.median(chosen) / min(times.values()) if chosen else None


def _behind(row: Beside) -> float | None:
    """How many times as long AUTO took as the better of the others."""
    others = [ms for mode in (FULL, DIFFERENTIAL) if (ms := row.ms(mode)) is not None]
    mine = row.ms(AUTO)
    return mine / min(others) if others and mine is not None else None


def _quickest_behind(row: Beside) -> float | None:
    """The same by the quickest refreshes: whatever else happens on a machine can only make one slower. What AUTO chose
    is to be seen beside it: of a wrong choice among right ones it tells nothing.
    """
    others = [ms for mode in (FULL, DIFFERENTIAL) if (ms := row.quickest(mode)) is not None]
    mine = row.quickest(AUTO)
    return mine / min(others) if others and mine is not None else None


_RATIOS_OF_AUTO: Mapping[str, Callable[[Beside], float | None]] = {
    "AUTO / the better of the two": _behind,
    "AUTO / the better of the two, by the quickest refreshes": _quickest_behind,
    "what AUTO chose / the better of the two": _choice_behind,
}


def _agree(t: Trickle, query: str, broken: dict[str, str]) -> bool:
    """Whether both tables hold the same rows; all columns of the 22 queries are of exact types."""
    names = [_name(query, mode) for mode in (FULL, DIFFERENTIAL)]
    if any(name in broken for name in names):
        return False
    full, kept = (t.table(name) for name in names)
    return full.exceptAll(kept).isEmpty() and kept.exceptAll(full).isEmpty()


def _percent(share: float) -> str:
    return f"{share * 100:g} %"
