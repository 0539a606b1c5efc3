"""What sqlglot's translation from Spark to PostgreSQL gets wrong, put right.

Checked: arithmetic (``/`` divides as double), comparison, CASE, COALESCE, NULL order, ``count_if``, boolean aggregates,
``isnull``. Text compares by the database's collation: Spark's order is that of ``COLLATE "C"``.

In trees whose expressions are PostgreSQL's own (``postgres_own``) the names of functions that mean something else to
the builder are hidden (``hidden_function``), and come back here. Of Spark's functions only those are left that rules
and rewrites write.
"""

from __future__ import annotations

from sqlglot import exp

from trickle.operators import Expr
from trickle.sql.lower.rewriting import rewritten, spelled

_HIDDEN = "pg__"

FAIL = "fail"
"""A function of ours, ``fail(message, like)``: raises the message; it has the type of ``like``."""


def adapt_to_postgres(holder: Expr) -> None:
    """Change a tree that was read as Spark SQL in place."""
    rewritten(holder, spelled)


def hidden_function(text: str) -> str:
    """A name that no builder knows for a function as PostgreSQL spells it; case does not matter in it.

    >>> hidden_function("f")
    'pg__66'
    """
    return _HIDDEN + text.encode().hex()


def adapt_own(holder: Expr) -> None:
    """Change a tree of PostgreSQL's expressions, with functions of Spark's around them, in place."""
    rewritten(holder, _own)


def _own(node: Expr) -> Expr:
    match node:
        case exp.Anonymous() if node.name.startswith(_HIDDEN):
            node.set("this", bytes.fromhex(node.name.removeprefix(_HIDDEN)).decode())
            return node
        case exp.Anonymous(expressions=[value, times]) if node.name == "array_repeat":
            return _call("array_fill", value, exp.Array(expressions=[times]))
        case exp.Anonymous() if node.name == "sequence":
            # It stands inside of UNNEST, which takes arrays.
            numbers = exp.Select(expressions=[_call("generate_series", *node.expressions)])
            return _call("ARRAY", numbers)
        case exp.Anonymous(expressions=[condition]) if node.name == "count_if":
            return exp.Count(this=exp.Case(ifs=[exp.If(this=condition, true=exp.Literal.number(1))]))
        case exp.Div():
            # sqlglot would divide as double.
            node.set("typed", True)
            return node
        case exp.Case(args={"default": other}) if other is not None:
            for branch in node.args["ifs"]:
                if isinstance(error := branch.args["true"], exp.Anonymous) and error.name == "raise_error":
                    branch.set("true", _call(FAIL, *error.expressions, other))
            return node
        case _:
            return node


def _call(name: str, *arguments: Expr) -> exp.Anonymous:
    return exp.Anonymous(this=name, expressions=[argument.copy() for argument in arguments])
