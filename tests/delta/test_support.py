"""What the page of supported SQL says is what the builder and the stages make of its examples."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlglot import exp

from trickle.delta.groups import Groups
from trickle.delta.parts import summed_argument
from trickle.delta.plan import OWN
from trickle.delta.stages import split, unrestricted
from trickle.delta.support import SECTIONS, TABLES, VIEWS, Kept, Row
from trickle.errors import UnsupportedError, UnsupportedQuery
from trickle.operators import (
    Aggregate,
    Filter,
    Generate,
    Join,
    JoinKind,
    Operator,
    Project,
    Recursion,
    Scan,
    TopK,
    UnionAll,
    Values,
    Window,
    walk,
)
from trickle.operators.clock import NOW
from trickle.sql import query
from trickle.sql.build import build_tree
from trickle.sql.canonical import canonical
from trickle.sql.clock import bind_clock
from trickle.sql.rewrites import rewrite

PAGES = Path(__file__).parents[2] / "docs" / "operators"
ROWS = [row for section in SECTIONS for row in section.rows]
KEPT = [row for row in ROWS if row.kept not in (Kept.FULL, Kept.REFUSED)]
NODES = {
    "aggregate": Aggregate,
    "filter": Filter,
    "generate": Generate,
    "project": Project,
    "recursion": Recursion,
    "scan": Scan,
    "top-k": TopK,
    "union-all": UnionAll,
    "values": Values,
    "window": Window,
}
JOINS = {
    JoinKind.INNER: "inner-join",
    JoinKind.LEFT: "left-join",
    JoinKind.SEMI: "semi-join",
    JoinKind.ANTI: "semi-join",
}


def tree_of(row: Row) -> Operator:
    settled = canonical(row.example, TABLES, views=VIEWS)
    assert bool(settled.notices) is row.settled
    return bind_clock(rewrite(build_tree(settled.text, TABLES, views=VIEWS)))


def types_in(aggregate: Aggregate) -> list[tuple[str, str]]:
    """The types of plain columns and of casts; what else is summed are the ones and noughts of set operations."""
    known = {
        name: TABLES[table][column]
        for node in walk(aggregate)
        if isinstance(node, Scan)
        for table in TABLES
        if str(table) == node.table
        for column, name in node.fields
    }
    found = [(each.name, summed_argument(each)) for each in aggregate.calls]
    return [
        (name, value.to.sql("spark").lower() if isinstance(value, exp.Cast) else known.get(value.name, "int"))
        for name, value in found
        if value is not None
    ]


def kept_by(tree: Operator) -> Kept:
    stages = split(tree, types_in, OWN)
    by_time = any(isinstance(node, Project) and NOW in node.used for node in walk(tree))
    if by_time or any(unrestricted(stage) for stage in stages):
        return Kept.WHOLE
    keepings = [stage.keeping for stage in stages]
    again = [part.anew for keeping in keepings if isinstance(keeping, Groups) for part in keeping.parts]
    if exp.true() in again:
        return Kept.GROUPS
    return Kept.CHANGES if all(one == exp.false() for one in again) else Kept.SOMETIMES


def pages_of(tree: Operator) -> set[str]:
    nodes = list(walk(tree))
    return {page for page, kind in NODES.items() if any(isinstance(node, kind) for node in nodes)} | {
        JOINS[node.kind] for node in nodes if isinstance(node, Join)
    }


def called(row: Row) -> str:
    return row.construct


@pytest.mark.parametrize("row", KEPT, ids=called)
def test_an_example_is_kept_as_its_row_says(row: Row) -> None:
    tree = tree_of(row)
    assert kept_by(tree) is row.kept
    assert set(row.operators) <= pages_of(tree)
    assert not row.error


@pytest.mark.parametrize("row", [row for row in ROWS if row.kept is Kept.FULL], ids=called)
def test_an_example_that_is_kept_in_full_only_says_why(row: Row) -> None:
    found = query(row.example)
    views = [query(VIEWS[name]) for name in found.tables if name in VIEWS]
    if found.volatile or any(view.is_unsteady for view in views):
        assert row.error in "the query depends on chance, or a view that it reads on the clock"
        return
    with pytest.raises(UnsupportedError, match=row.error):
        tree_of(row)


@pytest.mark.parametrize("row", [row for row in ROWS if row.kept is Kept.REFUSED], ids=called)
def test_an_example_that_is_refused_is_recognised_from_its_text(row: Row) -> None:
    if row.error == "nested":
        with pytest.raises(UnsupportedQuery, match=row.error):
            query(row.example)
        return
    found = query(row.example)
    reasons = {
        "LIMIT without ORDER BY": found.limit_without_order,
        "TABLESAMPLE": found.table_sample,
        "reads its sources as they are": any(ref.version is not None for ref in found.refs),
    }
    assert reasons[row.error]


def test_constructs_differ_and_every_operator_page_is_named() -> None:
    assert len({row.construct for row in ROWS}) == len(ROWS)
    named = {page for row in ROWS for page in row.operators}
    assert named == {*NODES, *JOINS.values()}
    assert [page for page in named if not (PAGES / f"{page}.md").is_file()] == []
