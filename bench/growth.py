"""The same change of some rows over tables of growing size, refreshed by changes: what a refresh costs should follow
the change and not the table. The aggregate has a fixed number of groups. The join pairs every row with one of a table
a tenth as large, whose partners lie scattered over all files, and its result has as many rows as the larger table;
both of its tables change in the same refresh (ten rows of the smaller one). 70 % of the changed rows are new, 15 %
updated and 15 % deleted. The first rounds (``--warm``) are not counted.
"""

from __future__ import annotations

from collections.abc import Iterator

from pyspark.sql import functions as F

from bench.beside import DIFFERENTIAL, Beside, Refreshed, refreshed
from bench.data import SUMMARY, Changing, fill
from bench.figures import Claim, Line, Note, timed
from bench.sizes import Sizes
from trickle import Trickle

AGGREGATE, JOIN = "aggregate", "join"
PROMISED = {AGGREGATE: 1.3, JOIN: 4.0}
"""How many times longer a refresh may take when a table of 10M rows grows to 100M."""
_PROMISED_FOR = (10_000_000, 100_000_000)
_QUERIES = {
    AGGREGATE: SUMMARY,
    JOIN: "SELECT id, amount, label FROM {table} JOIN {table}_partners ON grp = partner",
}
_CHANGED_PARTNERS = 10


def run(t: Trickle, sizes: Sizes) -> Iterator[Line | Beside | Claim | Note]:
    """Every size in its turn; then how the times grew."""
    for query in _QUERIES:
        found: dict[int, float | None] = {}
        for rows in sizes.growth_rows:
            for item in _case(t, sizes, query, rows):
                if isinstance(item, Beside):
                    found[rows] = item.ms(DIFFERENTIAL)
                yield item
        for small, large in zip(sizes.growth_rows, sizes.growth_rows[1:], strict=False):
            before, after = found[small], found[large]
            ratio = None if before is None or after is None else after / before
            limit = PROMISED[query] if (small, large) == _PROMISED_FOR else None
            yield Claim(f"{query}: growth from {small:,} to {large:,} rows", ratio, at_most=limit)


def _case(t: Trickle, sizes: Sizes, query: str, rows: int) -> Iterator[Line | Beside | Note]:
    source, name = f"{query}_{rows}", f"{query}_{rows}_kept"
    groups = sizes.growth_groups if query == AGGREGATE else max(10 * _CHANGED_PARTNERS, rows // 10)
    loading, _ = timed(fill, t, source, rows, groups)
    if query == JOIN:
        _fill_partners(t, f"{source}_partners", groups)
    yield Line(f"{query}: load {rows:,} rows", (loading,), {"groups": groups})
    filling, _ = timed(t.create_stream_table, name, _QUERIES[query].format(table=source), refresh_mode=DIFFERENTIAL)
    yield Line(f"{query}: create and fill over {rows:,} rows", (filling,))
    changing = Changing(source, rows, groups)
    runs: list[Refreshed] = []
    for round_ in range(sizes.warm + sizes.repeat):
        changing.apply(t, sizes.changed_rows)
        if query == JOIN:
            _change_partners(t, f"{source}_partners", groups - round_ * _CHANGED_PARTNERS)
        done = refreshed(t, name)
        if round_ >= sizes.warm:
            runs.append(done)
        yield Note(f"{query} over {rows:,} rows, round {round_ + 1}: {done.error or f'{done.ms:,.0f} ms'}")
    yield Beside(query, f"{rows:,} rows", {DIFFERENTIAL: runs}, {"rows": rows, "changed_rows": sizes.changed_rows})
    t.drop_stream_table(name)
    t.sql(f"DROP TABLE {source}")


def _fill_partners(t: Trickle, table: str, rows: int) -> None:
    t.sql(f"CREATE TABLE {table} (partner INT, label STRING)")
    numbered = t.warehouse.engine.spark.range(0, rows).select(F.col("id").cast("int").alias("partner"))
    t.write(table, numbered.withColumn("label", F.concat(F.lit("partner "), F.col("partner"))))


def _change_partners(t: Trickle, table: str, until: int) -> None:
    t.sql(
        f"UPDATE {table} SET label = concat(label, ' again')"
        f" WHERE partner BETWEEN {until - _CHANGED_PARTNERS} AND {until - 1}"
    )
