from __future__ import annotations

from trickle.sql.build.types import field_type, parsed, struct_fields


def test_fields_are_found_without_regard_to_case() -> None:
    type_ = field_type(parsed("struct<A:int,b:struct<c:decimal(12,2)>>"), ["B", "c"])
    assert type_ is not None
    assert type_.sql("spark") == "DECIMAL(12, 2)"


def test_what_is_not_known_has_no_fields() -> None:
    assert struct_fields(None) is None
    assert struct_fields("int") is None
    assert struct_fields("no type at all <") is None
    assert struct_fields("struct<a:int>", ["b"]) is None
