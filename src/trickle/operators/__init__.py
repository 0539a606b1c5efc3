"""The relational algebra: frozen nodes that validate themselves (pure).

A tree says what a query means; a delta plan is a tree too. Columns are known by name, and every name that an operator
makes is made once in the whole tree: an expression never needs to say which input it means, and a column that an
operator uses without having it as input is a reference to the outside (``free_columns``).
"""

from trickle.operators.expressions import Expr, Output, col, column_names, equal, null_safe, renamed, substituted
from trickle.operators.joining import Apply, ApplyKind, Join, JoinKind
from trickle.operators.keyed import Aggregate, TopK, Window, WindowOrder
from trickle.operators.node import InvalidTree, Operator
from trickle.operators.recursion import Recursion, RecursiveRef
from trickle.operators.rowwise import Filter, Generate, Project, UnionAll
from trickle.operators.scan import Face, Scan, Step, Values
from trickle.operators.show import show
from trickle.operators.walk import at_face, free_columns, scans_of, transformed, walk

__all__ = [
    "Aggregate",
    "Apply",
    "ApplyKind",
    "Expr",
    "Face",
    "Filter",
    "Generate",
    "InvalidTree",
    "Join",
    "JoinKind",
    "Operator",
    "Output",
    "Project",
    "Recursion",
    "RecursiveRef",
    "Scan",
    "Step",
    "TopK",
    "UnionAll",
    "Values",
    "Window",
    "WindowOrder",
    "at_face",
    "col",
    "column_names",
    "equal",
    "free_columns",
    "null_safe",
    "renamed",
    "scans_of",
    "show",
    "substituted",
    "transformed",
    "walk",
]
