"""Column lists are read by Spark's parser, and only column lists."""

from __future__ import annotations

import pytest
from pyspark.sql.types import IntegerType, LongType, StructField, StructType

from trickle.engine import Engine, parse_ddl
from trickle.errors import ParseError


@pytest.mark.portable
def test_types_names_and_not_null_are_kept(engine: Engine) -> None:
    schema = parse_ddl(engine, "id BIGINT NOT NULL, `odd ``name` STRUCT<a: INT>")
    assert schema == StructType(
        [
            StructField("id", LongType(), nullable=False),
            StructField("odd `name", StructType([StructField("a", IntegerType())])),
        ]
    )


@pytest.mark.portable
@pytest.mark.parametrize(
    "ddl, line, column",
    [
        ("id BIGINTT", 1, 4),
        ("id", 1, 3),
        ("id INT,\nname", 2, 5),
        ("id INT; DROP TABLE t", 1, 7),
        ("BIGINT", 1, 1),
        ("struct<a: INT>", 1, 1),
    ],
)
def test_a_wrong_list_is_a_parse_error_with_its_place(engine: Engine, ddl: str, line: int, column: int) -> None:
    with pytest.raises(ParseError) as caught:
        parse_ddl(engine, ddl)
    assert (caught.value.line, caught.value.column) == (line, column)


def test_an_empty_list_needs_no_spark_to_be_refused() -> None:
    engine = Engine.open("local[2]")
    with pytest.raises(ParseError, match="empty"):
        parse_ddl(engine, "  ")
    assert not engine.started
