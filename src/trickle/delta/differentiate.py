"""The change of a query, as a query over the old, the new and the change of its tables (pure).

``differentiate`` maps a relation Q to a relation dQ with Q's columns and a weight of +1 or -1, such that

    Q(new) = Q(old) + dQ        as multisets

There is one rule for each operator, in a module of its own under ``rules/``. A rule sees its operator and nothing
else: it asks for the change of its inputs and for their two states. This is the plain form; ``optimize/`` makes it
quick and leaves its meaning alone.
"""

from __future__ import annotations

from functools import singledispatch

from trickle.operators import InvalidTree, Operator


@singledispatch
def differentiate(tree: Operator) -> Operator:
    """The change of a relation: its columns and the weight."""
    raise InvalidTree(f"no rule for {type(tree).__name__}")
