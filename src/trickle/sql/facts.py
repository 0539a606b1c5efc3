"""What a query holds that matters for keeping its result: functions that do not repeat, clocks, arbitrary rows."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

VOLATILE = frozenset(
    (
        "input_file_block_length",
        "input_file_block_start",
        "input_file_name",
        "java_method",
        "monotonically_increasing_id",
        "rand",
        "randn",
        "random",
        "randstr",
        "reflect",
        "shuffle",
        "spark_partition_id",
        "try_reflect",
        "uniform",
        "uuid",
    )
)
CLOCKS = frozenset(
    ("curdate", "current_date", "current_time", "current_timestamp", "localtimestamp", "now", "unix_timestamp")
)
# sqlglot has nodes of its own for those that it knows without parentheses.
_CLOCK_NODES = (exp.CurrentDate, exp.CurrentTime, exp.CurrentTimestamp, exp.Localtime, exp.Localtimestamp)
# Spark takes these for the function even without parentheses, unless there is such a column.
_BARE_CLOCKS = frozenset(("current_date", "current_time", "current_timestamp", "localtimestamp"))
# Spark reads these strings as moments when they are cast to a date or a timestamp.
_MOMENTS = (["now"], ["today"], ["tomorrow"], ["yesterday"])
_CONVERSIONS = frozenset(("date", "timestamp", "timestamp_ltz", "timestamp_ntz", "to_date", "to_timestamp"))


@dataclass(frozen=True)
class Facts:
    volatile: tuple[str, ...]
    time_dependent: bool
    limit_without_order: bool
    table_sample: bool
    order_without_limit: bool


def facts_of(root: exp.Expr) -> Facts:
    """Look once at every node of a query's tree."""
    volatile: set[str] = set()
    time_dependent = limit_without_order = table_sample = False
    for node in root.walk(prune=lambda node: isinstance(node, exp.Hint)):
        match node:
            case exp.Anonymous() if node.name.lower() in VOLATILE:
                volatile.add(node.name.lower())
            case exp.Func() | exp.Column():
                time_dependent = time_dependent or reads_clock(node)
            case exp.TableSample():
                table_sample = True
            case exp.Select() | exp.SetOperation() | exp.Subquery() | exp.Values():
                limit_without_order = limit_without_order or (_is_limited(node) and not _is_ordered(node))
            case _:
                pass
    return Facts(
        volatile=tuple(sorted(volatile)),
        time_dependent=time_dependent,
        limit_without_order=limit_without_order,
        table_sample=table_sample,
        order_without_limit=_is_ordered(root) and not _is_limited_inside(root),
    )


def reads_clock(node: exp.Expr) -> bool:
    """Whether this node, and not one inside it, reads the clock."""
    match node:
        case exp.Anonymous():
            name = node.name.lower()
            if name in _CONVERSIONS:
                return any(map(_is_moment, node.expressions))
            return name in CLOCKS and not (name == "unix_timestamp" and node.expressions)
        case exp.Cast():
            return node.to.is_type(*exp.DataType.TEMPORAL_TYPES) and _is_moment(node.this)
        case exp.Column():
            return len(node.parts) == 1 and node.name.lower() in _BARE_CLOCKS and not node.this.args.get("quoted")
        case _:
            return isinstance(node, _CLOCK_NODES)


def _is_moment(node: exp.Expr) -> bool:
    return isinstance(node, exp.Literal) and node.is_string and node.name.lower().split()[:1] in _MOMENTS


def _is_limited(node: exp.Expr) -> bool:
    limit = node.args.get("limit")
    everything = isinstance(limit, exp.Limit) and isinstance(limit.expression, exp.Var)
    return (limit is not None and not everything) or node.args.get("offset") is not None


def _is_ordered(node: exp.Expr) -> bool:
    """Ordered here, or inside parentheses around the whole query."""
    while isinstance(node, exp.Subquery) and not node.args.get("order"):
        node = node.this
    return bool(node.args.get("order") or node.args.get("sort"))


def _is_limited_inside(node: exp.Expr) -> bool:
    while isinstance(node, exp.Subquery) and not _is_limited(node):
        node = node.this
    return _is_limited(node)
