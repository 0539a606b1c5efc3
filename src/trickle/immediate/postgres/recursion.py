"""Recursions as PostgreSQL iterates them (pure).

WITH RECURSIVE ... UNION is what ``delta/fixpoint.py`` asks for: each round starts from the rows that the one before
found first. PostgreSQL wants the reference to them in FROM, once, and nowhere below EXISTS. So

    rows semi join (what a round makes)    becomes    rows join (what a round makes)

Rows that are found twice are found once: UNION sees to that.

PostgreSQL goes on for as long as rows come, inside the user's transaction. A function without arguments from a row is
asked once in each round; it counts them, and gives up (``ivm_recursive_max_depth``).
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from trickle.delta.building import call
from trickle.delta.linear import refers
from trickle.immediate.postgres.names import SCHEMA
from trickle.operators import Filter, Join, JoinKind, Operator, Output, Project, Recursion, transformed

_BEGUN = "first_round"
_COUNTED = "next_round"

FUNCTIONS = (
    f"""
    CREATE OR REPLACE FUNCTION {SCHEMA}.{_BEGUN}(loop text) RETURNS boolean LANGUAGE plpgsql STABLE
    SET search_path = pg_catalog, pg_temp
    AS $$ BEGIN PERFORM set_config('trickle.rounds_' || loop, '0', true); RETURN true; END $$
    """,
    f"""
    CREATE OR REPLACE FUNCTION {SCHEMA}.{_COUNTED}(loop text, most int) RETURNS boolean LANGUAGE plpgsql STABLE
    SET search_path = pg_catalog, pg_temp
    AS $$
    DECLARE rounds int := current_setting('trickle.rounds_' || loop)::int + 1;
    BEGIN
      IF rounds > most THEN
        RAISE EXCEPTION 'a recursion did not end after % rounds', most
          USING ERRCODE = 'program_limit_exceeded', HINT = 'bound its depth in the query',
            DETAIL = 'every round made rows that the next one started from';
      END IF;
      PERFORM set_config('trickle.rounds_' || loop, rounds::text, true);
      RETURN true;
    END $$
    """,
)
"""What counts the rounds. They are called STABLE, so that PostgreSQL asks once in a round and not for every row."""


def iterated(tree: Operator, most: int) -> Operator:
    """The tree with its recursions in a form that PostgreSQL takes, each of so many rounds at most."""

    def one(node: Operator) -> Operator:
        if not isinstance(node, Recursion):
            return node
        loop = exp.Literal.string(node.name.lower())
        step = _in_from(node.step, node.name) if node.distinct else node.step
        return replace(
            node,
            base=Filter(node.base, call(_BEGUN, loop)),
            step=Filter(step, call(_COUNTED, loop, exp.Literal.number(most))),
        )

    return transformed(tree, one)


def _in_from(tree: Operator, name: str) -> Operator:
    inputs = [_in_from(child, name) if refers(child, name) else child for child in tree.inputs]
    tree = tree.with_inputs(inputs) if inputs else tree
    if isinstance(tree, Join) and tree.kind is JoinKind.SEMI and refers(tree.right, name):
        return Project(replace(tree, kind=JoinKind.INNER), Output.keep(tree.columns))
    return tree
