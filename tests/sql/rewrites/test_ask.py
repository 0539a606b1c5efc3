"""Groups that are joined with chosen rows are made of those rows alone, and of all rows where that is not sure."""

from __future__ import annotations

from collections.abc import Mapping

import duckdb
import pytest
from sqlglot import exp

from tests.sql.rewrites.relations import SCHEMAS, rows_of, shown, typed
from trickle.algebra.names import TableName
from trickle.operators import (
    Aggregate,
    Filter,
    Join,
    JoinKind,
    Operator,
    Output,
    Recursion,
    Scan,
    UnionAll,
    col,
    equal,
    show,
    walk,
)
from trickle.sql.build import build_tree
from trickle.sql.lower import lower
from trickle.sql.rewrites import rewrite
from trickle.sql.rewrites.semi import semi_joined

LEAST = "(SELECT min(b) FROM u WHERE u.a = t.a)"


def restricted(tree: Operator) -> list[str]:
    """What restricts the input of groups, as text."""
    groups = [node for node in walk(tree) if isinstance(node, Aggregate)]
    joins = [node for group in groups for node in walk(group.input) if isinstance(node, Join)]
    return [show(join.right) for join in joins if join.kind is JoinKind.SEMI]


def asked(text: str, schemas: Mapping[TableName, Mapping[str, str]] = SCHEMAS) -> list[str]:
    return restricted(rewrite(build_tree(text, schemas, standard=True), schemas))


def test_a_correlated_aggregate_is_made_for_the_chosen_rows() -> None:
    text = (
        "SELECT l.id FROM t l JOIN u p ON p.a = l.a WHERE p.s = 'x' AND p.id IN (1, 2) AND p.b > 0"
        " AND l.b < (SELECT avg(b) FROM t WHERE t.a = p.a)"
    )
    assert (
        shown(text, typed)
        == """\
project id
  inner join on a_2 = a_1 AND b < avg_1
    inner join on a_1 = a
      scan t new: id, a, b
      filter s_1 = 'x' AND id_1 IN (1, 2) AND b_1 > 0
        scan u new: id as id_1, a as a_1, b as b_1, s as s_1
    aggregate by a_2: AVG(b_2) as avg_1
      semi join on a_2 = a_3
        scan t new: a as a_2, b as b_2
        project a_3
          filter s_2 = 'x' AND id_2 IN (1, 2) AND b_3 > 0
            scan u new: id as id_2, a as a_3, b as b_3, s as s_2"""
    )


def test_one_of_several_joined_tables_chooses() -> None:
    text = (
        "SELECT p.id FROM t p, u s, v n WHERE p.a = s.a AND s.b = n.b AND p.s LIKE '%x' AND n.s = 'y'"
        " AND s.id = (SELECT min(w.id) FROM u w JOIN v m ON w.b = m.b WHERE m.s = 'y' AND w.a = p.a)"
    )
    (found,) = asked(text)
    project, condition, table = (line.strip() for line in found.splitlines())
    assert project.startswith("project a_")
    assert condition.endswith(" LIKE '%x'")
    assert table.startswith("scan t new: a as ")


@pytest.mark.parametrize("condition", ["t.s = 'x'", "t.s IN ('x', 'y')", "t.s LIKE 'x%'", "t.s <=> 'x'"])
def test_conditions_that_choose(condition: str) -> None:
    assert len(asked(f"SELECT id FROM t WHERE {condition} AND b = {LEAST}")) == 1


@pytest.mark.parametrize(
    "condition", ["t.b > 1", "t.b BETWEEN 1 AND 2", "t.s <> 'x'", "NOT t.s = 'x'", "t.s IS NOT NULL", "TRUE"]
)
def test_conditions_that_leave_most_rows_do_not(condition: str) -> None:
    assert not asked(f"SELECT id FROM t WHERE {condition} AND b = {LEAST}")


def test_rows_that_are_kept_without_a_group_ask_for_theirs() -> None:
    assert len(asked("SELECT id, (SELECT count(*) FROM u WHERE u.a = t.a) AS n FROM t WHERE s = 'x'")) == 1


def test_an_anti_join_asks_too() -> None:
    repeated = "SELECT 1 FROM u WHERE u.a = t.a GROUP BY u.a HAVING count(*) > 1"
    assert len(asked(f"SELECT id FROM t WHERE s = 'x' AND NOT EXISTS ({repeated})")) == 1


GROUPS = "(SELECT a, count(*) AS n FROM u GROUP BY a) x"


def test_groups_on_the_left() -> None:
    assert len(asked(f"SELECT x.n, t.id FROM {GROUPS} JOIN t ON t.a = x.a WHERE t.s = 'x'")) == 1
    assert not asked(f"SELECT x.n, t.id FROM {GROUPS} LEFT JOIN t ON t.a = x.a AND t.s = 'x'"), "all of them stay"


def test_a_condition_of_a_left_join_leaves_out_no_row_that_asks() -> None:
    assert not asked(f"SELECT t.id, x.n FROM t LEFT JOIN {GROUPS} ON x.a = t.a AND t.s = 'x'")


def test_the_right_of_a_left_join_has_values_of_its_own() -> None:
    text = f"SELECT t.id, x.n FROM t LEFT JOIN v ON v.b = t.b AND v.s = 'x' LEFT JOIN {GROUPS} ON x.a = v.a"
    assert not asked(text)


def test_null_that_equals_null_is_not_asked_for() -> None:
    assert not asked("SELECT id FROM t WHERE s = 'x' AND b = (SELECT min(b) FROM u WHERE u.a <=> t.a)")


def test_groups_are_left_out_by_their_keys_only() -> None:
    assert not asked("SELECT t.id FROM t JOIN (SELECT a, max(b) AS m FROM u GROUP BY a) x ON x.m = t.b WHERE t.s = 'x'")


@pytest.mark.parametrize("condition", ["t.id < year(current_date())", "rand() < 0.5"])
def test_what_is_not_steady_is_left_out(condition: str) -> None:
    (found,) = asked(f"SELECT id FROM t WHERE s = 'x' AND {condition} AND b = {LEAST}")
    assert "filter s_1 = 'x'\n" in found, "no row that asks may be missing later"
    assert not asked(f"SELECT id FROM t WHERE {condition.replace('<', '=')} AND b = {LEAST}")


def test_the_engine_restricts_a_recursion_by_itself() -> None:
    inner = f"SELECT v.a FROM v JOIN {GROUPS} ON x.a = v.a WHERE v.s = 'x'"
    assert len(asked(inner)) == 1
    step = f"SELECT w.a + 1 FROM r JOIN ({inner}) w ON w.a = r.n"
    tree = typed(build_tree(f"WITH RECURSIVE r(n) AS (SELECT a FROM t UNION {step}) SELECT n FROM r", SCHEMAS))
    assert [node for node in walk(tree) if isinstance(node, Recursion)]
    assert not restricted(tree)


class TestPassedOn:
    """A table without conditions is restricted by another one, and its values are those of both."""

    JOINED = "SELECT t.id FROM t JOIN v ON v.a = t.a WHERE v.s = 'x' AND t.b > (SELECT sum(b) FROM u WHERE u.a = t.a)"
    IN = (
        "SELECT id FROM t WHERE a IN (SELECT a FROM v WHERE s LIKE 'x%')"
        " AND b > (SELECT sum(b) FROM u WHERE u.a = t.a AND u.b = t.b AND u.id >= 0)"
    )
    OUTSIDE = (
        "SELECT id FROM t WHERE a NOT IN (SELECT a FROM v WHERE s = 'x') AND b > (SELECT sum(b) FROM u WHERE u.a = t.a)"
    )

    @pytest.mark.parametrize("text", [JOINED, IN])
    def test_by_a_join_of_columns_of_one_type(self, text: str) -> None:
        (found,) = asked(text)
        assert "scan v" in found

    def test_not_by_what_leaves_rows_out(self) -> None:
        assert not asked(self.OUTSIDE)

    @pytest.mark.parametrize("text", [JOINED, IN])
    @pytest.mark.parametrize("kind", ["bigint", "string", ""])
    def test_not_where_types_differ_or_are_not_known(self, text: str, kind: str) -> None:
        table = TableName.of(["v"])
        assert not asked(text, {**SCHEMAS, table: {**SCHEMAS[table], "a": kind}})

    def test_not_where_no_type_is_known(self) -> None:
        unknown = {table: dict.fromkeys(columns, "") for table, columns in SCHEMAS.items()}
        assert not asked(self.IN, unknown)
        assert not restricted(rewrite(build_tree(self.IN, SCHEMAS, standard=True)))

    def test_not_where_a_column_is_computed(self) -> None:
        assert not asked(self.JOINED.replace("v.a = t.a", "v.a + 1 = t.a"))

    @pytest.mark.parametrize("middle", ["int", "string"])
    def test_texts_that_stand_for_the_same_number(self, middle: str) -> None:
        """They equal the number and not each other."""
        kinds = {"p": "string", "q": middle, "g": "string"}
        schemas = {TableName.of([name]): {"k": kind, "n": "int"} for name, kind in kinds.items()}
        text = (
            "SELECT c.n, x.k FROM (SELECT * FROM q WHERE EXISTS (SELECT 1 FROM p WHERE p.k = q.k AND p.n = 1)) c"
            " JOIN (SELECT k, count(*) AS m FROM g GROUP BY k) x ON x.k = c.k"
        )
        connection = duckdb.connect()
        for name, kind in kinds.items():
            connection.execute(f"CREATE TABLE {name} (k {'TEXT' if kind == 'string' else kind}, n INT)")
        connection.execute("INSERT INTO p VALUES ('01', 1), (NULL, 1), ('2', 1), ('3', 2)")
        connection.execute("INSERT INTO q VALUES ('1', 1), ('01', 2), ('2', 3), (NULL, 4)")
        connection.execute("INSERT INTO g VALUES ('1', 1), ('01', 1), ('001', 1), ('2', 1), (NULL, 1)")
        tree = rewrite(build_tree(text, schemas, standard=True), schemas)
        assert bool(restricted(tree)) is (middle == "string")
        rewritten = lower(tree, lambda leaf: leaf.table if isinstance(leaf, Scan) else leaf.name, "duckdb")
        expected = rows_of(connection, text)
        assert len(expected) == (7 if middle == "int" else 2)
        assert rows_of(connection, rewritten) == expected


class TestSemiJoined:
    """How deep a semi join goes."""

    A, B = Scan("a", (("k", "ak"), ("v", "av"))), Scan("b", (("k", "bk"),))
    KEYS = Scan("keys", (("k", "key"),))

    @pytest.mark.parametrize(
        "column, kind, expected",
        [
            ("ak", JoinKind.INNER, "left"),
            ("bk", JoinKind.INNER, "right"),
            ("ak", JoinKind.LEFT, "left"),
            ("ak", JoinKind.SEMI, "left"),
            ("ak", JoinKind.ANTI, "left"),
            # NULLs come in on the right: they have no key.
            ("bk", JoinKind.LEFT, "above"),
        ],
    )
    def test_to_the_side_of_a_join_that_has_the_column(self, column: str, kind: JoinKind, expected: str) -> None:
        found = semi_joined(Join(kind, self.A, self.B, equal("ak", "bk")), self.KEYS, equal(column, "key"))
        assert isinstance(found, Join)
        sides = {"left": found.left, "right": found.right, "above": found}
        (place,) = (name for name, side in sides.items() if isinstance(side, Join) and side.right == self.KEYS)
        assert (place, sides[place].columns[0]) == (expected, "bk" if expected == "right" else "ak")

    def test_a_hint_goes_with_it(self) -> None:
        found = semi_joined(Filter(self.A, equal("ak", "av")), self.KEYS, equal("ak", "key"), small="right")
        assert [node.small for node in walk(found) if isinstance(node, Join)] == ["right"]

    def test_below_groups_by_the_column_and_above_others(self) -> None:
        below = semi_joined(Aggregate(self.A, ("ak",), ()), self.KEYS, equal("ak", "key"))
        assert isinstance(below, Aggregate)
        counted = Aggregate(self.A, ("ak",), (Output("n", exp.Max(this=col("av"))),))
        assert isinstance(semi_joined(counted, self.KEYS, equal("n", "key")), Join)

    def test_into_every_part_of_a_union_and_below_filters(self) -> None:
        chosen = Filter(self.A, equal("ak", "av"))
        found = semi_joined(UnionAll((chosen, self.A)), self.KEYS, equal("ak", "key"))
        semi = Join(JoinKind.SEMI, self.A, self.KEYS, equal("ak", "key"))
        assert found == UnionAll((Filter(semi, equal("ak", "av")), semi))
