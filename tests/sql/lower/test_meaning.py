"""Spark and DuckDB give the same rows for the same tree: every operator, and every function that the list in
``trickle/sql/lower/duckdb.py`` names.
"""

from __future__ import annotations

import math
from datetime import date
from decimal import Decimal

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tests.sql.lower.given import e, out, scan
from trickle.operators import (
    Aggregate,
    Face,
    Filter,
    Generate,
    Join,
    JoinKind,
    Operator,
    Output,
    Project,
    Scan,
    Step,
    TopK,
    UnionAll,
    Values,
    Window,
    WindowOrder,
)
from trickle.sql.lower import lower
from trickle.testing.duck import Duck, multiset

ROWS = pa.table(
    {
        "g": pa.array([1, 1, 1, 2, 2, None, 3], pa.int64()),
        "i": pa.array([7, -7, 0, 3, None, 5, None], pa.int64()),
        "j": pa.array([2, 3, 4, -2, 5, 2, None], pa.int64()),
        "x": pa.array([1.5, -2.5, 0.0, math.nan, None, 2.25, None], pa.float64()),
        "d": pa.array([Decimal("1.25"), Decimal("-0.50"), None, Decimal("3.00"), None, Decimal("9.99"), None]),
        "s": pa.array(["Ann", " bob ", "", "a%b_c", None, "zoë", None], pa.string()),
        "t": pa.array(["n", "b", "x", "%", "q", None, None], pa.string()),
        "b": pa.array([True, False, None, True, None, True, None], pa.bool_()),
        "day": pa.array(
            [date(2024, 2, 28), date(2023, 12, 31), None, date(2024, 1, 1), None, date(2000, 5, 5), None], pa.date32()
        ),
        "xs": pa.array([[3, 1, None], [2], [], [1, 1], None, [None], None], pa.list_(pa.int64())),
    }
)

SCALARS = """
    i + j, i - j, i * j, i / j, i % j, i div j, pmod(i, j), abs(i), -i, round(x), round(x, 1), round(d, 1),
    floor(d), ceil(d), sign(i), d + d, d * 2, x / 2, i + x, i = j, i <> j, i < j, i >= j, i <=> j, x <=>
    x, i IS DISTINCT FROM j, i IN (7, 3), i IN (7, NULL), i BETWEEN 0 AND 5, x > 1e300, b AND i > 0, b OR i > 0,
    NOT b, s LIKE 'a\\\\%b%', s LIKE '%b%', s RLIKE '^a', i IS NULL, i IS NOT NULL, isnull(i), isnotnull(i),
    CASE WHEN b THEN i WHEN i < 0 THEN 0 END, CASE i WHEN 7 THEN 'seven' ELSE 'other' END, if(b, i, j),
    coalesce(i, j, 0), nvl(i, 1), nvl2(i, 1, 2), nullif(i, 7), ifnull(i, 2), greatest(i, j), least(i, j, 3),
    concat(s, t), s || t, concat_ws('-', s, t), substring(s, 2), substring(s, 0, 2), substring(s, -2, 1),
    substring(s, j), substr(s, 1, 2), left(s, 2), right(s, 2), upper(s), lower(s), trim(s), length(s),
    replace(s, 'b', 'xx'), instr(s, t), lpad(s, 5, '*'), repeat(s, 2), reverse(s),
    CAST(CASE WHEN x < 9 THEN x END AS BIGINT),
    CAST(d AS INT), CAST(i AS DOUBLE), CAST(i AS STRING), CAST(b AS STRING), CAST(i AS BOOLEAN), CAST(i AS
    DECIMAL(10, 2)), CAST('12' AS INT), CAST('2024-02-29' AS DATE), bigint(j), CAST(-1.7 AS INT), date_add(day,
    1), date_sub(day, CAST(j AS INT)), datediff(day, DATE '2024-01-01'), year(day), month(day), day(day),
    extract(YEAR FROM day), day < DATE '2024-01-01', size(xs), sort_array(xs), sort_array(xs, false), array_sort(xs),
    array_contains(xs, 1), array_contains(xs, 9), array_contains(xs, i), array_distinct(xs), array_join(array(s,
    t), ','), array(i, j), array_repeat(i, 2), sequence(1, 3), sequence(3, 1), sequence(0, coalesce(i, 0)),
    element_at(array(1, 2), 2), array(1, 2)[0], transform(xs, v -> v + 1), filter(xs, v -> v > 1),
    exists(array(1, i), v -> v > 5), named_struct('a', i, 'b', s), named_struct('a', i).a, i & j, i | j,
    exists(xs, v -> v > 2), forall(xs, v -> v > 0), array_position(xs, 1), array_min(xs), array_max(xs),
    slice(xs, 1, 1), aggregate(xs, 0L, (acc, v) -> acc + coalesce(v, 0)), isnan(x), nanvl(x, 0D),
    dayofweek(day), zeroifnull(i), s LIKE t, try_divide(i, 0), map('a', i)['a']
"""

AGGREGATES = """
    count(*), count(i), count(i, j), count(DISTINCT i), count(DISTINCT i, j), count(*) FILTER (WHERE i > 0),
    count_if(i > 0), sum(i), sum(DISTINCT j), sum(d), sum(i) FILTER (WHERE j > 2), sum(x), avg(i), avg(x),
    min(i), max(i), min(x), max(x), min(s), max(s), min(day), max(day), min(b), bool_and(b), bool_or(b),
    every(b), any(b), some(b), var_pop(i), var_samp(i), variance(i), stddev(i), stddev_pop(i), stddev_samp(i),
    covar_pop(i, j), covar_samp(i, j), sort_array(collect_list(i)), sort_array(collect_set(j)),
    sort_array(collect_list(i) FILTER (WHERE i > 0)), sort_array(collect_list(DISTINCT i)),
    size(collect_list(s)), min_by(s, j), max_by(s, j), max_by(i, j), percentile(i, 0.5), median(i), bit_and(j),
    bit_or(j), bit_xor(j), corr(i, j),
    regr_slope(i, j), regr_intercept(i, j), regr_r2(i, j), regr_count(i, j), corr(i, j) FILTER (WHERE i > 0),
    kurtosis(i), std(i), try_sum(i), max_by(s, x), percentile_cont(0.5) WITHIN GROUP (ORDER BY i)
"""

# Spark 4.3 fails over a LISTAGG beside an aggregate of DISTINCT values.
TEXTS = "listagg(s, ',') WITHIN GROUP (ORDER BY s), listagg(s) WITHIN GROUP (ORDER BY s DESC)"

WINDOWS = """
    row_number() OVER (PARTITION BY g ORDER BY j, i), rank() OVER (PARTITION BY g ORDER BY b),
    dense_rank() OVER (PARTITION BY g ORDER BY b DESC), ntile(2) OVER (PARTITION BY g ORDER BY j),
    percent_rank() OVER (PARTITION BY g ORDER BY j), cume_dist() OVER (PARTITION BY g ORDER BY j),
    lag(i) OVER (PARTITION BY g ORDER BY j), lag(i, 2, 0) OVER (PARTITION BY g ORDER BY j),
    lead(i) OVER (PARTITION BY g ORDER BY j DESC NULLS LAST), first_value(i) OVER (PARTITION BY g ORDER BY j),
    last_value(i) OVER (PARTITION BY g ORDER BY j ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING),
    first_value(i) IGNORE NULLS OVER (PARTITION BY g ORDER BY j), nth_value(i, 2) OVER (PARTITION BY g ORDER BY j),
    sum(i) OVER (PARTITION BY g), sum(i) OVER (PARTITION BY g ORDER BY j),
    sum(i) OVER (PARTITION BY g ORDER BY j ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING),
    sum(i) OVER (PARTITION BY g ORDER BY j RANGE BETWEEN 1 PRECEDING AND CURRENT ROW),
    count(*) OVER (PARTITION BY g ORDER BY j ROWS BETWEEN 2 FOLLOWING AND UNBOUNDED FOLLOWING),
    avg(i) OVER (PARTITION BY g ORDER BY j ROWS UNBOUNDED PRECEDING), max(s) OVER (PARTITION BY g ORDER BY j),
    size(collect_list(i) OVER (PARTITION BY g ORDER BY j))
"""

R = scan("rows", *ROWS.column_names)
K = scan("keys", "k", "name")
KEYS = pa.table({"k": pa.array([1, 1, 3, None, 4], pa.int64()), "name": ["one", "uno", "three", "null", "four"]})


def split(expressions: str) -> list[str]:
    """The parts of a list at its outer commas."""
    parts, depth, quoted = [""], 0, False
    for character in expressions:
        quoted ^= character == "'"
        depth += 0 if quoted else (character in "([") - (character in ")]")
        if character == "," and depth == 0 and not quoted:
            parts.append("")
        else:
            parts[-1] += character
    return [" ".join(part.split()) for part in parts]


def outputs(expressions: str) -> tuple[Output, ...]:
    return tuple(Output(text, e(text)) for text in split(expressions))


OPERATORS: dict[str, Operator] = {
    "scalar functions": Project(R, outputs(SCALARS)),
    "aggregate functions": Aggregate(R, ("g",), outputs(AGGREGATES)),
    "aggregates to text": Aggregate(R, ("g",), outputs(TEXTS)),
    "aggregates of no rows": Aggregate(Filter(R, e("i > 99")), (), outputs(AGGREGATES)),
    "window functions": Project(
        Window(R, ("g",), tuple(call for call in outputs(WINDOWS) if not call.name.startswith("size("))),
        Output.keep(call.name for call in outputs(WINDOWS) if not call.name.startswith("size(")),
    ),
    "filter": Filter(Project(R, out(i="i", b="b")), e("b OR i > 1")),
    "distinct": Aggregate(Project(R, out(g="g", b="b")), ("g", "b")),
    "union": UnionAll((Project(R, out(n="i")), Project(K, out(n="k")), Values(("n",), ()))),
    "values": Values(("n", "s"), ((e("1"), e("'x'")), (e("NULL"), e("'y'")))),
    "one row": Project(Values((), ((),)), out(a="1 + 1")),
    "rows without columns": Aggregate(Join(JoinKind.INNER, Project(R, ()), Scan("keys", ())), (), out(n="count(*)")),
    "inner join": Join(JoinKind.INNER, Project(R, out(g="g", i="i")), K, e("g <=> k"), "right"),
    "cross join": Join(JoinKind.INNER, Project(R, out(i="i")), K),
    "left join": Join(JoinKind.LEFT, Project(R, out(g="g", i="i")), K, e("g = k AND i > 0"), "left"),
    "left join without condition": Join(JoinKind.LEFT, Project(R, out(g="g")), Filter(K, e("k > 99"))),
    "semi join": Join(JoinKind.SEMI, Project(R, out(g="g", i="i")), K, e("g <=> k OR i < k"), "right"),
    "semi join without condition": Join(JoinKind.SEMI, Project(R, out(g="g")), K),
    "anti join": Join(JoinKind.ANTI, Project(R, out(g="g", i="i")), K, e("g = k")),
    "top k": TopK(Project(R, out(i="i", j="j")), (WindowOrder("i", descending=True), WindowOrder("j")), 2, 1),
    "top k, nulls first": TopK(Project(R, out(i="i")), (WindowOrder("i", descending=True, nulls_first=True),), 3),
    "first rows in a union": UnionAll(
        (TopK(Project(R, out(n="i")), (WindowOrder("n", nulls_first=False),), 2), Project(K, out(n="k")))
    ),
    "explode": Project(Generate(R, e("explode(xs)"), ("v",)), out(i="i", v="v")),
    "explode outer": Project(Generate(R, e("explode(xs)"), ("v",), outer=True), out(i="i", v="v")),
    "posexplode": Project(Generate(R, e("posexplode(xs)"), ("p", "v")), out(i="i", p="p", v="v")),
    "repeat": Project(Generate(R, e("explode(array_repeat(i, CAST(j AS INT)))"), ("v",)), out(v="v")),
    "sequence": Project(Generate(R, e("explode(sequence(i, j))"), ("v",)), out(i="i", v="v")),
    "map": Project(Generate(R, e("explode(map('a', i, 'b', j))"), ("m", "n")), out(m="m", n="n")),
    "inline": Generate(Project(R, out(i="i")), e("inline(array(named_struct('a', i, 'b', 1)))"), ("a", "b")),
    "stack": Generate(Project(R, out(i="i", j="j")), e("stack(2, i, 'i', j)"), ("n", "w")),
    "shared": UnionAll((Aggregate(R, ("g",)), Filter(Aggregate(R, ("g",)), e("g > 1")))),
}


@pytest.fixture(scope="module")
def duck():
    with Duck() as given:
        given.load("rows", Face.NEW, ROWS)
        given.load("keys", Face.NEW, KEYS)
        yield given


@pytest.fixture(scope="module", autouse=True)
def views(spark: SparkSession):
    spark.createDataFrame(ROWS).createOrReplaceTempView("lowered_rows")
    spark.createDataFrame(KEYS).createOrReplaceTempView("lowered_keys")
    yield
    spark.catalog.dropTempView("lowered_rows")
    spark.catalog.dropTempView("lowered_keys")


def name_of(leaf: Scan | Step) -> str:
    assert isinstance(leaf, Scan)
    return f"lowered_{leaf.table}"


@pytest.mark.parametrize("name", OPERATORS)
def test_spark_and_duckdb_agree(name, spark, duck):
    tree = OPERATORS[name]
    on_spark = spark.sql(lower(tree, name_of)).toArrow()
    on_duckdb = duck.run(tree)
    assert on_spark.column_names == on_duckdb.column_names == list(tree.columns)
    for column in tree.columns:
        one, other = on_spark.select([column]), on_duckdb.select([column])
        assert multiset(one) == multiset(other), column
    assert multiset(on_spark) == multiset(on_duckdb)


def test_spark_takes_the_hint(spark):
    tree = Join(JoinKind.LEFT, scan("rows", "g"), K, e("g = k"), "right")
    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
    try:
        plan = spark.sql("EXPLAIN " + lower(tree, name_of)).head()[0]
    finally:
        spark.conf.unset("spark.sql.autoBroadcastJoinThreshold")
    assert "BroadcastHashJoin" in plan
