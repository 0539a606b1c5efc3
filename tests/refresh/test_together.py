"""A table that several columns reach is looked up by one of them, and the others choose of what is found."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import StructField
from sqlglot import parse_one

from tests.lake.tables import shape
from trickle import Trickle
from trickle.lake.create import create
from trickle.lake.location import Location
from trickle.lake.snapshot import Snapshot
from trickle.operators import Expr, Face, Filter, Join, JoinKind, Operator, Output, Project, Scan, Step, UnionAll, col
from trickle.refresh import narrowing
from trickle.refresh.faces import Faces
from trickle.refresh.held import Held
from trickle.refresh.narrowing import Narrowing
from trickle.testing import check

WANTED = Scan("wanted", (("kind", "w_kind"), ("part", "w_part")), Face.CHANGE)
OFFERS = Scan("offers", (("kind", "o_kind"), ("part", "o_part")))
PARTS = Scan("offers", (("kind", "p_kind"), ("part", "p_part")))
CHANGED = pa.table({"kind": pa.array([1, 2, None], pa.int64()), "part": pa.array([10, 20, 30], pa.int64())})


def parse(text: str) -> Expr:
    return parse_one(text, read="spark")


@dataclass
class Narrowed:
    """What is looked up and held when a tree is narrowed."""

    snapshot: Snapshot
    many: int = 0
    """How many rows the leaves of every tree have."""
    steps: dict[str, Held] = field(default_factory=dict)
    looked_up: list[tuple[str, str, list[Any], dict[str, list[Any]] | None]] = field(default_factory=list)
    """The table, the column, its values, and values of several columns."""
    held: list[Operator] = field(default_factory=list)

    def of(self, tree: Operator) -> Narrowed:
        def values_of(leaf: Scan | Step, columns: Sequence[str]) -> pa.Table | None:
            rows = self.steps[leaf.name].table if isinstance(leaf, Step) else CHANGED
            return None if rows is None else rows.select(columns)

        def look_up(
            scan: Scan, key: StructField, keys: pa.ChunkedArray, nulls: bool, others: pa.Table | None
        ) -> Held | None:
            self.looked_up.append(
                (scan.fields[0][1], key.name, keys.to_pylist(), None if others is None else others.to_pydict())
            )
            return None

        def hold(giver: Operator) -> Held:
            self.held.append(giver)
            return Held(None, 1, pa.table({name: pa.array([7], pa.int64()) for name in giver.columns}))

        counts = [None, self.many, 1]
        Narrowing(lambda _: self.snapshot, values_of, look_up, lambda _: counts, hold, self.steps).tree(tree)
        return self

    @property
    def others(self) -> list[dict[str, list[Any]] | None]:
        return [others for *_, others in self.looked_up]


@pytest.fixture
def narrowed(tmp_path: Path) -> Narrowed:
    return Narrowed(create(Location.of(tmp_path), shape("kind long, part long, name string")))


def joined(condition: str, taker: Operator = OFFERS, giver: Operator = WANTED) -> Join:
    return Join(JoinKind.INNER, giver, taker, parse(condition))


class TestReachedTogether:
    TOGETHER = CHANGED.to_pydict()

    def test_values_are_those_that_are_there_together(self, narrowed: Narrowed) -> None:
        narrowed.of(joined("w_kind = o_kind AND w_part = o_part"))
        assert narrowed.others == [self.TOGETHER, self.TOGETHER]
        assert {column for _, column, *_ in narrowed.looked_up} == {"kind", "part"}

    def test_one_column_has_nothing_to_choose(self, narrowed: Narrowed) -> None:
        assert narrowed.of(joined("w_kind = o_kind AND w_part < o_part")).others == [None]
        assert narrowed.of(joined("w_kind = o_kind AND w_part = o_kind")).others == [None] * 3

    def test_null_that_counts_is_not_left_out(self, narrowed: Narrowed) -> None:
        assert narrowed.of(joined("w_kind <=> o_kind AND w_part = o_part")).others == [None, None]

    def test_where_null_counts_and_is_not_there_values_choose(self, narrowed: Narrowed) -> None:
        assert narrowed.of(joined("w_kind = o_kind AND w_part <=> o_part")).others == [self.TOGETHER] * 2

    def test_a_table_that_is_read_twice_is_not_cut_down(self, narrowed: Narrowed) -> None:
        """One side has the values in one column, the other in the other."""

        def turned(first: str, second: str) -> Operator:
            return Project(OFFERS, (Output("x", col(first)), Output("y", col(second))))

        both = UnionAll((turned("o_kind", "o_part"), turned("o_part", "o_kind")))
        found = narrowed.of(joined("w_kind = x AND w_part = y", both))
        assert found.others == [None] * 4

    def test_two_tables_of_a_join_have_one_column_each(self, narrowed: Narrowed) -> None:
        both = Join(JoinKind.INNER, OFFERS, PARTS, parse("o_part < p_part"))
        assert narrowed.of(joined("w_kind = o_kind AND w_part = p_part", both)).others == [None, None]

    def test_values_of_two_leaves_are_not_together(self, narrowed: Narrowed) -> None:
        narrowed.steps["more"] = Held(None, CHANGED.num_rows, CHANGED)
        more = Step("more", (("kind", "m_kind"), ("part", "m_part")))
        giver = Join(JoinKind.INNER, WANTED, more, parse("w_part < m_part"))
        assert narrowed.of(joined("w_kind = o_kind AND m_part = o_part", giver=giver)).others == [None, None]


class TestLeavesFew:
    """Many changed rows, of which a chosen table leaves few, are computed before a big table is looked up."""

    @pytest.fixture(autouse=True)
    def _big(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(narrowing, "MANY_ROWS", 10)
        monkeypatch.setattr(narrowing, "HOLD_ROWS", 0)
        monkeypatch.setattr(narrowing, "BIG_ROWS", 0)

    @staticmethod
    def chosen(condition: str, kind: JoinKind = JoinKind.INNER) -> Join:
        parts = Scan("offers", (("kind", "p_kind"), ("name", "p_name")))
        giver = Join(kind, WANTED, Filter(parts, parse(condition)), parse("w_kind = p_kind"), small="left")
        return joined("w_part = o_part", giver=giver)

    @pytest.mark.parametrize("kind", [JoinKind.INNER, JoinKind.SEMI])
    @pytest.mark.parametrize("condition", ["p_name = 'x'", "p_name LIKE 'x%'", "p_kind > 1 AND p_name IN ('x', 'y')"])
    def test_what_is_left_is_looked_up(self, narrowed: Narrowed, condition: str, kind: JoinKind) -> None:
        narrowed.many = 10
        tree = self.chosen(condition, kind)
        assert narrowed.of(tree).held == [tree.left]
        assert narrowed.looked_up[-1] == ("o_kind", "part", [7], None)

    @pytest.mark.parametrize(
        "tree",
        [
            chosen("p_kind > 1"),
            chosen("p_kind BETWEEN 1 AND 2"),
            chosen("NOT p_name = 'x'"),
            chosen("p_name = 'x'", JoinKind.LEFT),
            joined("w_part = o_part", giver=Filter(WANTED, parse("w_kind = 1"))),
        ],
    )
    def test_what_leaves_most_rows_is_not_worth_a_job(self, narrowed: Narrowed, tree: Join) -> None:
        narrowed.many = 1_000_000
        assert not narrowed.of(tree).held
        assert narrowed.looked_up[-1][2] == [10, 20, 30]

    def test_few_rows_are_not(self, narrowed: Narrowed) -> None:
        narrowed.many = 9
        assert not narrowed.of(self.chosen("p_name = 'x'")).held

    def test_a_table_that_is_not_big_is_not(self, narrowed: Narrowed, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(narrowing, "HOLD_ROWS", 1)
        narrowed.many = 10
        assert not narrowed.of(self.chosen("p_name = 'x'")).held


@pytest.fixture
def shop(t: Trickle) -> Trickle:
    t.sql("CREATE TABLE offers (kind INT, part INT, price INT); CREATE TABLE wanted (kind INT, part INT)")
    t.sql("CREATE TABLE kinds (kind INT, name STRING)")
    t.sql("INSERT INTO offers SELECT id % 4, id % 100, id FROM range(1000)")
    t.sql("INSERT INTO offers VALUES (NULL, 7, 1), (NULL, NULL, 2), (3, NULL, 3), (7, 3, 4)")
    t.sql("INSERT INTO kinds VALUES (0, 'x'), (1, 'y'), (2, 'x'), (3, NULL), (NULL, 'x')")
    return t


PLAIN = "SELECT w.kind, o.price FROM wanted w JOIN offers o ON w.kind = o.kind AND w.part = o.part"
OUTER = "SELECT w.kind, o.price FROM wanted w LEFT JOIN offers o ON w.kind = o.kind AND w.part = o.part"
SAFE = "SELECT w.kind, o.price FROM wanted w JOIN offers o ON w.kind <=> o.kind AND w.part <=> o.part"
HALF = "SELECT w.kind, o.price FROM wanted w JOIN offers o ON w.kind <=> o.kind AND w.part = o.part"
TURNED = """
    SELECT w.kind, o.price
    FROM wanted w
    JOIN (SELECT kind AS x, part AS y, price FROM offers UNION ALL SELECT part, kind, price FROM offers) o
    ON w.kind = o.x AND w.part = o.y
"""
ITSELF = """
    SELECT v.kind, o.price
    FROM wanted v JOIN wanted w ON v.part <= w.part JOIN offers o ON v.kind = o.kind AND w.part = o.part
"""
CHOSEN = """
    SELECT k.name, o.price
    FROM wanted w JOIN kinds k ON w.kind = k.kind JOIN offers o ON o.part = w.part
    WHERE k.name = 'x'
"""


@pytest.mark.parametrize("query", [PLAIN, OUTER, SAFE, HALF, TURNED, ITSELF, CHOSEN])
def test_refreshes_equal_recomputation(shop: Trickle, monkeypatch: pytest.MonkeyPatch, query: str) -> None:
    monkeypatch.setattr(narrowing, "MANY_ROWS", 5)
    monkeypatch.setattr(narrowing, "HOLD_ROWS", 0)
    monkeypatch.setattr(narrowing, "BIG_ROWS", 0)
    shop.create_stream_table("s", query, refresh_mode="DIFFERENTIAL")
    dice = random.Random(5)
    for turn in range(3):
        some = ", ".join(f"({dice.choice(['NULL', 0, 1, 2, 3])}, {dice.randrange(20)})" for _ in range(12))
        shop.sql(f"INSERT INTO wanted VALUES {some}, (NULL, NULL), (3, NULL), (3, 7), (7, 3)")
        shop.sql(f"DELETE FROM wanted WHERE part = {turn}")
        shop.sql(f"INSERT INTO offers VALUES ({turn}, {turn}, 5000), (NULL, {turn}, 5001)")
        shop.sql(f"UPDATE kinds SET name = 'x' WHERE kind = {turn}")
        assert shop.refresh_stream_table("s").action == "DIFFERENTIAL"
        check(shop)


def test_rows_with_one_of_two_values_stay_where_they_are(shop: Trickle, monkeypatch: pytest.MonkeyPatch) -> None:
    shop.create_stream_table("s", PLAIN, refresh_mode="DIFFERENTIAL")
    found: list[int] = []
    look_up = Faces._look_up

    def noted(self: Faces, *given: Any) -> Held | None:
        held = look_up(self, *given)
        found.append(-1 if held is None else held.rows)
        return held

    monkeypatch.setattr(Faces, "_look_up", noted)
    # Of part 4 and part 5 there are ten offers each, of one kind, and part 4 is wanted of another.
    shop.sql("INSERT INTO wanted VALUES (1, 4), (1, 5)")
    shop.refresh_stream_table("s")
    check(shop)
    assert found == [10]


def test_many_rows_are_held_when_a_chosen_table_leaves_few(shop: Trickle, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(narrowing, "MANY_ROWS", 30)
    monkeypatch.setattr(narrowing, "HOLD_ROWS", 0)
    monkeypatch.setattr(narrowing, "BIG_ROWS", 0)
    held: list[int] = []
    computed = Faces._computed

    def noted(self: Faces, part: Operator) -> Held:
        found = computed(self, part)
        held.append(found.rows)
        return found

    monkeypatch.setattr(Faces, "_computed", noted)
    shop.create_stream_table("s", CHOSEN, refresh_mode="DIFFERENTIAL")
    for rows, expected in ((20, []), (40, [20])):
        shop.sql(f"INSERT INTO wanted SELECT id % 4, id FROM range({rows})")
        shop.refresh_stream_table("s")
        check(shop)
        assert held == expected, rows


def test_parts_are_put_together_whether_or_not_they_may_have_null() -> None:
    sure = pa.table([pa.array([1, 2])], schema=pa.schema([pa.field("k", pa.int64(), nullable=False)]))
    perhaps = pa.table({"key": pa.array([None, 3], pa.int64())})
    found = narrowing.together([sure, perhaps], ["k"])
    assert found is not None
    assert found.to_pydict() == {"k": [1, 2, None, 3]}
    assert narrowing.together([sure, pa.table({"k": ["a"]})], ["k"]) is None
