"""What all operators have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields

from trickle.errors import InternalError
from trickle.operators.expressions import Expr, column_names


class InvalidTree(InternalError):
    """A tree that cannot mean anything: a mistake in the code that built it."""


@dataclass(frozen=True)
class Operator(ABC):
    """A relation, computed from its inputs. Rows are a multiset."""

    @property
    @abstractmethod
    def columns(self) -> tuple[str, ...]:
        """The names of the columns, each once."""

    @property
    @abstractmethod
    def inputs(self) -> tuple[Operator, ...]:
        """The relations that it is computed from."""

    @abstractmethod
    def with_inputs(self, inputs: Sequence[Operator]) -> Operator:
        """The same operator over other inputs."""

    @property
    def own(self) -> tuple[object, ...]:
        """What the operator is made of besides its inputs: equal operators over equal inputs are equal."""
        inputs = self.inputs
        values = (getattr(self, field.name) for field in fields(self))
        return tuple(value for value in values if value is not inputs and not any(value is one for one in inputs))

    @property
    def expressions(self) -> tuple[Expr, ...]:
        """The expressions of this node alone."""
        return ()

    @property
    def used(self) -> frozenset[str]:
        """The columns that this node's own expressions and keys name."""
        return frozenset().union(*map(column_names, self.expressions))


def check_distinct(names: Iterable[str], where: str) -> None:
    """Refuse a column that is there twice."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise InvalidTree(f"column {name!r} is there twice in {where}")
        seen.add(name)


def check_known(names: Iterable[str], known: Iterable[str], where: str) -> None:
    """Refuse a key that the input does not have."""
    if missing := sorted(set(names) - set(known)):
        raise InvalidTree(f"{where} has no column {missing[0]!r}")
