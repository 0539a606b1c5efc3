"""Union all.

    d(A + B + ...) = dA + dB + ...

Class: linear.
"""

from __future__ import annotations

from trickle.delta.differentiate import differentiate
from trickle.delta.weighted import union
from trickle.operators import Operator, UnionAll


@differentiate.register
def _(tree: UnionAll) -> Operator:
    return union(differentiate(part) for part in tree.parts)
