"""Scan.

    d(T) = change of T

Class: linear. Reads the change only; keeps no state; never falls back.
"""

from __future__ import annotations

from dataclasses import replace

from trickle.delta.differentiate import differentiate
from trickle.operators import Face, Operator, Scan


@differentiate.register
def _(tree: Scan) -> Operator:
    return replace(tree, face=Face.CHANGE)
