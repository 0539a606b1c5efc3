"""One rule for each operator. Importing this package registers them all."""

from trickle.delta.rules import (
    aggregate,
    generate,
    inner_join,
    join,
    left_join,
    project,
    recursion,
    scan,
    semi_join,
    top_k,
    union_all,
    values,
    window,
)
from trickle.delta.rules import filter as filter_

__all__ = [
    "aggregate",
    "filter_",
    "generate",
    "inner_join",
    "join",
    "left_join",
    "project",
    "recursion",
    "scan",
    "semi_join",
    "top_k",
    "union_all",
    "values",
    "window",
]
