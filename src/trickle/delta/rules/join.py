"""Join: which rule a kind of join has."""

from __future__ import annotations

from typing import assert_never

from trickle.delta.differentiate import differentiate
from trickle.delta.rules.inner_join import inner_join
from trickle.delta.rules.left_join import left_join
from trickle.delta.rules.semi_join import semi_join
from trickle.operators import Join, JoinKind, Operator


@differentiate.register
def _(tree: Join) -> Operator:
    match tree.kind:
        case JoinKind.INNER:
            return inner_join(tree)
        case JoinKind.LEFT:
            return left_join(tree)
        case JoinKind.SEMI | JoinKind.ANTI:
            return semi_join(tree)
        case _:
            assert_never(tree.kind)
