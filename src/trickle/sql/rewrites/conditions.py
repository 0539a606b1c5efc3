"""Conditions as lists of conjuncts, and what is known about one conjunct."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from sqlglot import exp

from trickle.operators import Expr, column_names, renamed, substituted
from trickle.sql.facts import VOLATILE


def conjuncts(condition: Expr | None) -> list[Expr]:
    """The parts of an AND.

    >>> from sqlglot import parse_one
    >>> [part.sql() for part in conjuncts(parse_one("a AND (b OR c) AND (d AND e)"))]
    ['a', 'b OR c', 'd', 'e']
    """
    return [] if condition is None else list(_parts(condition))


def _parts(condition: Expr) -> Iterator[Expr]:
    match condition:
        case exp.And():
            yield from _parts(condition.this)
            yield from _parts(condition.expression)
        case exp.Paren():
            yield from _parts(condition.this)
        case exp.Boolean() if condition.this:
            return
        case _:
            yield condition


def all_of(parts: Iterable[Expr]) -> Expr | None:
    """The conjunction; None, which stands for TRUE, when there are no parts.

    >>> from sqlglot import parse_one
    >>> all_of([parse_one("a OR b"), parse_one("c")]).sql()
    '(a OR b) AND c'
    """
    parts = list(parts)
    return exp.and_(*parts) if parts else None


def is_volatile(expression: Expr) -> bool:
    """Whether a function in it may give another value the next time."""
    return any(call.name.lower() in VOLATILE for call in expression.find_all(exp.Anonymous))


def chooses(part: Expr) -> bool:
    """Whether a conjunct leaves few rows, as a rule.

    >>> from sqlglot import parse_one
    >>> [chooses(parse_one(text)) for text in ("a = 1", "a IN (1, 2)", "a LIKE 'b%'", "a > 1", "NOT a = 1")]
    [True, True, True, False, False]
    """
    return isinstance(part, exp.EQ | exp.NullSafeEQ | exp.In | exp.Like)


def resolved(expression: Expr, values: Mapping[str, Expr]) -> Expr:
    """The expression with columns replaced by what they stand for."""
    return substituted(expression, values) if values else expression


@dataclass(frozen=True)
class Match:
    """A conjunct ``inner = outer`` (or ``inner <=> outer``), one side of which uses only a subquery's columns."""

    inner: Expr
    outer: Expr
    null_safe: bool

    def on(self, inner: Expr) -> Expr:
        """The comparison with something else in the place of the inner side."""
        return (exp.NullSafeEQ if self.null_safe else exp.EQ)(this=inner, expression=self.outer.copy())


def match_of(conjunct: Expr, inside: AbstractSet[str]) -> Match | None:
    """The conjunct as a match of a value inside the subquery with a value outside, if it is one."""
    if not isinstance(conjunct, exp.EQ | exp.NullSafeEQ):
        return None
    for inner, outer in ((conjunct.this, conjunct.expression), (conjunct.expression, conjunct.this)):
        used = column_names(inner)
        if used and used <= inside and not column_names(outer) & inside:
            return Match(_bare(inner), _bare(outer), isinstance(conjunct, exp.NullSafeEQ))
    return None


def matches_of(
    parts: Iterable[Expr], inside: AbstractSet[str], is_exact: Callable[[Match], bool] | None = None
) -> list[Match] | None:
    """All conjuncts as matches; None when one of them is something else, or not ``is_exact``."""
    found = [match_of(part, inside) for part in parts]
    known = [match for match in found if match is not None and (is_exact is None or is_exact(match))]
    return known if len(known) == len(found) else None


def renamed_match(match: Match, names: Mapping[str, str]) -> Match:
    """The match with other names on its inner side."""
    return Match(renamed(match.inner, names), match.outer, match.null_safe)


def is_null(value: Expr) -> Expr:
    """``value IS NULL``."""
    inner = value.copy()
    return exp.Is(this=exp.paren(inner) if isinstance(inner, exp.Binary | exp.Unary) else inner, expression=exp.null())


def _bare(expression: Expr) -> Expr:
    return expression.this if isinstance(expression, exp.Paren) else expression
