"""Values.

    d(VALUES ...) = nothing

Class: constant.
"""

from __future__ import annotations

from trickle.algebra.weights import WEIGHT
from trickle.delta.differentiate import differentiate
from trickle.operators import Operator, Values


@differentiate.register
def _(tree: Values) -> Operator:
    return Values((*tree.names, WEIGHT), ())
