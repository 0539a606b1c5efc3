"""Names for columns of the tree: each is given once, without regard to case, as Spark compares them."""

from __future__ import annotations

from collections.abc import Iterable

from sqlglot import exp

from trickle.errors import UnsupportedQuery

# A common table expression is built for each use, so a short text can stand for a huge tree.
_MOST = 200_000


class Names:
    """Gives out names.

    >>> names = Names()
    >>> names.fresh("id"), names.fresh("ID"), names.fresh("id")
    ('id', 'ID_1', 'id_2')
    """

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._next: dict[str, int] = {}

    def reserve(self, names: Iterable[str]) -> None:
        """Never give out these: a lambda's parameter would capture the column."""
        self._taken.update(name.lower() for name in names)

    def fresh(self, hint: str) -> str:
        """A name like the hint that no column has."""
        if len(self._taken) > _MOST:
            raise UnsupportedQuery(
                "the query is too large", detail=f"it has more than {_MOST} columns when spelled out"
            )
        key = hint.lower()
        name, number = hint, self._next.get(key, 0)
        while name.lower() in self._taken:
            number += 1
            name = f"{hint}_{number}"
        self._next[key] = number
        self._taken.add(name.lower())
        return name


def lambda_parameters(tree: exp.Expr) -> set[str]:
    """The parameters of all lambdas of a text."""
    return {parameter.name for function in tree.find_all(exp.Lambda) for parameter in function.expressions}
