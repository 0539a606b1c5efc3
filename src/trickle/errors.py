"""Every error that Trickle raises on purpose.

    TrickleError
    ├── UserError                 the input must change
    │   ├── ParseError                the text is not SQL that Trickle reads (has a position)
    │   ├── QueryError                Spark's analyser refuses the query
    │   ├── InvalidName               an identifier that cannot be stored
    │   ├── InvalidOption             an option, setting or argument out of its range
    │   ├── InvalidData               rows that the table cannot hold
    │   ├── UnknownTable              no relation of this name
    │   ├── UnknownColumn             no column of this name
    │   ├── UnknownFunction           no procedure of this name
    │   ├── DuplicateName             the name is taken
    │   ├── WrongKind                 the relation exists and is of another kind
    │   ├── CycleError                a stream table would depend on itself
    │   └── DependentsExist           others are built on what the statement would change
    ├── UnsupportedError          Trickle does not do this
    │   ├── UnsupportedStatement      a SQL statement
    │   ├── UnsupportedQuery          a construct in a stream table's query
    │   └── UnsupportedTable          a Delta protocol feature
    ├── SchemaDrift               a source no longer has the shape the stream table was built on
    ├── HistoryLost               a source's log no longer reaches back to a frontier
    ├── ForeignWrite              somebody else wrote into a table that Trickle alone may write
    ├── Suspended                 the stream table is suspended until it is resumed
    ├── Gated                     a gate holds the refresh back: a fuse, a watermark, a source that is being loaded
    ├── TransientError            the same call may succeed later
    │   ├── ConcurrentModification    another writer came first
    │   ├── CatalogUnreachable        the catalog database does not answer
    │   └── SourceUnreachable         the PostgreSQL server of a source does not answer
    ├── SetupError                the machine or the installation must change
    │   ├── JavaMissing               no Java 17 or newer
    │   ├── SparkUnavailable          the Spark session cannot be made or has gone away
    │   ├── SourceRefused             a PostgreSQL server does not allow what capture needs
    │   ├── WarehouseMissing          no warehouse at this place
    │   └── NewerWarehouse            written by a newer Trickle
    └── InternalError             a defect: never the caller's fault
        ├── NegativeMultiplicity      a delta removes a row that is not there
        └── CorruptTable              a table's log and files contradict each other

The class says the remedy; retry follows from the class, never from the text.
"""

from __future__ import annotations

from typing import ClassVar


class TrickleError(Exception):
    """Base of all errors: a code, a message, and often a detail and a hint."""

    code: ClassVar[str] = "TRICKLE_ERROR"
    exit_code: ClassVar[int] = 1

    def __init__(self, message: str, *, detail: str | None = None, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.detail = detail
        self.hint = hint

    def __str__(self) -> str:
        lines = [f"{self.message} [{self.code}]"]
        if self.detail:
            lines.append(f"detail: {self.detail}")
        if self.hint:
            lines.append(f"hint: {self.hint}")
        return "\n".join(lines)

    def as_dict(self) -> dict[str, str | None]:
        return {
            "code": self.code,
            "message": self.message,
            "detail": self.detail,
            "hint": self.hint,
        }


class UserError(TrickleError):
    """The input must change."""

    code = "USER_ERROR"
    exit_code = 2


class ParseError(UserError):
    """The text is not SQL that Trickle reads."""

    code = "PARSE_ERROR"

    def __init__(
        self,
        message: str,
        *,
        line: int | None = None,
        column: int | None = None,
        detail: str | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message, detail=detail, hint=hint)
        self.line = line
        self.column = column


class QueryError(UserError):
    """Spark's analyser refuses the query."""

    code = "QUERY_ERROR"


class InvalidName(UserError):
    """An identifier that cannot be stored."""

    code = "INVALID_NAME"


class InvalidOption(UserError):
    """An option, setting or argument is out of its range."""

    code = "INVALID_OPTION"


class InvalidData(UserError):
    """Rows that the table cannot hold: wrong columns, wrong types, NULL where NOT NULL is declared."""

    code = "INVALID_DATA"


class UnknownTable(UserError):
    """No table, view or stream table has this name."""

    code = "UNKNOWN_TABLE"


class UnknownColumn(UserError):
    """No column has this name."""

    code = "UNKNOWN_COLUMN"


class UnknownFunction(UserError):
    """No procedure or function has this name."""

    code = "UNKNOWN_FUNCTION"


class DuplicateName(UserError):
    """The name is taken."""

    code = "DUPLICATE_NAME"


class WrongKind(UserError):
    """The relation exists and is of another kind than the statement needs."""

    code = "WRONG_KIND"


class CycleError(UserError):
    """A stream table would depend on itself."""

    code = "CYCLE"


class DependentsExist(UserError):
    """Views or stream tables are built on what the statement would change or drop."""

    code = "DEPENDENTS_EXIST"


class UnsupportedError(TrickleError):
    """Trickle does not do this."""

    code = "UNSUPPORTED"
    exit_code = 2


class UnsupportedStatement(UnsupportedError):
    """A SQL statement that Trickle does not run."""

    code = "UNSUPPORTED_STATEMENT"


class UnsupportedQuery(UnsupportedError):
    """A construct that a stream table's query may not hold."""

    code = "UNSUPPORTED_QUERY"


class UnsupportedTable(UnsupportedError):
    """A Delta table that needs a protocol feature which Trickle does not read."""

    code = "UNSUPPORTED_TABLE"


class SchemaDrift(TrickleError):
    """A source no longer has the shape that the stream table was built on."""

    code = "SCHEMA_DRIFT"
    exit_code = 3


class HistoryLost(TrickleError):
    """A source's log or files no longer reach back to a frontier."""

    code = "HISTORY_LOST"
    exit_code = 3


class ForeignWrite(TrickleError):
    """Somebody else wrote into a table that Trickle alone may write."""

    code = "FOREIGN_WRITE"
    exit_code = 3


class Suspended(TrickleError):
    """The stream table is suspended until it is resumed."""

    code = "SUSPENDED"
    exit_code = 3


class Gated(TrickleError):
    """A gate holds the refresh back."""

    code = "GATED"
    exit_code = 3


class TransientError(TrickleError):
    """The same call may succeed later."""

    code = "TRANSIENT"
    exit_code = 4


class ConcurrentModification(TransientError):
    """Another writer changed the same table first."""

    code = "CONCURRENT_MODIFICATION"


class CatalogUnreachable(TransientError):
    """The catalog database does not answer."""

    code = "CATALOG_UNREACHABLE"


class SourceUnreachable(TransientError):
    """The PostgreSQL server of a source does not answer, or has no room or connection left."""

    code = "SOURCE_UNREACHABLE"


class SetupError(TrickleError):
    """The machine or the installation must change."""

    code = "SETUP_ERROR"
    exit_code = 5


class JavaMissing(SetupError):
    """Spark needs Java 17 or newer and none was found."""

    code = "JAVA_MISSING"


class SparkUnavailable(SetupError):
    """The Spark session cannot be made or has gone away."""

    code = "SPARK_UNAVAILABLE"


class SourceRefused(SetupError):
    """A PostgreSQL server does not allow what capture needs: password, rights, version, a standby."""

    code = "SOURCE_REFUSED"


class WarehouseMissing(SetupError):
    """There is no warehouse at this place."""

    code = "WAREHOUSE_MISSING"


class NewerWarehouse(SetupError):
    """The warehouse was written by a newer version of Trickle."""

    code = "NEWER_WAREHOUSE"


class InternalError(TrickleError):
    """A defect in Trickle or damaged storage: never the caller's fault."""

    code = "INTERNAL"
    exit_code = 70


class NegativeMultiplicity(InternalError):
    """A delta removes a row that the table does not hold."""

    code = "NEGATIVE_MULTIPLICITY"


class CorruptTable(InternalError):
    """A table's log and its files contradict each other."""

    code = "CORRUPT_TABLE"


def was_interrupted(error: BaseException) -> bool:
    """Whether Ctrl-C is behind an error: Spark cancels its jobs then, and tells that instead."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, KeyboardInterrupt):
        cause = cause.__context__
    return cause is not None
