"""Rows that change in PostgreSQL become visible in the lake: from the change buffers of triggers, and from the WAL.

A table of five columns and a key is attached. Then so many of its rows change, spread over the whole table, and one
ingest takes them in: read, netted, and the files that hold them written anew. What is timed is the ingest. Of a mix
70 % of the rows are new, 15 % updated and 15 % deleted. An updated row counts once, though it is two rows to the lake.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import psycopg

from bench.figures import Claim, Line, Note, timed
from bench.postgres import running
from bench.sizes import Sizes
from trickle import Trickle

ROWS_PER_SECOND = 50_000

TABLE = "CREATE TABLE {} (id bigint PRIMARY KEY, grp int, amount numeric(12,2), note text, at timestamptz)"
ROWS = (
    "INSERT INTO {} SELECT g, g % 1000, g % 10000 / 100.0, 'order ' || g,"
    " '2026-01-01'::timestamptz + g * interval '1 s' FROM generate_series({}, {}) g"
)


@dataclass
class Source:
    """A table, its ids, and what may change next."""

    connection: psycopg.Connection[tuple[object, ...]]
    table: str
    next: int
    round: int = 0

    def do(self, statement: str, *given: object) -> int:
        """Run a statement; how many rows it touched."""
        return self.connection.execute(statement.format(self.table, *given).encode()).rowcount

    def insert(self, rows: int) -> int:
        """New rows, with ids above all others."""
        first, self.next = self.next, self.next + rows
        return self.do(ROWS, first, self.next - 1)

    def update(self, rows: int) -> int:
        """Every so-many-th of the rows that there are."""
        every = max(1, self.next // rows)
        return self.do("UPDATE {} SET amount = amount + 1 WHERE id % {} = {}", every, self._turn() % every)

    def delete(self, rows: int) -> int:
        """The same."""
        every = max(1, self.next // rows)
        return self.do("DELETE FROM {} WHERE id % {} = {}", every, self._turn() % every)

    def mix(self, rows: int) -> int:
        """All of them."""
        touched = max(1, rows * 15 // 100)
        return self.insert(rows - 2 * touched) + self.update(touched) + self.delete(touched)

    def _turn(self) -> int:
        self.round += 1
        return self.round


def run(t: Trickle, sizes: Sizes) -> Iterator[Line | Claim | Note]:
    """Rows per second of one ingest after the other, for each capture and kind of change."""
    with running(wal_level="logical") as url, psycopg.connect(url, autocommit=True) as connection:
        for mode in ("trigger", "wal"):
            source = Source(connection, f"by_{mode}", 1)
            source.do(TABLE)
            source.insert(sizes.ingest_rows)
            source.do("VACUUM ANALYZE {}")
            name = f"from_{mode}"
            loading, _ = timed(t.attach_postgres, name, url, tables=[source.table], cdc_mode=mode)
            facts = {"rows": sizes.ingest_rows, "rows_per_second": _rate(sizes.ingest_rows, loading)}
            yield Line(f"{mode}: initial load", (loading,), facts)
            yield from _kinds(t, name, source, sizes, mode)
            t.detach(name)


def _kinds(t: Trickle, name: str, source: Source, sizes: Sizes, mode: str) -> Iterator[Line | Claim | Note]:
    kinds: dict[str, Callable[[int], int]] = {"inserts": source.insert, "updates": source.update, "mix": source.mix}
    for what, change in kinds.items():
        # The first round warms up.
        change(sizes.ingest_changed)
        t.ingest(name)
        samples, changed = [], 0
        for _ in range(sizes.ingest_rounds):
            changed += change(sizes.ingest_changed)
            took, _ = timed(t.ingest, name)
            samples.append(took)
        rate = _rate(changed, sum(samples))
        table = {"table_rows": source.do("SELECT FROM {}"), "changed_rows": changed // sizes.ingest_rounds}
        yield Line(f"{mode}: ingest of {what}", tuple(samples), {**table, "rows_per_second": rate})
        promised = ROWS_PER_SECOND if (mode, what) == ("trigger", "mix") else None
        yield Claim(f"{mode}, {what}: changed rows per second", rate, at_least=promised)


def _rate(rows: int, milliseconds: float) -> int:
    return round(rows / milliseconds * 1000)
