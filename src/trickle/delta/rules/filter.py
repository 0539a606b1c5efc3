"""Filter.

    d(filter_p(Q)) = filter_p(dQ)

Class: linear. Reads the change only; keeps no state; never falls back. An update that moves a row across the border
is a deletion or an insertion here: of the old and the new row, one passes.
"""

from __future__ import annotations

from dataclasses import replace

from trickle.delta.differentiate import differentiate
from trickle.operators import Filter, Operator


@differentiate.register
def _(tree: Filter) -> Operator:
    return replace(tree, input=differentiate(tree.input))
