"""Turns Spark's exceptions into ours.

What went wrong is read from Spark's error condition (``UNRESOLVED_COLUMN.WITH_SUGGESTION``), a documented name that
is the same on classic sessions and on Spark Connect. Stack traces and plan dumps are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

import pyarrow as pa
from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError
from pyspark import SparkContext
from pyspark.errors import (
    AnalysisException,
    ParseException,
    PySparkException,
    PySparkTypeError,
    PySparkValueError,
)

from trickle.algebra.names import nearest
from trickle.errors import (
    CorruptTable,
    HistoryLost,
    InternalError,
    InvalidData,
    ParseError,
    QueryError,
    SparkUnavailable,
    TrickleError,
    UnknownColumn,
    UnknownFunction,
    UnknownTable,
)

_CONDITION = re.compile(r"\[([A-Z][A-Z0-9_]{3,}(?:\.[A-Z0-9_]+)*)\] ?(.*?)(?=SQLSTATE:|\n\tat |\Z)", re.DOTALL)
_POSITION = re.compile(r"\(line (\d+), pos (\d+)\)")
_SENTENCE = re.compile(r"(?<=[^.\s])\.\s+(?=[A-Z])")
_QUOTED = re.compile(r"`((?:[^`]|``)+)`")

# Advice that would change what every query means.
_BAD_ADVICE = "spark.sql.ansi.enabled"

_MISSING_COLUMN = ("UNRESOLVED_COLUMN", "UNRESOLVED_FIELD", "UNRESOLVED_USING_COLUMN_FOR_JOIN", "FIELD_NOT_FOUND")
_MISSING_FILE = ("FAILED_READ_FILE.FILE_NOT_EXIST", "PATH_NOT_FOUND")
_SESSION_GONE = ("NO_ACTIVE_SESSION", "INVALID_HANDLE", "SESSION_", "JAVA_GATEWAY_EXITED", "CONNECT_URL_NOT_SET")
_BAD_VALUE = ("CAST_", "NUMERIC_VALUE_OUT_OF_RANGE", "NOT_NULL_ASSERT_VIOLATION", "NULLABLE_", "INVALID_VALUE")
_STOPPED_CONTEXT = "stopped SparkContext"
_WAITED = "Exception thrown in awaitResult"


@dataclass(frozen=True)
class _Failure:
    """What an exception of Spark says, in one shape for all kinds of session."""

    condition: str
    text: str
    parameters: Mapping[str, str] = field(default_factory=dict)
    position: tuple[int, int] | None = None

    def is_one_of(self, prefixes: tuple[str, ...]) -> bool:
        return self.condition.startswith(prefixes)

    @property
    def message(self) -> str:
        """The first sentence, as our messages are written."""
        first = _sentences(self.text)[0]
        return first[:1].lower() + first[1:] if first[1:2].islower() else first

    @property
    def advice(self) -> str | None:
        """What Spark says after the first sentence."""
        rest = [s for s in _sentences(self.text)[1:] if _BAD_ADVICE not in s]
        return ". ".join(rest) or None


def _sentences(text: str) -> list[str]:
    return [" ".join(s.split()).removesuffix(".") for s in _SENTENCE.split(text.strip())]


@contextmanager
def spark_errors() -> Iterator[None]:
    """Run Spark actions (collect, toArrow, write); what they raise comes out as a ``TrickleError``."""
    try:
        yield
    except TrickleError:
        raise
    except Exception as error:
        translated = translate(error)
        if translated is None:
            raise
        raise translated from None


def translate(error: Exception) -> TrickleError | None:
    """The error of ours that says the same; None when the exception does not come from Spark."""
    match error:
        case Py4JJavaError():
            return _from_failure(_read_java(error), analysis=False)
        case Py4JNetworkError() | Py4JError() | ConnectionError():
            return _gone(str(error))
        case PySparkTypeError() | PySparkValueError() if not isinstance(error, AnalysisException):
            return InvalidData(_read(error).message)
        case ParseException():
            return _parse_error(_read(error))
        case PySparkException():
            return _from_failure(_read(error), analysis=isinstance(error, AnalysisException))
        case pa.ArrowInvalid():
            return InvalidData(_first_line(str(error)))
        case AttributeError() if _from_stopped_session(error):
            return _gone("it was stopped")
        case _ if type(error).__module__.startswith("grpc"):
            return _gone(_first_line(str(error)))
        case _:
            return None


def _from_stopped_session(error: AttributeError) -> bool:
    """A stopped classic session has lost its Java half, and PySpark stumbles over the None in its place."""
    return error.obj is None and SparkContext._active_spark_context is None


def _read(error: PySparkException) -> _Failure:
    parameters: Mapping[str, str] = {}
    with suppress(Py4JError, ConnectionError):
        parameters = error.getMessageParameters() or {}
    condition, text, position = _split(str(error).partition("JVM stacktrace:")[0])
    return _Failure(error.getCondition() or condition, text, parameters, position)


def _read_java(error: Py4JJavaError) -> _Failure:
    condition, text, position = _split(str(error))
    if _STOPPED_CONTEXT in text:
        condition = _SESSION_GONE[0]
    return _Failure(condition, text, {}, position)


def _split(text: str) -> tuple[str, str, tuple[int, int] | None]:
    """The condition, the message without decoration, and the position in the statement."""
    where = _POSITION.search(text)
    position = (int(where[1]), int(where[2]) + 1) if where else None
    found = _CONDITION.search(text)
    if found:
        return found[1], _POSITION.sub("", found[2]).strip(), position
    return "", _first_line(text), position


def _first_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    # py4j begins with "An error occurred while calling o38.sql."; Java's own message follows after a colon.
    useful = [line.removeprefix(": ") for line in lines if not line.startswith("An error occurred while calling")]
    causes = [line.removeprefix("Caused by: ") for line in lines if line.startswith("Caused by: ")]
    # Who waits for a thread that fails says only that it has waited.
    if useful and causes and _WAITED in useful[0]:
        return causes[-1]
    return useful[0] if useful else "no message"


def _from_failure(failure: _Failure, *, analysis: bool) -> TrickleError:
    if failure.is_one_of(_MISSING_COLUMN):
        return _unknown_column(failure)
    if failure.is_one_of(_MISSING_FILE):
        return HistoryLost("a data file is gone", detail=_path(failure))
    if failure.is_one_of(_SESSION_GONE):
        return _gone(failure.message)
    if failure.is_one_of(_BAD_VALUE):
        return InvalidData(failure.message, hint=failure.advice)
    if failure.condition.startswith("FAILED_READ_FILE"):
        return CorruptTable("a data file cannot be read", detail=_path(failure))
    if failure.condition == "TABLE_OR_VIEW_NOT_FOUND":
        return UnknownTable(f"unknown table {_name(failure, 'relationName')}")
    if failure.condition.startswith("UNRESOLVED_ROUTINE"):
        return UnknownFunction(f"unknown function {_name(failure, 'routineName')}")
    if failure.condition.startswith("INTERNAL_ERROR"):
        return InternalError("Spark failed inside", detail=failure.text)
    if failure.condition or analysis:
        return QueryError(failure.message, hint=failure.advice)
    if "UNAVAILABLE" in failure.text:
        return _gone(failure.message)
    return SparkUnavailable("a Spark job failed", detail=failure.message)


def _gone(detail: str) -> SparkUnavailable:
    return SparkUnavailable(
        "the Spark session has gone away", detail=detail or None, hint="connect again; the warehouse is unharmed"
    )


def _parse_error(failure: _Failure) -> ParseError:
    line, column = failure.position or (None, None)
    where = f"line {line}, column {column}" if line else None
    return ParseError(failure.message, line=line, column=column, detail=where, hint=failure.advice)


def _unknown_column(failure: _Failure) -> UnknownColumn:
    wanted = _identifier(
        next(
            (failure.parameters[k] for k in ("objectName", "fieldName", "colName") if k in failure.parameters),
            failure.text,
        )
    )
    proposals = failure.parameters.get("proposal") or failure.parameters.get("suggestion") or ""
    known = {_last_part(name): _identifier(name) for name in re.split(r", ?", proposals) if "`" in name}
    close = nearest(_last_part(wanted), known)
    hint = f"did you mean {known[close]}?" if close else f"columns: {', '.join(known.values())}" if known else None
    return UnknownColumn(f"unknown column {wanted}", hint=hint)


def _name(failure: _Failure, parameter: str) -> str:
    return _identifier(failure.parameters.get(parameter) or failure.text)


def _identifier(text: str) -> str:
    """A name without Spark's quotes: ```a`.`b``` is a.b."""
    found = re.search(r"`(?:[^`]|``)+`(?:\.`(?:[^`]|``)+`)*", text)
    if not found:
        return text
    return ".".join(part.replace("``", "`") for part in _QUOTED.findall(found[0]))


def _last_part(name: str) -> str:
    return _identifier(name).rpartition(".")[2]


def _path(failure: _Failure) -> str:
    path = failure.parameters.get("path")
    if path:
        return path
    found = re.search(r"(?:file|exist:) (\S+?)\.?(?:\s|$)", failure.text)
    return found[1] if found else failure.text
