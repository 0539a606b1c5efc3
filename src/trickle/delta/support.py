"""Which SQL is kept how: the rows of ``docs/sql-support.md`` (pure).

Each row has an example over the tables of ``TABLES``. A test builds it, cuts it into stages and compares what comes out
with what the row says, so that the page cannot promise what the code does not do.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from trickle.algebra.names import TableName


class Kept(StrEnum):
    """How a construct is kept, in the words of the page."""

    CHANGES = "by changes"
    SOMETIMES = "by changes; a group is read again when it must be"
    GROUPS = "by changes; changed groups are read again"
    WHOLE = "by changes, which read the input whole"
    FULL = "in full only"
    REFUSED = "refused"


TABLES: Mapping[TableName, Mapping[str, str]] = {
    TableName.of(["orders"]): {
        "id": "bigint",
        "customer": "bigint",
        "amount": "decimal(12,2)",
        "weight": "double",
        "placed": "timestamp",
        "paid": "boolean",
        "tags": "array<string>",
        "address": "struct<city:string,zip:string>",
        "notes": "map<string,string>",
    },
    TableName.of(["customers"]): {"id": "bigint", "name": "string", "region": "string"},
    TableName.of(["archive"]): {"id": "bigint", "customer": "bigint", "amount": "decimal(12,2)"},
    TableName.of(["edges"]): {"src": "bigint", "dst": "bigint"},
}
VIEWS: Mapping[TableName, str] = {
    TableName.of(["paid_orders"]): "SELECT id, customer FROM orders WHERE paid",
    TableName.of(["recent_orders"]): "SELECT id FROM orders WHERE placed > current_date()",
}


@dataclass(frozen=True)
class Row:
    """A construct and how it is kept. ``operators`` are pages of docs/operators that tell the rule."""

    construct: str
    example: str
    kept: Kept
    operators: tuple[str, ...] = ()
    notes: str = ""
    settled: bool = False
    """Whether the query is made definite first, with a notice (``sql/canonical``)."""
    error: str = ""
    """For what is not kept by changes: a part of the message."""


@dataclass(frozen=True)
class Section:
    """Rows that belong together."""

    title: str
    rows: tuple[Row, ...]


_O = "FROM orders"
_BY = "FROM orders GROUP BY customer"
_OC = "FROM orders o JOIN customers c"
_C = Kept.CHANGES
_IF_SPARK = "where Spark's own grammar has it, as Spark reads the query too"

ROWWISE = Section(
    "Rows",
    (
        Row("WHERE", f"SELECT id {_O} WHERE amount > 9", _C, ("filter",)),
        Row(
            "expressions, CASE, CAST", f"SELECT id, CASE WHEN paid THEN amount ELSE 0 END AS due {_O}", _C, ("project",)
        ),
        Row(
            "tables without a key, with duplicates",
            f"SELECT customer {_O}",
            _C,
            ("scan",),
            "equal rows are so many rows",
        ),
        Row("struct fields", f"SELECT address.city AS city {_O} WHERE address.zip = '1'", _C, ("project",)),
        Row("arrays, maps", f"SELECT tags[0] AS tag, notes['a'] AS note {_O}", _C, ("project",)),
        Row("views", "SELECT customer FROM paid_orders", _C, ("filter",), "written out; another definition is noticed"),
        Row("WITH, used several times", f"WITH o AS (SELECT id {_O}) SELECT a.id FROM o a JOIN o b ON a.id = b.id", _C),
        Row("VALUES", "SELECT a FROM (VALUES (1), (2)) AS v(a)", _C, ("values",)),
        Row("explode, posexplode, inline, stack", f"SELECT id, explode(tags) AS tag {_O}", _C, ("generate",)),
        Row(
            "LATERAL VIEW [OUTER]", f"SELECT id, tag {_O} LATERAL VIEW OUTER explode(tags) x AS tag", _C, ("generate",)
        ),
        Row("UNION ALL", f"SELECT id {_O} UNION ALL SELECT id FROM archive", _C, ("union-all",)),
    ),
)

JOINS = Section(
    "Joins",
    (
        Row("[INNER] JOIN ... ON", f"SELECT o.id, c.name {_OC} ON o.customer = c.id", _C, ("inner-join",)),
        Row("JOIN ... USING", f"SELECT id, name {_OC} USING (id)", _C, ("inner-join",)),
        Row("NATURAL JOIN", f"SELECT id, name {_O} NATURAL JOIN customers", _C, ("inner-join",)),
        Row("CROSS JOIN", f"SELECT o.id, c.name {_O} o CROSS JOIN customers c", _C, ("inner-join",)),
        Row("any condition", f"SELECT o.id, c.name {_OC} ON o.customer < c.id OR c.id IS NULL", _C, ("inner-join",)),
        Row("a table with itself", f"SELECT a.id {_O} a JOIN orders b ON a.id = b.customer", _C, ("inner-join",)),
        Row("LEFT JOIN", f"SELECT o.id, c.name {_O} o LEFT JOIN customers c ON o.customer = c.id", _C, ("left-join",)),
        Row(
            "RIGHT JOIN",
            f"SELECT o.id, c.name {_O} o RIGHT JOIN customers c ON o.customer = c.id",
            _C,
            ("left-join",),
            "a left join with its sides exchanged",
        ),
        Row(
            "FULL JOIN",
            f"SELECT o.id, c.name {_O} o FULL JOIN customers c ON o.customer = c.id",
            _C,
            ("left-join", "semi-join", "union-all"),
            "a left join, and the rows of the right without a partner",
        ),
        Row("SEMI JOIN", f"SELECT id {_O} o LEFT SEMI JOIN customers c ON o.customer = c.id", _C, ("semi-join",)),
        Row("ANTI JOIN", f"SELECT id {_O} o LEFT ANTI JOIN customers c ON o.customer = c.id", _C, ("semi-join",)),
        Row(
            "JOIN LATERAL",
            f"SELECT c.id, x.id AS o FROM customers c, LATERAL (SELECT id {_O} WHERE customer = c.id) x",
            _C,
            ("inner-join",),
            "a join by the columns that the subquery uses",
        ),
        Row(
            "RIGHT, FULL JOIN LATERAL",
            f"SELECT c.id FROM customers c RIGHT JOIN LATERAL (SELECT id {_O} WHERE customer = c.id) x ON true",
            Kept.FULL,
            error="JOIN LATERAL with these conditions is not supported",
        ),
    ),
)

SUBQUERIES = Section(
    "Subqueries",
    (
        Row(
            "[NOT] EXISTS",
            f"SELECT name FROM customers c WHERE NOT EXISTS (SELECT 1 {_O} WHERE customer = c.id)",
            _C,
            ("semi-join",),
        ),
        Row("IN (SELECT ...)", f"SELECT name FROM customers WHERE id IN (SELECT customer {_O})", _C, ("semi-join",)),
        Row(
            "NOT IN (SELECT ...)",
            f"SELECT name FROM customers WHERE id NOT IN (SELECT customer {_O})",
            _C,
            ("semi-join", "aggregate"),
            "right for NULL on both sides",
        ),
        Row(
            "several columns IN",
            f"SELECT id {_O} WHERE (id, customer) IN (SELECT id, customer FROM archive)",
            _C,
            ("semi-join",),
        ),
        Row(
            "ANY, SOME, ALL (SELECT ...)",
            f"SELECT id {_O} WHERE amount >= ALL (SELECT amount FROM archive)",
            Kept.SOMETIMES,
            ("inner-join", "aggregate"),
            "written with aggregates of the subquery; right for NULL",
            settled=True,
        ),
        Row(
            "= ANY (SELECT ...)",
            f"SELECT id {_O} WHERE customer = ANY (SELECT id FROM customers)",
            _C,
            ("semi-join",),
            "written with IN",
            settled=True,
        ),
        Row(
            "under OR, in CASE",
            f"SELECT name, id IN (SELECT customer {_O}) OR region = 'x' AS known FROM customers",
            _C,
            ("left-join", "aggregate"),
            "the answer is a column, found by a join",
        ),
        Row(
            "scalar",
            f"SELECT id, (SELECT max(amount) FROM archive) AS top {_O}",
            Kept.SOMETIMES,
            ("inner-join", "aggregate"),
            "as kept as the query inside; here max",
        ),
        Row(
            "scalar, correlated",
            f"SELECT name, (SELECT sum(amount) {_O} WHERE customer = c.id) AS total FROM customers c",
            _C,
            ("left-join", "aggregate"),
            "grouped by the columns that tie it to the query around it",
        ),
        Row(
            "on both sides of an outer join's condition",
            "SELECT o.id FROM orders o LEFT JOIN customers c"
            " ON EXISTS (SELECT 1 FROM archive a WHERE a.id = o.id AND a.customer = c.id)",
            Kept.FULL,
            error="looks at both sides",
        ),
    ),
)

GROUPED = Section(
    "Groups and sets",
    (
        Row("GROUP BY", f"SELECT customer, count(*) AS n {_BY}", _C, ("aggregate",), "the groups that changed"),
        Row("no GROUP BY", f"SELECT count(*) AS n {_O}", _C, ("aggregate",), "one group, there over no rows as well"),
        Row("HAVING", f"SELECT customer {_BY} HAVING count(*) > 1", _C, ("aggregate", "filter")),
        Row("FILTER (WHERE ...)", f"SELECT customer, count(*) FILTER (WHERE paid) AS n {_BY}", _C, ("aggregate",)),
        Row(
            "GROUPING SETS, CUBE, ROLLUP",
            f"SELECT customer, paid, count(*) AS n, grouping_id() AS g {_O} GROUP BY CUBE (customer, paid)",
            _C,
            ("aggregate", "union-all"),
            "one aggregate for each grouping, at most 64",
        ),
        Row(
            "more than 64 grouping sets",
            "SELECT count(*) AS n FROM orders GROUP BY CUBE (id, customer, amount, weight, placed, paid, tags)",
            Kept.FULL,
            error="GROUP BY has 128 grouping sets",
        ),
        Row("DISTINCT", f"SELECT DISTINCT customer {_O}", _C, ("aggregate",), "rows are counted"),
        Row(
            "UNION", f"SELECT id {_O} UNION SELECT id FROM archive", _C, ("aggregate", "union-all"), "rows are counted"
        ),
        Row(
            "INTERSECT, EXCEPT",
            f"SELECT id {_O} EXCEPT SELECT id FROM archive",
            _C,
            ("aggregate", "union-all"),
            "rows are counted for each side",
        ),
        Row(
            "INTERSECT ALL, EXCEPT ALL",
            f"SELECT id {_O} INTERSECT ALL SELECT id FROM archive",
            _C,
            ("aggregate", "generate"),
            "rows are counted for each side",
        ),
    ),
)

_AGGREGATE = ("aggregate",)
AGGREGATES = Section(
    "Aggregate functions",
    (
        Row(
            "count(*), count(x), count_if",
            f"SELECT count(*) AS n, count(paid) AS p, count_if(paid) AS t {_BY}",
            _C,
            _AGGREGATE,
        ),
        Row("sum, avg of exact numbers", f"SELECT customer, sum(amount) AS s, avg(id) AS a {_BY}", _C, _AGGREGATE),
        Row(
            "sum, avg of floating numbers",
            f"SELECT customer, sum(weight) AS s {_BY}",
            Kept.SOMETIMES,
            _AGGREGATE,
            "read again after a deletion; insertions are added",
        ),
        Row(
            "avg of decimals of more than 24 digits",
            f"SELECT customer, avg(CAST(amount AS DECIMAL(30,2))) AS a {_BY}",
            Kept.GROUPS,
            _AGGREGATE,
            "sum / count would have fewer decimals",
        ),
        Row(
            "min, max, bool_and, bool_or",
            f"SELECT customer, min(amount) AS low, bool_or(paid) AS p {_BY}",
            Kept.SOMETIMES,
            _AGGREGATE,
            "read again when the stored value was deleted and nothing better came",
        ),
        Row("DISTINCT inside", f"SELECT customer, count(DISTINCT paid) AS n {_BY}", Kept.GROUPS, _AGGREGATE),
        Row(
            "var, stddev, covar, corr, regr, skewness, kurtosis",
            f"SELECT customer, stddev_samp(weight) AS s, corr(weight, amount) AS c {_BY}",
            Kept.GROUPS,
            _AGGREGATE,
        ),
        Row("bit_and, bit_or, bit_xor", f"SELECT customer, bit_or(id) AS b {_BY}", Kept.GROUPS, _AGGREGATE),
        Row(
            "median, percentile, approx_...",
            f"SELECT customer, median(amount) AS m, approx_count_distinct(id) AS n {_BY}",
            Kept.GROUPS,
            _AGGREGATE,
        ),
        Row(
            "first, last, any_value",
            f"SELECT customer, first(id) AS f, last(id) AS l {_BY}",
            Kept.SOMETIMES,
            _AGGREGATE,
            "become min and max",
            settled=True,
        ),
        Row(
            "collect_list, collect_set, array_agg",
            f"SELECT customer, collect_list(id) AS ids {_BY}",
            Kept.GROUPS,
            _AGGREGATE,
            "sorted",
            settled=True,
        ),
        Row(
            "listagg, string_agg",
            "SELECT region, listagg(name, ',') AS names FROM customers GROUP BY region",
            Kept.GROUPS,
            _AGGREGATE,
            "in the order of the values",
            settled=True,
        ),
        Row(
            "mode, max_by, min_by",
            f"SELECT customer, max_by(id, amount) AS top {_BY}",
            Kept.GROUPS,
            _AGGREGATE,
            "of several, the smallest or greatest",
            settled=True,
        ),
        Row(
            "collect_list of values that cannot be sorted",
            f"SELECT customer, collect_list(notes) AS all {_BY}",
            Kept.FULL,
            error="cannot be sorted",
        ),
    ),
)

_WINDOW = ("window",)
WINDOWS = Section(
    "Window functions, first rows, recursion",
    (
        Row(
            "with PARTITION BY, any frame",
            f"SELECT id, sum(amount) OVER (PARTITION BY customer ORDER BY id) AS s {_O}",
            _C,
            _WINDOW,
            "changed partitions are read again",
        ),
        Row(
            "row_number, ntile, lag, lead with ties",
            f"SELECT id, row_number() OVER (PARTITION BY customer ORDER BY placed) AS n {_O}",
            _C,
            _WINDOW,
            "all columns that can be sorted decide ties",
            settled=True,
        ),
        Row("rank, dense_rank", f"SELECT id, rank() OVER (PARTITION BY customer ORDER BY id) AS r {_O}", _C, _WINDOW),
        Row(
            "QUALIFY",
            f"SELECT id {_O} QUALIFY rank() OVER (PARTITION BY customer ORDER BY id) = 1",
            _C,
            ("window", "filter"),
        ),
        Row("without PARTITION BY", f"SELECT id, rank() OVER (ORDER BY id) AS r {_O}", Kept.WHOLE, _WINDOW),
        Row(
            "nth_value over RANGE frames that end early",
            f"SELECT id, nth_value(id, 2) OVER (PARTITION BY customer ORDER BY placed) AS n {_O}",
            Kept.FULL,
            error="has no fixed result",
        ),
        Row(
            "ORDER BY ... LIMIT",
            f"SELECT id, amount {_O} ORDER BY amount DESC, id LIMIT 3",
            _C,
            ("top-k",),
            "read again when rows move up that are not stored",
        ),
        Row(
            "LIMIT with ties",
            f"SELECT id, amount {_O} ORDER BY amount DESC LIMIT 3",
            _C,
            ("top-k",),
            "all columns decide ties",
            settled=True,
        ),
        Row("FETCH FIRST", f"SELECT id {_O} ORDER BY id FETCH FIRST 3 ROWS ONLY", _C, ("top-k",), _IF_SPARK),
        Row(
            "DISTINCT ON",
            f"SELECT DISTINCT ON (customer) customer, id {_O} ORDER BY customer, id",
            _C,
            ("window", "filter"),
            _IF_SPARK,
        ),
        Row("LIMIT ... OFFSET", f"SELECT id {_O} ORDER BY id LIMIT 3 OFFSET 2", _C, ("top-k",), "5 rows are stored"),
        Row("OFFSET without LIMIT", f"SELECT id {_O} ORDER BY id OFFSET 2", Kept.WHOLE, ("top-k",)),
        Row("ORDER BY without LIMIT", f"SELECT id {_O} ORDER BY id", _C, (), "no effect, with a notice"),
        Row(
            "WITH RECURSIVE ... UNION",
            "WITH RECURSIVE r(a, b) AS (SELECT src, dst FROM edges UNION"
            " SELECT r.a, e.dst FROM r JOIN edges e ON r.b = e.src) SELECT a, b FROM r",
            _C,
            ("recursion",),
            "deleted and derived again, then extended",
        ),
        Row(
            "WITH RECURSIVE ... UNION ALL",
            "WITH RECURSIVE r(a) AS (SELECT src FROM edges UNION ALL"
            " SELECT e.dst FROM r JOIN edges e ON r.a = e.src) SELECT a FROM r",
            Kept.WHOLE,
            ("recursion",),
        ),
        Row(
            "WITH RECURSIVE, aggregate in the step",
            "WITH RECURSIVE r(a) AS (SELECT src FROM edges UNION SELECT max(a) + 1 FROM r WHERE a < 9) SELECT a FROM r",
            Kept.WHOLE,
            ("recursion",),
        ),
    ),
)

_TOO_DEEP = "SELECT " + "(" * 70 + "id" + ")" * 70 + " FROM orders"
CLOCK = Section(
    "The clock",
    (
        Row(
            "in WHERE, HAVING, ON of an inner join",
            f"SELECT id {_O} WHERE placed > current_timestamp() - INTERVAL 1 DAY",
            _C,
            ("filter",),
            "bound to the time of the refresh; rows that come and go by time alone are part of the change",
        ),
        Row(
            "in the SELECT list, in aggregates",
            f"SELECT id, current_date() AS today {_O}",
            Kept.WHOLE,
            ("project",),
            "bound to the time of the refresh",
        ),
    ),
)

REFUSED = Section(
    "Not kept by changes, or not at all",
    (
        Row("rand(), uuid(), and other functions of chance", f"SELECT id, rand() AS r {_O}", Kept.FULL, error="chance"),
        Row("a view that reads the clock", "SELECT id FROM recent_orders", Kept.FULL, error="clock"),
        Row(
            "the clock in other places",
            f"SELECT id, max(current_date()) OVER (PARTITION BY customer) AS d {_O}",
            Kept.FULL,
            error="the clock is read in a place where its changes are not followed",
        ),
        Row("PIVOT, UNPIVOT", f"SELECT * {_O} PIVOT (count(id) FOR paid IN (true, false))", Kept.FULL, error="PIVOT"),
        Row("* REPLACE", "SELECT * REPLACE (1 AS id) FROM edges", Kept.FULL, error="REPLACE"),
        Row("table functions other than range", "SELECT id FROM read_files('x')", Kept.FULL, error="table function"),
        Row("LIMIT without ORDER BY", f"SELECT id {_O} LIMIT 3", Kept.REFUSED, error="LIMIT without ORDER BY"),
        Row("TABLESAMPLE", f"SELECT id {_O} TABLESAMPLE (10 PERCENT)", Kept.REFUSED, error="TABLESAMPLE"),
        Row("VERSION AS OF", f"SELECT id {_O} VERSION AS OF 1", Kept.REFUSED, error="reads its sources as they are"),
        Row("deeper nesting than max_parse_depth", _TOO_DEEP, Kept.REFUSED, error="nested"),
    ),
)

SECTIONS = (ROWWISE, JOINS, SUBQUERIES, GROUPED, AGGREGATES, WINDOWS, CLOCK, REFUSED)
