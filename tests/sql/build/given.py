"""Tables for the tests of the builder."""

from __future__ import annotations

from typing import Any

from trickle.algebra.names import TableName
from trickle.operators import show
from trickle.sql.build import build_tree

SCHEMAS = {
    TableName.of(["t"]): {
        "a": "int",
        "b": "int",
        "c": "string",
        "arr": "array<int>",
        "m": "map<string,int>",
        "st": "struct<x:int,y:struct<z:int>>",
    },
    TableName.of(["u"]): {"a": "int", "d": "int", "e": "string"},
    TableName.of(["Sales", "Orders"]): {"Id": "bigint", "Amount": "decimal(12,2)"},
}


def shown(query: str, **options: Any) -> str:
    """The tree of a query as text."""
    return show(build_tree(query, SCHEMAS, **options))
