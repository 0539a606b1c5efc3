"""Recursions kept by their changes, next to DuckDB's own WITH RECURSIVE on the user's text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trickle.algebra.names import TableName
from trickle.algebra.weights import FILE, HIDDEN, ROW, WEIGHT
from trickle.delta.optimize import optimized
from trickle.delta.optimize.prune import is_nothing, prune, prune_plan
from trickle.delta.plan import OWN, Plan
from trickle.delta.stages import Stage, split, unrestricted
from trickle.operators import Face, Operator, Scan, walk
from trickle.sql.build import build_tree
from trickle.sql.rewrites import rewrite
from trickle.testing.duck import Duck, applied, multiset

Edges = Sequence[tuple[int | None, int | None]]

SCHEMAS = {
    "roots": {"root": "bigint"},
    "edges": {"src": "bigint", "dst": "bigint"},
    "parts": {"part": "bigint", "sub": "bigint", "n": "bigint"},
}

PATHS = """WITH RECURSIVE p(a, b) AS (
    SELECT src, dst FROM edges UNION SELECT p.a, e.dst FROM p JOIN edges e ON p.b = e.src
) SELECT a, b FROM p"""
REACHED = """WITH RECURSIVE p(a) AS (
    SELECT root FROM roots UNION SELECT e.dst FROM p JOIN edges e ON p.a = e.src
) SELECT a FROM p"""


class Quick(Duck):
    """Equal trees are written as SQL once: most of the time goes there."""

    def __init__(self) -> None:
        super().__init__()
        self._connection.execute("PRAGMA disable_optimizer")
        self._written: dict[Operator, str] = {}

    def sql(self, tree: Operator, *, pretty: bool = False) -> str:
        if tree not in self._written:
            self._written[tree] = super().sql(tree, pretty=pretty)
        for node in walk(tree):
            if isinstance(node, Scan):
                # The places of rows are made for the rows that are there now.
                self._name_of(node)
        return self._written[tree]


class Kept:
    """A query kept on DuckDB, each plan as it is written and as it is rewritten."""

    def __init__(self, duck: Duck, sql: str, tables: Mapping[str, Sequence[Sequence[Any]]]) -> None:
        self.duck, self.sql = duck, sql
        self.duck.clear()
        self.rows = {name: table(name, rows) for name, rows in tables.items()}
        for name, rows in self.rows.items():
            duck.load_states(name, rows, rows)
        schemas = {TableName.of([name]): SCHEMAS[name] for name in tables}
        self.stages = split(rewrite(build_tree(sql, schemas, standard=True)), lambda _: (), OWN)
        self.stored: dict[str, pa.Table] = {}
        for stage in self.stages:
            rows = duck.run(stage.keeping.whole())
            self._store(stage, rows, rows)
        self.check()

    def refresh(self, **tables: Sequence[Sequence[Any]]) -> None:
        unchanged = set(self.rows) - set(tables)
        for name, old in list(self.rows.items()):
            self.rows[name] = table(name, tables[name]) if name in tables else old
            self.duck.load_states(name, old, self.rows[name])
        for stage in self.stages:
            old = self.stored[stage.table]
            self.duck.load(OWN, Face.OLD, old)
            plan = stage.keeping.change()
            written, quick = self._run(plan), self._run(optimized(prune_plan(plan, unchanged)))
            assert multiset(written) == multiset(quick)
            assert set(quick[WEIGHT].to_pylist()) <= {1, -1}
            change = quick.drop_columns([name for name in (FILE, ROW, HIDDEN) if name in quick.column_names])
            new = applied(old, change)
            assert min(new.values(), default=1) > 0
            rows = pa.table(
                [pa.array([row[n] for row in new.elements()], kind) for n, kind in enumerate(old.schema.types)],
                names=old.schema.names,
            )
            self._store(stage, old, rows)
        self.check()

    def check(self) -> None:
        own = self.stages[-1]
        shown = self.duck.text(self.sql)
        assert multiset(self.stored[own.table].select(shown.column_names)) == multiset(shown)

    @property
    def shown(self) -> list[tuple[Any, ...]]:
        return sorted(multiset(self.stored[self.stages[-1].table]).elements(), key=repr)

    def _store(self, stage: Stage, old: pa.Table, new: pa.Table) -> None:
        self.stored[stage.table] = new
        self.duck.load_states(stage.table, old, new)

    def _run(self, plan: Plan) -> pa.Table:
        empty: list[str] = []
        for step in plan.steps:
            tree = prune(step.tree, (), empty)
            rows = None if is_nothing(tree) else self.duck.run(tree)
            if rows is None or not rows.num_rows:
                empty.append(step.name)
            else:
                self.duck.bind(step.name, rows)
        return self.duck.run(prune(plan.result, (), empty))


def table(name: str, rows: Sequence[Sequence[Any]]) -> pa.Table:
    columns = SCHEMAS[name]
    return pa.table([pa.array([row[n] for row in rows], pa.int64()) for n in range(len(columns))], names=list(columns))


@pytest.fixture(scope="module")
def duck() -> Iterator[Duck]:
    with Quick() as found:
        yield found


def test_a_new_edge_reaches_on_and_an_old_one_no_longer(duck):
    kept = Kept(duck, REACHED, {"roots": [(1,)], "edges": [(1, 2), (2, 3), (4, 5)]})
    kept.refresh(edges=[(1, 2), (2, 4), (4, 5)])
    assert kept.shown == [(1,), (2,), (4,), (5,)]


def test_an_edge_with_an_alternative_keeps_what_it_reached(duck):
    kept = Kept(duck, REACHED, {"roots": [(1,)], "edges": [(1, 2), (2, 4), (1, 3), (3, 4), (4, 5)]})
    kept.refresh(edges=[(1, 2), (1, 3), (3, 4), (4, 5)])
    assert kept.shown == [(1,), (2,), (3,), (4,), (5,)]


def test_a_cycle_that_loses_its_entry_does_not_hold_itself_up(duck):
    kept = Kept(duck, REACHED, {"roots": [(1,)], "edges": [(1, 2), (2, 3), (3, 4), (4, 2)]})
    kept.refresh(edges=[(2, 3), (3, 4), (4, 2)])
    assert kept.shown == [(1,)]


def test_a_row_that_trades_its_derivation_for_one_that_rests_on_itself_goes(duck):
    # 2 loses 1 -> 2 and gains 3 -> 2, where 3 is reached from 2 alone: as many derivations as before.
    kept = Kept(duck, REACHED, {"roots": [(1,)], "edges": [(1, 2), (2, 3)]})
    kept.refresh(edges=[(3, 2), (2, 3)])
    assert kept.shown == [(1,)]


def test_an_edge_that_comes_at_a_node_that_goes_leads_nowhere(duck):
    kept = Kept(duck, REACHED, {"roots": [(1,)], "edges": [(1, 2)]})
    kept.refresh(edges=[(2, 3), (3, 4)])
    assert kept.shown == [(1,)]


def test_a_cycle_turned_around(duck):
    kept = Kept(duck, PATHS, {"edges": [(1, 2), (2, 3), (3, 1), (3, 4)]})
    kept.refresh(edges=[(2, 1), (3, 2), (1, 3), (3, 4)])
    assert (1, 4) in kept.shown
    kept.refresh(edges=[(2, 1), (3, 2), (3, 4)])
    assert kept.shown == [(2, 1), (3, 1), (3, 2), (3, 4)]


def test_what_is_lost_and_found_again_on_a_new_path_does_not_change(duck):
    kept = Kept(duck, REACHED, {"roots": [(1,)], "edges": [(1, 2), (2, 3)]})
    duck.load_states("edges", table("edges", [(1, 2), (2, 3)]), table("edges", [(1, 9), (9, 2), (2, 3)]))
    duck.load(OWN, Face.OLD, kept.stored[OWN])
    change = kept._run(kept.stages[-1].keeping.change())
    assert change.select(["a", WEIGHT]).to_pylist() == [{"a": 9, WEIGHT: 1}]


def test_null_is_a_node_that_no_edge_leaves(duck):
    kept = Kept(duck, PATHS, {"edges": [(1, None), (None, 2), (2, 3)]})
    kept.refresh(edges=[(1, None), (2, 3), (3, None), (None, None)])
    kept.refresh(edges=[(1, None), (None, None)])
    assert kept.shown == [(1, None), (None, None)]


def test_duplicate_edges_are_one_until_the_last_goes(duck):
    kept = Kept(duck, PATHS, {"edges": [(1, 2), (1, 2), (2, 3), (2, 3)]})
    kept.refresh(edges=[(1, 2), (2, 3), (2, 3)])
    assert kept.shown == [(1, 2), (1, 3), (2, 3)]
    kept.refresh(edges=[(2, 3), (2, 3)])
    assert kept.shown == [(2, 3)]


def test_parts_explode_with_their_counts(duck):
    kept = Kept(
        duck,
        """WITH RECURSIVE b(part, sub, n) AS (
            SELECT part, sub, n FROM parts UNION ALL
            SELECT b.part, p.sub, b.n * p.n FROM b JOIN parts p ON b.sub = p.part
        ) SELECT part, sub, sum(n) AS n FROM b GROUP BY part, sub""",
        {"parts": [(1, 2, 3), (2, 4, 5), (1, 3, 2), (3, 4, 1)]},
    )
    assert (1, 4, 17) in [row[:3] for row in kept.shown]
    kept.refresh(parts=[(1, 2, 3), (2, 4, 5), (1, 3, 2), (4, 5, 2)])
    assert (1, 5, 30) in [row[:3] for row in kept.shown]


@pytest.mark.parametrize(
    "sql, reasons",
    [
        (PATHS, ()),
        (
            "WITH RECURSIVE n(i) AS (SELECT root FROM roots UNION ALL SELECT i + 1 FROM n WHERE i < 3) SELECT i FROM n",
            ("a recursive common table expression with UNION ALL",),
        ),
        (
            """WITH RECURSIVE p(a, b) AS (SELECT src, dst FROM edges UNION
            SELECT p.a, q.b FROM p JOIN p q ON p.b = q.a) SELECT a, b FROM p""",
            ("a recursive common table expression whose step has a join of it with itself",),
        ),
        (
            """WITH RECURSIVE n(i) AS (SELECT root FROM roots UNION
            SELECT max(i) + 1 FROM n HAVING max(i) < 5) SELECT i FROM n""",
            ("a recursive common table expression whose step has an aggregate over it",),
        ),
    ],
)
def test_what_is_computed_anew_is_told(sql, reasons):
    schemas = {TableName.of([name]): columns for name, columns in SCHEMAS.items()}
    stages = split(rewrite(build_tree(sql, schemas)), lambda _: (), OWN)
    assert tuple(reason for stage in stages for reason in unrestricted(stage)) == reasons


def test_nothing_is_read_when_nothing_that_matters_changed(duck):
    kept = Kept(duck, REACHED, {"roots": [(1,)], "edges": [(1, 2)]})
    plan = optimized(prune_plan(kept.stages[-1].keeping.change(), {"roots", "edges"}))
    assert plan.steps == ()
    assert is_nothing(plan.result)


def test_insertions_alone_take_no_step_of_deletions(duck):
    kept = Kept(duck, REACHED, {"roots": [(1,)], "edges": [(1, 2)]})
    ran: list[str] = []
    bind = duck.bind

    def noted(name, rows):
        ran.append(name)
        bind(name, rows)

    duck.bind = noted
    try:
        kept.refresh(edges=[(1, 2), (2, 3)])
    finally:
        del duck.bind
    assert {name for name in ran if not name.startswith("recursion")} == {"touched", "fresh", "coming"}


QUERIES = {
    "paths": PATHS,
    "reached": REACHED,
    "from the left": """WITH RECURSIVE p(a, b) AS (
        SELECT src, dst FROM edges UNION SELECT e.src, p.b FROM p JOIN edges e ON p.a = e.dst) SELECT b, a FROM p""",
    "both ways": """WITH RECURSIVE p(a) AS (
        SELECT root FROM roots UNION (SELECT e.dst FROM p JOIN edges e ON p.a = e.src UNION ALL
        SELECT e.src FROM p JOIN edges e ON p.a = e.dst WHERE e.src > 2)) SELECT a FROM p""",
    "with a depth": """WITH RECURSIVE p(a, n) AS (
        SELECT root, 0 FROM roots UNION SELECT e.dst, n + 1 FROM p JOIN edges e ON p.a = e.src WHERE n < 4)
        SELECT a, n FROM p""",
    "two edges a step": """WITH RECURSIVE p(a) AS (
        SELECT root FROM roots UNION
        SELECT f.dst FROM p JOIN edges e ON p.a = e.src JOIN edges f ON e.dst = f.src) SELECT a FROM p""",
    "without dead ends": """WITH RECURSIVE p(a) AS (
        SELECT root FROM roots UNION SELECT e.dst FROM p JOIN edges e ON p.a = e.src
        WHERE NOT EXISTS (SELECT 1 FROM roots r WHERE r.root = e.dst)) SELECT a FROM p""",
    "left join": """WITH RECURSIVE p(a, b) AS (
        SELECT root, root FROM roots UNION
        SELECT p.b, e.dst FROM p LEFT JOIN edges e ON p.b = e.src) SELECT a, b FROM p""",
    "nodes that are pointed to": """WITH RECURSIVE p(a) AS (
        SELECT root FROM roots UNION
        SELECT e.dst FROM edges e WHERE e.src IN (SELECT a FROM p)) SELECT a FROM p""",
    "distinct inside": """WITH RECURSIVE p(a) AS (
        SELECT root FROM roots UNION
        SELECT DISTINCT e.dst FROM p JOIN edges e ON p.a = e.src) SELECT a FROM p""",
    "fewer columns": """WITH RECURSIVE p(a, b) AS (
        SELECT src, dst FROM edges UNION SELECT p.a, e.dst FROM p JOIN edges e ON p.b = e.src)
        SELECT a + 1 AS c FROM p""",
    "grouped above": """WITH RECURSIVE p(a, b) AS (
        SELECT src, dst FROM edges UNION SELECT p.a, e.dst FROM p JOIN edges e ON p.b = e.src)
        SELECT a, count(*) AS n FROM p GROUP BY a""",
    "grouped below": """WITH RECURSIVE p(a) AS (
        SELECT max(root) FROM roots UNION SELECT e.dst FROM p JOIN
        (SELECT src, max(dst) AS dst FROM edges GROUP BY src) e ON p.a = e.src) SELECT a FROM p""",
    "twice": """WITH RECURSIVE p(a, b) AS (
        SELECT src, dst FROM edges UNION SELECT p.a, e.dst FROM p JOIN edges e ON p.b = e.src)
        SELECT p.a, q.b FROM p JOIN p q ON p.b = q.a""",
    "one over the other": """WITH RECURSIVE p(a) AS (
        SELECT root FROM roots UNION SELECT e.dst FROM p JOIN edges e ON p.a = e.src),
        q(a, n) AS (SELECT a, 0 FROM p UNION SELECT p.a, n + 1 FROM q JOIN p ON p.a > q.a WHERE n < 3)
        SELECT a, n FROM q""",
    "counted": """WITH RECURSIVE p(a, n) AS (
        SELECT root, 0 FROM roots UNION ALL SELECT e.dst, n + 1 FROM p JOIN edges e ON p.a = e.src WHERE n < 3)
        SELECT a, n FROM p""",
    "joined with itself": """WITH RECURSIVE p(a, b) AS (
        SELECT src, dst FROM edges UNION SELECT p.a, q.b FROM p JOIN p q ON p.b = q.a) SELECT a, b FROM p""",
}

nodes = st.one_of(st.none(), st.integers(1, 5), st.integers(1, 5), st.integers(1, 5))
graphs = st.fixed_dictionaries(
    {"roots": st.lists(st.tuples(nodes), max_size=3), "edges": st.lists(st.tuples(nodes, nodes), max_size=9)}
)


@pytest.mark.parametrize("name", QUERIES)
@settings(max_examples=8)
@given(states=st.lists(graphs, min_size=2, max_size=4), data=st.data())
def test_any_graph_after_any_change(duck, name, states, data):
    first, *others = states
    kept = Kept(duck, QUERIES[name], first)
    for state in others:
        # Most refreshes change little: a part of what there is stays.
        edges = data.draw(st.sampled_from([state["edges"], [*kept.rows["edges"].to_pylist()]]))
        mixed = [tuple(edge.values()) if isinstance(edge, dict) else edge for edge in edges]
        kept.refresh(edges=[*mixed, *state["edges"][:2]], roots=state["roots"])
