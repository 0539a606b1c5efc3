"""Project.

    d(project_e(Q)) = project_e(dQ)

Class: linear. Reads the change only; keeps no state; never falls back. The expressions give the same value for the same
row at any time: those that do not are refused before (``sql/facts.py``).

A value that depends on the time of the refresh was another one before (e'), for every row:

    d(project_e(Q)) = project_e(dQ)  +  project_e(Q_old)  -  project_e'(Q_old)

which reads the input whole (``stages.unrestricted``).
"""

from __future__ import annotations

from trickle.algebra.weights import WEIGHT
from trickle.delta.differentiate import differentiate
from trickle.delta.weighted import union, weighted
from trickle.operators import Face, Operator, Output, Project, at_face, col
from trickle.operators.clock import NOW


@differentiate.register
def _(tree: Project) -> Operator:
    changed = Project(differentiate(tree.input), (*tree.outputs, Output(WEIGHT, col(WEIGHT))))
    if NOW not in tree.used:
        return changed
    before = at_face(tree, Face.OLD)
    assert isinstance(before, Project)
    return union((changed, weighted(Project(before.input, tree.outputs), 1), weighted(before, -1)))
