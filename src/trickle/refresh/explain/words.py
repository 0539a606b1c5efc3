"""Stages and aggregates in words, and expressions in terms of the sources' columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from trickle.algebra.names import INTERNAL_PREFIX
from trickle.delta.first_rows import FirstRows
from trickle.delta.fixpoint import Fixpoint
from trickle.delta.groups import Groups
from trickle.delta.parts import Kept
from trickle.delta.plan import OWN
from trickle.delta.stages import STATE, Rows, Stage
from trickle.operators import Expr, Operator, Output, Scan, col, substituted, transformed, walk
from trickle.operators.show import text as spelled


def table_name(table: str, own: str) -> str:
    """What a table is called for people; ``own`` is the stream table's name."""
    if table == OWN:
        return own
    return f"inner table {table.removeprefix(STATE)}" if table.startswith(STATE) else table


def named(tree: Operator, own: str) -> Operator:
    """The tree with tables under the names that people know."""

    def rename(node: Operator) -> Operator:
        return replace(node, table=table_name(node.table, own)) if isinstance(node, Scan) else node

    return transformed(tree, rename)


def column_list(stage: Stage) -> str:
    """The stored columns, the hidden ones marked."""
    return ", ".join(f"{name} (hidden)" if is_hidden(name) else name for name in stage.columns)


def is_hidden(column: str) -> bool:
    """Whether readers do not see a column."""
    return column.startswith(INTERNAL_PREFIX)


@dataclass(frozen=True)
class Upkeep:
    """How an aggregate is kept: a class, and the same in words."""

    kind: str
    words: str


_ADDED = Upkeep("algebraic", "the change is added to what is stored; the group is never read again")
_ADDED_FLOATING = Upkeep(
    "algebraic", "the change is added to what is stored; the group is read again when one of its rows is deleted"
)
_EXTREMUM = Upkeep("extremum", "the group is read again when the extremum is deleted and nothing as good comes")
_ANEW = Upkeep("recomputed", "the group is read again whenever it changes")


def upkeep(kept: Kept) -> Upkeep:
    """How an aggregate is kept, from what its parts say."""
    if any(part.anew == exp.true() for part in kept.parts):
        return _ANEW
    if any(part.is_floating for part in kept.parts):
        return _ADDED_FLOATING
    sometimes = [part for part in kept.parts if part.anew != exp.false()]
    if not sometimes:
        return _ADDED
    if all(part.stored.name in ("min", "max") for part in sometimes):
        return _EXTREMUM
    when = " or ".join(spelled(part.anew) for part in sometimes)
    return Upkeep("conditional", f"the group is read again when {when}")


class Speller:
    """Writes expressions of stages with the names of the sources' columns, where they come straight from there."""

    def __init__(self, stages: Sequence[Stage]) -> None:
        self._stages = {stage.table: stage for stage in stages}

    def text(self, stage: Stage, expression: Expr) -> str:
        """An expression over what a stage reads."""
        return spelled(self._in_source_terms(stage, expression))

    def calls(self, stage: Stage) -> dict[str, str]:
        """The aggregates of a stage, as the query has them, by the names of the calls."""
        keeping = stage.keeping
        if not isinstance(keeping, Groups):
            return {}
        return {call.name: self.text(stage, call.value) for call in keeping.aggregate.calls}

    def way(self, stage: Stage) -> str:
        """How a stage is kept."""
        match stage.keeping:
            case Groups() as groups:
                keys = [self.text(stage, col(key)) for key in groups.aggregate.keys]
                if not keys:
                    return "by its only group"
                return f"by {'groups' if groups.aggregate.calls else 'distinct rows'} of {', '.join(keys)}"
            case FirstRows() as first:
                return "by its first row" if first.top.limit == 1 else f"by its first {first.top.limit} rows"
            case Fixpoint() as fixpoint:
                return "as a recursion" + (" that is computed anew" if fixpoint.unrestricted else "")
            case Rows():
                return "by rows"

    def _in_source_terms(self, stage: Stage, expression: Expr) -> Expr:
        return substituted(expression, self._names(stage))

    def _names(self, stage: Stage) -> Mapping[str, Expr]:
        found: dict[str, Expr] = {}
        for node in walk(stage.keeping.whole()):
            if isinstance(node, Scan):
                inner = self._stages.get(node.table)
                for column, name in node.fields:
                    found[name] = col(column) if inner is None else self._stored(inner, column)
        return found

    def _stored(self, stage: Stage, column: str) -> Expr:
        """What a column of an inner table holds."""
        keeping = stage.keeping
        outputs: Sequence[Output] = () if isinstance(keeping, Rows) else keeping.outputs
        value = next((output.value for output in outputs if output.name == column), col(column))
        if isinstance(keeping, Groups):
            value = substituted(value, {call.name: call.value for call in keeping.aggregate.calls})
        return self._in_source_terms(stage, value)
