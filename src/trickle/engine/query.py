"""SQL text over DataFrames: names in the text stand for DataFrames, on classic and Connect sessions alike."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from uuid import uuid4

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from trickle.algebra.names import quote
from trickle.engine.failures import spark_errors
from trickle.engine.session import Engine


def run_query(engine: Engine, frames: Sequence[DataFrame], render: Callable[[Sequence[str]], str]) -> DataFrame:
    """Run the text that ``render`` makes when it is handed a name (unquoted) for each DataFrame."""
    with spark_errors():
        return _run(engine, frames, render)


def is_refused(
    engine: Engine, frames: Sequence[DataFrame], render: Callable[[Sequence[str]], str], condition: str
) -> bool:
    """Whether Spark refuses the text with this error condition. Nothing is run."""
    try:
        _ = _run(engine, frames, render).schema
    except PySparkException as error:
        return (error.getCondition() or "").startswith(condition)
    return False


def _run(engine: Engine, frames: Sequence[DataFrame], render: Callable[[Sequence[str]], str]) -> DataFrame:
    token = uuid4().hex
    names = [f"__trickle_{token}_{place}" for place in range(len(frames))]
    # PySpark's own formatter binds DataFrames to {fields}; braces of the user's text must survive it.
    text = render(names).replace("{", "{{").replace("}", "}}")
    fields: dict[str, Any] = {f"t{place}": frame for place, frame in enumerate(frames)}
    for name, bound in zip(names, fields, strict=True):
        text = text.replace(quote(name), "{" + bound + "}")
    # Without arguments PySpark does not format at all, and doubled braces would reach Spark.
    return engine.spark.sql(text, **fields) if fields else engine.spark.sql(render(names))
