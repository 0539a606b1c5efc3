"""Project.

    d(project_e(Q)) = project_e(dQ)

Class: linear. Reads the change only; keeps no state; never falls back. The expressions give the same value for the same
row at any time: those that do not are refused before (``sql/facts.py``).
"""

from __future__ import annotations

from trickle.algebra.weights import WEIGHT
from trickle.delta.differentiate import differentiate
from trickle.operators import Operator, Output, Project, col


@differentiate.register
def _(tree: Project) -> Operator:
    return Project(differentiate(tree.input), (*tree.outputs, Output(WEIGHT, col(WEIGHT))))
