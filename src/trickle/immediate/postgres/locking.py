"""Who waits for whom (pure).

Two writers that change the same group must come one after the other: each reads what is stored and writes what follows
from it. Two writers of both sides of a join must too: neither sees the other's row, and the pair would be lost. Locks
are advisory, held to the end of the transaction, and taken before the statement that reads; under READ COMMITTED that
statement sees all that was committed while it waited.

    by group     where the result is made of one table's rows one by one, and stored in groups or as rows: the groups
                 that the change touches, in one order for everybody. Writers of other groups do not wait.
    whole        joins, subqueries, windows, first rows, several stages, and stream tables that read each other: one
                 lock, taken before the source's rows are. Writers of their sources wait for each other.

Groups share 256 locks, so that a statement over a million groups does not fill PostgreSQL's lock table.
"""

from __future__ import annotations

from sqlglot import exp

from trickle.delta.building import call
from trickle.delta.differentiate import differentiate
from trickle.delta.groups import Groups
from trickle.delta.stages import Rows, Stage
from trickle.immediate.postgres.lookups import hashed
from trickle.operators import Aggregate, Filter, Generate, Operator, Output, Project, Scan, walk

LOCK_CLASS = 0x74726B6C
_BUCKETS = 256
_PER_STREAM = 1024
BUCKET = "__trickle_bucket"


def lock_number(stream: int) -> int:
    """The lock of a whole stream table, or of a family of them."""
    return stream * _PER_STREAM


def bucket_base(stream: int) -> int:
    """What is added to a bucket to make a lock's number."""
    return lock_number(stream) + 1


def touched_buckets(stages: tuple[Stage, ...]) -> Operator | None:
    """The locks that a change touches, in one order; None where only the lock of the whole will do."""
    if len(stages) != 1:
        return None
    keeping = stages[0].keeping
    match keeping:
        case Groups() if keeping.aggregate.keys:
            rows, keys = keeping.aggregate.input, keeping.aggregate.keys
        case Rows():
            rows, keys = keeping.tree, keeping.tree.columns
        case _:
            return None
    nodes = list(walk(rows))
    if not all(isinstance(node, Filter | Project | Generate | Scan) for node in nodes) or not keys:
        return None
    bucket = call("mod", hashed(keys), exp.Literal.number(_BUCKETS))
    found = Project(differentiate(rows), (Output(BUCKET, call("abs", bucket)),))
    return Aggregate(found, (BUCKET,))
