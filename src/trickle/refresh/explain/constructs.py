"""What a query is made of, construct by construct, and how each is kept (pure)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sqlglot import exp

from trickle.sql.build.calls import GENERATORS, function_name, is_aggregate, unwrapped, window_functions
from trickle.sql.facts import VOLATILE, reads_clock

CHANGES = "by changes"
WHOLE = "reads its input whole"
FULL = "in full"

_JOINS = {
    "INNER": "the change of each side is joined with the other side",
    "CROSS": "the change of each side meets every row of the other side",
    "LEFT": "as an inner join, and rows of the left whose partners came or went are looked at again",
    "RIGHT": "a left join with its sides exchanged",
    "FULL": "a left join, and the rows of the right without a partner",
    "SEMI": "rows of the left whose partners came or went are looked at again",
    "ANTI": "rows of the left whose partners came or went are looked at again",
}
_SETS: dict[tuple[type[exp.SetOperation], bool], tuple[str, str]] = {
    (exp.Union, False): ("UNION ALL", "the changes of all parts"),
    (exp.Union, True): ("UNION", "rows are counted: one is there while its count is not 0"),
    (exp.Intersect, True): ("INTERSECT", "rows are counted for each side"),
    (exp.Intersect, False): ("INTERSECT ALL", "rows are counted for each side"),
    (exp.Except, True): ("EXCEPT", "rows are counted for each side"),
    (exp.Except, False): ("EXCEPT ALL", "rows are counted for each side"),
}


@dataclass(frozen=True)
class Found:
    """A construct: its name, whether it is kept by changes, how, and where it begins (an offset in the text).

    ``aggregate`` is set for aggregate functions: how they are kept depends on their types.
    """

    name: str
    kept: str
    how: str
    offset: int | None
    aggregate: tuple[str, bool] | None = None


def constructs(root: exp.Expr) -> list[Found]:
    """The constructs of a query, in the order in which they stand in its text."""
    windowed = {id(each) for window in root.find_all(exp.Window) for each in window_functions(window)}
    found = [one for node in root.walk() for one in _of(node, windowed)]
    return sorted(found, key=lambda one: one.offset or 0)


def aggregate_key(node: exp.Expr) -> tuple[str, bool]:
    """The name of an aggregate function, and whether it is of distinct values."""
    inner = unwrapped(node)
    arguments = inner.args.get("expressions") or ()
    distinct = any(isinstance(argument, exp.Distinct) for argument in arguments)
    return function_name(inner) or inner.key, distinct


def offset_of(node: exp.Expr) -> int | None:
    """Where a node begins, as far as sqlglot tells: keywords have no place, names and literals do."""
    return min((each.meta["start"] for each in node.walk() if "start" in each.meta), default=None)


def _of(node: exp.Expr, windowed: set[int]) -> Iterator[Found]:
    place = offset_of(node)
    match node:
        case exp.Join():
            yield _join(node, place)
        case exp.SetOperation():
            name, how = _SETS.get((type(node), bool(node.args.get("distinct"))), (node.key.upper(), ""))
            yield Found(name, CHANGES, how, place)
        case exp.With() if node.recursive:
            yield _recursion(node, place)
        case exp.Window():
            yield _window(node, place)
        case exp.Lateral() if isinstance(node.this, exp.Subquery):
            yield Found("LATERAL", CHANGES, "a join by the columns that it uses", place)
        case exp.Pivot():
            yield Found("UNPIVOT" if node.unpivot else "PIVOT", FULL, "not supported", place)
        case exp.Group() | exp.Having() | exp.Qualify():
            yield from _group(node, place)
        case exp.Exists() | exp.In() | exp.Subquery():
            yield from _subquery(node, place)
        case exp.Anonymous() | exp.AggFunc():
            yield from _call(node, place, windowed)
        case _:
            pass
    if reads_clock(node):
        yield _clock(node, place)
    yield from _clauses(node)


def _clock(node: exp.Expr, place: int | None) -> Found:
    name = node.name if isinstance(node, exp.Anonymous | exp.Column) else node.sql("spark").removesuffix("()")
    clause = node.find_ancestor(exp.Where, exp.Having, exp.Join, exp.Select)
    if isinstance(clause, exp.Select):
        return Found(f"{name.lower()}()", WHOLE, "the time of the refresh: another value for every row", place)
    how = "the time of the refresh; rows for which it makes a difference are looked for"
    return Found(f"{name.lower()}()", CHANGES, how, place)


def _join(node: exp.Join, place: int | None) -> Found:
    words = [word for word in (node.method, node.side, node.kind) if word and word.upper() != "OUTER"]
    kind = next((word.upper() for word in reversed(words) if word.upper() in _JOINS), "INNER")
    if not node.kind and not node.side and not node.args.get("on") and not node.args.get("using") and not node.method:
        kind = "CROSS"
    return Found(" ".join([*map(str.upper, words or [kind]), "JOIN"]), CHANGES, _JOINS[kind], place)


def _recursion(node: exp.With, place: int | None) -> Found:
    unions = [cte.this for cte in node.expressions if isinstance(cte.this, exp.Union)]
    if any(not union.args.get("distinct") for union in unions):
        return Found("WITH RECURSIVE", WHOLE, "with UNION ALL it is computed anew and compared", place)
    how = "what rested on rows that went is followed and checked, then what comes is followed"
    return Found("WITH RECURSIVE", CHANGES, how, place)


def _window(node: exp.Window, place: int | None) -> Found:
    name = f"{aggregate_key(node.this)[0]}() OVER"
    if node.args.get("partition_by"):
        return Found(name, CHANGES, "partitions in which something changed are computed again", place)
    return Found(name, WHOLE, "without PARTITION BY there is one partition: all rows", place)


def _group(node: exp.Group | exp.Having | exp.Qualify, place: int | None) -> Iterator[Found]:
    match node:
        case exp.Group():
            sets = node.find(exp.Cube, exp.Rollup, exp.GroupingSets)
            name = "GROUP BY" if sets is None else sets.key.upper().replace("GROUPINGSETS", "GROUPING SETS")
            how = "groups in which something changed are kept" if sets is None else "one aggregate for each grouping"
            yield Found(name, CHANGES, how, place)
        case _:
            yield Found(node.key.upper(), CHANGES, "a filter", place)


def _subquery(node: exp.Expr, place: int | None) -> Iterator[Found]:
    negated = "NOT " if isinstance(node.parent, exp.Not) else ""
    join = "an anti join" if negated else "a semi join"
    match node:
        case exp.Exists():
            yield Found(f"{negated}EXISTS", CHANGES, join, place)
        case exp.In() if node.args.get("query") is not None:
            yield Found(f"{negated}IN (SELECT ...)", CHANGES, join, place)
        case exp.Subquery() if not isinstance(
            node.parent, exp.From | exp.Join | exp.Lateral | exp.CTE | exp.SetOperation | exp.In | exp.Exists | None
        ):
            if not isinstance(node.parent, exp.Subquery):
                yield Found("scalar subquery", CHANGES, "a left join with its value", place)
        case _:
            pass


def _call(node: exp.Expr, place: int | None, windowed: set[int]) -> Iterator[Found]:
    name = function_name(node)
    if name in VOLATILE:
        yield Found(f"{name}()", FULL, "another value at every refresh", place)
    elif name in GENERATORS:
        yield Found(f"{name}()", CHANGES, "made of each changed row", place)
    elif id(node) not in windowed and is_aggregate(node):
        key = aggregate_key(node)
        yield Found(f"{key[0]}({'DISTINCT' if key[1] else ''})", CHANGES, "", place, aggregate=key)


def _clauses(node: exp.Expr) -> Iterator[Found]:
    """What is an argument of a query and no node that tells enough by itself."""
    if not isinstance(node, exp.Query):
        return
    if isinstance(node, exp.Select) and node.args.get("distinct"):
        yield Found("DISTINCT", CHANGES, "rows are counted: one is there while its count is not 0", offset_of(node))
    order, limit, offset = (node.args.get(clause) for clause in ("order", "limit", "offset"))
    at = next((offset_of(clause) for clause in (order, limit, offset) if clause is not None), None)
    if limit is not None and offset is not None:
        yield Found("LIMIT OFFSET", CHANGES, "the first rows are stored, with those before the offset", at)
    elif limit is not None:
        how = "the first rows are stored; they are taken from the sources again when others move up"
        yield Found("LIMIT", CHANGES, how, at)
    elif offset is not None:
        yield Found("OFFSET", WHOLE, "both states are computed and compared", at)
    elif order is not None:
        yield Found("ORDER BY", CHANGES, "no effect without LIMIT: a table has no order", at)
