"""Sources that have no history: files of any kind that Spark reads, and functions that give a DataFrame.

They are read whole, and compared with what was read before. Texts have no types of their own: the columns of CSV and
JSON are told apart by their names, and their values must fit the types that were found when they were first read
(``FAILFAST``), so that a value that does not is an error and never a NULL.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StringType, StructField, StructType

from trickle.engine import Engine, spark_errors
from trickle.errors import InvalidOption, SourceRefused

PollFunction = Callable[[SparkSession], DataFrame]
Naming = Callable[[Sequence[str]], Sequence[str]]
"""The names that the lake has for names of a source."""

LOCAL = "a function of the process that attached it"

_TEXTS: Mapping[str, Mapping[str, str]] = {
    "csv": {"header": "true", "mode": "FAILFAST"},
    "json": {"mode": "FAILFAST"},
}
"""Formats without types, with the options that they are read with unless the user says otherwise."""

_here: dict[tuple[str, str], PollFunction] = {}
"""Functions that this process attached, by catalog and name."""


def read_files(
    engine: Engine, path: str, form: str, options: Mapping[str, str], known: StructType | None, stored_as: Naming
) -> DataFrame:
    """All rows of a file or folder. ``known`` are the columns that were found before, as they are ``stored_as``."""
    reader = engine.spark.read.format(form)
    with spark_errors():
        if form not in _TEXTS:
            return reader.options(**options).load(path)
        given = {**_TEXTS[form], **options}
        if known is None:
            return reader.options(**given).option("inferSchema", "true").load(path)
        found = reader.options(**given).load(path).schema
        types = {field.name.lower(): field.dataType for field in known.fields}
        names = stored_as(found.names)
        wanted = [
            StructField(field.name, types.get(name.lower(), _untyped(form, field)))
            for field, name in zip(found.fields, names, strict=True)
        ]
        # Every file must have these columns: those that are looked at here are the first one's.
        checked = {"enforceSchema": "false"} if form == "csv" else {}
        return engine.spark.read.format(form).options(**given, **checked).schema(StructType(wanted)).load(path)


def _untyped(form: str, field: StructField) -> Any:
    return StringType() if form == "csv" else field.dataType


def register(catalog: str, name: str, function: PollFunction | str) -> str:
    """Where a function is found by other processes: ``module:name``; those that cannot be are known here alone."""
    if isinstance(function, str):
        _imported(function)
        return function
    if not callable(function):
        raise InvalidOption(f"a source is a function that is handed a Spark session, not {function!r}")
    _here[catalog, name.lower()] = function
    module, own = getattr(function, "__module__", ""), getattr(function, "__qualname__", "")
    is_plain = module not in ("", "__main__") and own.isidentifier()
    return f"{module}:{own}" if is_plain else LOCAL


def read_function(engine: Engine, catalog: str, name: str, place: str) -> DataFrame:
    """What a function gives now."""
    function = _here.get((catalog, name.lower()))
    if function is None:
        if place == LOCAL:
            raise SourceRefused(
                f"the function that gives {name} is not known to this process",
                hint="put it into a module that can be imported, and attach it as 'module:function'",
            )
        function = _imported(place)
    with spark_errors():
        found = function(engine.spark)
    if not isinstance(found, DataFrame):
        raise InvalidOption(f"the function that gives {name} returned no DataFrame", detail=type(found).__name__)
    return found


def _imported(place: str) -> PollFunction:
    module, _, name = place.partition(":")
    try:
        found: PollFunction = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise InvalidOption(
            f"no function {place!r}", detail=str(error), hint="write module:function, of a module that can be imported"
        ) from None
    return found
