"""As much of types as the builder needs: the fields of structs, and what arrays and maps hold.

Types are Spark's type strings, as in ``array<struct<a:int,b:string>>``; None stands for a type that is not known.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp
from sqlglot.errors import SqlglotError


def parsed(text: str | None) -> exp.DataType | None:
    """The type of a type string."""
    if text is None:
        return None
    try:
        return exp.DataType.build(text, dialect="spark")
    except SqlglotError:
        return None


def field_type(type_: exp.DataType | None, path: Sequence[str]) -> exp.DataType | None:
    """The type of a field inside of structs."""
    for name in path:
        fields = {} if type_ is None else {key.lower(): value for key, value in fields_in(type_).items()}
        type_ = fields.get(name.lower())
    return type_


def fields_in(type_: exp.DataType) -> dict[str, exp.DataType]:
    """The fields of a struct type, in order; empty for other types."""
    if not type_.is_type("struct"):
        return {}
    return {field.name: field.args["kind"] for field in type_.expressions if isinstance(field, exp.ColumnDef)}


def struct_fields(text: str | None, path: Sequence[str] = ()) -> list[str] | None:
    """The names of the fields of a struct, or of a field inside it.

    >>> struct_fields("struct<a:int,b:struct<c:int>>", ["b"])
    ['c']
    """
    type_ = field_type(parsed(text), path)
    return list(fields_in(type_)) or None if type_ is not None else None
