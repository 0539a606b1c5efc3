"""Names for columns of the tree: each is given once, without regard to case, as Spark compares them."""

from __future__ import annotations

from collections.abc import Iterable

from sqlglot import exp

from trickle.errors import UnsupportedQuery

# Common table expressions and views are built for each use, so a short text can stand for a huge tree.
_MOST_USES = 1_000


class Names:
    """Gives out names.

    >>> names = Names()
    >>> names.fresh("id"), names.fresh("ID"), names.fresh("id")
    ('id', 'ID_1', 'id_2')
    """

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._next: dict[str, int] = {}
        self._uses = 0

    def reserve(self, names: Iterable[str]) -> None:
        """Never give out these: a lambda's parameter would capture the column."""
        self._taken.update(name.lower() for name in names)

    def count_use(self) -> None:
        """Note that a common table expression or a view is written out once more."""
        self._uses += 1
        if self._uses > _MOST_USES:
            raise UnsupportedQuery(
                "the query is too large when its views and WITH are written out",
                detail=f"they are used more than {_MOST_USES} times, counting uses inside of uses",
                hint="keep a part of it as a stream table of its own",
            )

    def fresh(self, hint: str) -> str:
        """A name like the hint that no column has."""
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
