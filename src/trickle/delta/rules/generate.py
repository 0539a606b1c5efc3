"""Generate.

    d(generate_g(Q)) = generate_g(dQ)

Class: linear, as a generator looks at one row. Each row that it makes has the weight of the row that it was made of.
"""

from __future__ import annotations

from dataclasses import replace

from trickle.delta.differentiate import differentiate
from trickle.delta.weighted import arranged
from trickle.operators import Generate, Operator


@differentiate.register
def _(tree: Generate) -> Operator:
    return arranged(replace(tree, input=differentiate(tree.input)), tree.columns)
