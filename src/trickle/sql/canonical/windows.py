"""Window functions whose result depends on which of several equal rows comes first.

    row_number, ntile, lag, lead           the window's order is followed by all columns that tell the rows apart
    aggregates over ROWS frames            likewise, unless the frame is the whole partition
    first_value, any_value                 likewise when the frame begins with the partition,
    last_value                             or ends with it
    both, over other RANGE frames          the order may not grow, since equal rows are in or out of the frame together:
                                           min_by / max_by of the value, by the order and all columns
    nth_value                              as first_value; over RANGE frames that end early it is refused
    collect_list, array_agg, collect_set   over a whole partition sorted; over ROWS as above; else refused
    listagg

rank, dense_rank, percent_rank, cume_dist, and other aggregates over RANGE frames treat equal rows alike: they stay.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sqlglot import exp

from trickle.errors import UnsupportedQuery
from trickle.sql.build.calls import call, function_name
from trickle.sql.canonical.aggregates import FIRST, LAST, LISTS, ascending, check_orderable, in_order, ranked
from trickle.sql.canonical.columns import Columns
from trickle.sql.canonical.ties import missing, own_nodes, row_terms

_PLACES = frozenset(("lag", "lead", "ntile", "row_number"))
# What sqlglot calls otherwise.
_NAMES = {"argmax": "max_by", "argmin": "min_by", "groupconcat": "listagg"}
_ALIKE = frozenset(("cume_dist", "dense_rank", "percent_rank", "rank"))


def settle_windows(select: exp.Select, columns: Columns) -> Iterator[str]:
    """Give every window function of a SELECT one result, in place; yields what was done, in words."""
    named = {window.name.lower(): window for window in select.args.get("windows") or ()}
    for node in reversed(list(own_nodes(select))):
        if isinstance(node, exp.Window) and node.args.get("over"):
            yield from _Call(node, _definition(node, named), select, columns).settle()


def _definition(node: exp.Window, named: dict[str, exp.Window]) -> exp.Window:
    name = node.args.get("alias")
    return named.get(name.name.lower(), node) if name is not None else node


@dataclass(frozen=True)
class _Frame:
    """``rows`` is None where the window has no frame of its own."""

    rows: bool | None
    from_start: bool
    to_end: bool

    @staticmethod
    def of(window: exp.Window) -> _Frame:
        spec = window.args.get("spec")
        if spec is None:
            return _Frame(None, from_start=True, to_end=not window.args.get("order"))
        start, end = spec.args.get("start"), spec.args.get("end")
        from_start = start == "UNBOUNDED" and str(spec.args.get("start_side")).upper() == "PRECEDING"
        to_end = end == "UNBOUNDED" and str(spec.args.get("end_side")).upper() == "FOLLOWING"
        return _Frame(str(spec.args.get("kind")).upper() == "ROWS", from_start, to_end)


@dataclass(frozen=True)
class _Call:
    """A window function: where it stands, and the window it has, perhaps by name."""

    node: exp.Window
    window: exp.Window
    select: exp.Select
    columns: Columns

    @property
    def function(self) -> exp.Expr:
        inner: exp.Expr = self.node.this
        while isinstance(inner, exp.Filter | exp.IgnoreNulls | exp.RespectNulls):
            inner = inner.this
        return inner

    @property
    def name(self) -> str:
        return function_name(self.function) or _NAMES.get(self.function.key, self.function.key)

    @property
    def order(self) -> list[exp.Ordered]:
        order = self.window.args.get("order")
        return list(order.expressions) if order is not None else []

    def settle(self) -> Iterator[str]:
        frame = _Frame.of(self.window)
        name = self.name
        if name in _ALIKE:
            return
        if name in _PLACES:
            yield from self._ordered_by_all()
        elif name in FIRST:
            yield from self._ordered_by_all() if frame.rows or frame.from_start else self._extreme(first=True)
        elif name in LAST:
            yield from self._ordered_by_all() if frame.rows or frame.to_end else self._extreme(first=False)
        elif name == "nth_value":
            if not (frame.rows or frame.to_end):
                self._refuse_ties()
            yield from self._ordered_by_all()
        elif name in LISTS or name == "listagg":
            yield from self._list(frame)
        elif frame.rows and not (frame.from_start and frame.to_end):
            yield from self._ordered_by_all()

    def _missing(self) -> list[exp.Expr]:
        present = [term.this for term in self.order] + list(self.window.args.get("partition_by") or ())
        return missing(row_terms(self.select, self.columns, f"{self.name}()"), present)

    def _ordered_by_all(self) -> Iterator[str]:
        more = self._missing()
        if not more:
            return
        terms = [*(term.copy() for term in self.order), *map(ascending, more)]
        self._own_window(order=exp.Order(expressions=terms), frame=_Frame.of(self.window))
        yield f"{self.name}() has ties: ordered by all columns as well"

    def _own_window(self, order: exp.Order, frame: _Frame) -> None:
        """The window written out in the call, with another order."""
        for key in ("partition_by", "spec"):
            value = self.window.args.get(key)
            self.node.set(key, [each.copy() for each in value] if isinstance(value, list) else value and value.copy())
        self.node.set("alias", None)
        self.node.set("order", order)
        if frame.rows is None and frame.to_end:
            # Without an order the frame was the whole partition; with one it would end at the row.
            sides = {"start_side": "PRECEDING", "end_side": "FOLLOWING"}
            self.node.set("spec", exp.WindowSpec(kind="ROWS", start="UNBOUNDED", end="UNBOUNDED", **sides))

    def _extreme(self, *, first: bool) -> Iterator[str]:
        more = self._missing()
        if not more:
            return
        down = {bool(term.args.get("desc")) for term in self.order}
        usual = all(bool(term.args.get("nulls_first")) is not bool(term.args.get("desc")) for term in self.order)
        if len(down) != 1 or not usual:
            self._refuse_ties()
        value, *options = self.function.expressions
        ignored = isinstance(self.node.this, exp.IgnoreNulls) or options == [exp.true()]
        values: list[exp.Expr] = [*(term.this for term in self.order), *more]
        smallest = first is not down.pop()
        by = (exp.ArgMin if smallest else exp.ArgMax)(
            this=value.copy(), expression=ranked(values[0], values[1:], present=value if ignored else None)
        )
        notice = f"{self.name}() has ties: decided by all columns"
        self.node.set("this", by)
        yield notice

    def _list(self, frame: _Frame) -> Iterator[str]:
        if frame.rows and not (frame.from_start and frame.to_end and self.name != "collect_set"):
            yield from self._ordered_by_all()
        elif self.order and self.name != "collect_set" and self._missing():
            self._refuse_ties()
        if self.name not in LISTS or (self.order and self.name != "collect_set") or in_order(self.node):
            return
        value = self.function.expressions[0]
        check_orderable(value.expressions[0] if isinstance(value, exp.Distinct) else value, self.columns, self.name)
        self.node.replace(call("sort_array", self.node.copy()))
        yield f"{self.name}() has no order: it is sorted"

    def _refuse_ties(self) -> None:
        raise UnsupportedQuery(
            f"{self.name}() has no fixed result: its window's order may have ties",
            detail=self.node.sql("spark")[:120],
            hint="write a ROWS frame, or order by columns that tell the rows apart",
        )
