"""Random FROM clauses: tables, common table expressions, derived tables, VALUES, generators, LATERAL; joined."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from trickle.testing.random.expressions import Expressions
from trickle.testing.random.scope import KINDS, Column, Query, Relation, Writer, of_kind, qualified

QueryOf = Callable[[Writer, int], Query]

_JOINS = (
    ("JOIN", 20),
    ("LEFT JOIN", 18),
    ("RIGHT JOIN", 10),
    ("FULL JOIN", 10),
    ("LEFT SEMI JOIN", 7),
    ("LEFT ANTI JOIN", 7),
    ("CROSS JOIN", 5),
    ("comma", 3),
    ("NATURAL JOIN", 5),
    ("USING", 7),
    ("LATERAL", 8),
    ("LATERAL VIEW", 6),
)
_MERGING = ("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN")


def from_clause(writer: Writer, depth: int, query: QueryOf, most: int = 2) -> Relation:
    """One to three relations, joined."""
    left = source(writer, depth, query)
    for _ in range(writer.choices.weighted(((0, 45), (1, 35), (2, 20)))):
        if most == 0 or " LATERAL VIEW " in left.text or not writer.takes_part():
            break
        most -= 1
        left = _joined(writer, left, depth, query)
    return left


def source(writer: Writer, depth: int, query: QueryOf) -> Relation:
    """A single relation under an alias of its own."""
    choices = writer.choices
    if writer.ctes and choices.chance(50):
        name = choices.pick(list(writer.ctes))
        alias = writer.fresh("r")
        return Relation(f"{name} {alias}", qualified(alias, writer.ctes[name]))
    if depth > 0 and choices.chance(35) and writer.takes_part():
        return derived(writer, query(writer, depth - 1))
    if choices.chance(3):
        return _values(writer)
    return table(writer)


def table(writer: Writer) -> Relation:
    """A table of the schema."""
    name = writer.choices.pick(list(writer.tables))
    alias = writer.fresh("r")
    return Relation(f"{name} {alias}", qualified(alias, writer.table(name)))


def derived(writer: Writer, query: Query) -> Relation:
    """A query in FROM."""
    writer.note("derived table")
    alias = writer.fresh("r")
    return Relation(f"({query.text}) {alias}", qualified(alias, query.columns))


def _values(writer: Writer) -> Relation:
    writer.note("VALUES")
    kinds = writer.choices.some(("int", "string", "decimal"), 1, 3)
    expressions = Expressions(writer, ())
    rows = [", ".join(expressions.literal(kind) for kind in kinds) for _ in range(1 + writer.choices.below(3))]
    alias = writer.fresh("r")
    columns = tuple(Column(f"v{place}", kind) for place, kind in enumerate(kinds))
    listed = ", ".join(column.text for column in columns)
    return Relation(f"(VALUES {', '.join(f'({row})' for row in rows)}) AS {alias}({listed})", qualified(alias, columns))


def _joined(writer: Writer, left: Relation, depth: int, query: QueryOf) -> Relation:
    kind = writer.choices.weighted(_JOINS)
    match kind:
        case "NATURAL JOIN" | "USING":
            return _merged(writer, kind)
        case "LATERAL":
            return _lateral(writer, left)
        case "LATERAL VIEW":
            return _exploded(writer, left)
    right = source(writer, max(0, depth - 1), query)
    both = (*left.columns, *right.columns)
    writer.note(kind)
    if kind == "comma":
        return Relation(f"{left.text}, {right.text}", both)
    if kind == "CROSS JOIN":
        return Relation(f"{left.text} CROSS JOIN {right.text}", both)
    text = f"{left.text} {kind} {right.text} ON {_on(writer, left, right)}"
    return Relation(text, left.columns if kind.startswith(("LEFT SEMI", "LEFT ANTI")) else both)


def _on(writer: Writer, left: Relation, right: Relation) -> str:
    choices = writer.choices
    pairs = [(a, b) for a in left.columns for b in of_kind(right.columns, a.kind)]
    both = Expressions(writer, (*left.columns, *right.columns))
    if not pairs or choices.chance(8):
        writer.note("join on any condition")
        return both.condition(1)
    first, second = choices.pick(pairs)
    sign = choices.weighted((("=", 70), ("<=>", 10), ("<", 8), (">=", 6), ("<>", 6)))
    writer.note("non-equi join" if sign not in ("=", "<=>") else "equi join")
    condition = f"{first.text} {sign} {second.text}"
    return f"{condition} AND {both.condition(1)}" if choices.chance(25) else condition


def _merged(writer: Writer, kind: str) -> Relation:
    """NATURAL and USING, in a derived table that names its columns apart."""
    choices = writer.choices
    names = [choices.pick(list(writer.tables)) for _ in range(2)]
    a, b = writer.fresh("r"), writer.fresh("r")
    sides = [writer.table(name) for name in names]
    shared = [column for column in sides[0] if column in sides[1]]
    join = choices.pick(_MERGING)
    writer.note(f"{kind}: {join}")
    if kind == "USING":
        shared = shared[: 1 + choices.below(len(shared))]
        text = f"{names[0]} {a} {join} {names[1]} {b} USING ({', '.join(c.text for c in shared)})"
    else:
        text = f"{names[0]} {a} NATURAL {join} {names[1]} {b}"
    rest = [
        (f"{alias}.{column.text}", Column(f"{column.text}_{alias}", column.kind))
        for alias, side in ((a, sides[0]), (b, sides[1]))
        for column in side
        if column not in shared
    ]
    listed = ", ".join([*(column.text for column in shared), *(f"{c} AS {named.text}" for c, named in rest)])
    return derived(writer, Query(f"SELECT {listed} FROM {text}", (*shared, *(named for _, named in rest))))


def _lateral(writer: Writer, left: Relation) -> Relation:
    writer.note("LATERAL")
    inner = table(writer)
    condition = correlation(writer, inner.columns, left.columns)
    alias = writer.fresh("r")
    columns: tuple[Column, ...]
    if writer.choices.chance(40):
        writer.note("LATERAL with an aggregate")
        query = f"SELECT COUNT(*) AS n, MIN({inner.columns[0].text}) AS o FROM {inner.text} WHERE {condition}"
        columns = (Column("n", "bigint"), Column("o", inner.columns[0].kind))
    else:
        wanted = writer.choices.some(inner.columns, 1, 2)
        columns = tuple(Column(writer.fresh("l"), column.kind) for column in wanted)
        listed = ", ".join(f"{c.text} AS {named.text}" for c, named in zip(wanted, columns, strict=True))
        query = f"SELECT {listed} FROM {inner.text} WHERE {condition}"
    both = (*left.columns, *qualified(alias, columns))
    if writer.choices.chance(40):
        writer.note("LEFT JOIN LATERAL")
        return Relation(f"{left.text} LEFT JOIN LATERAL ({query}) {alias} ON TRUE", both)
    return Relation(f"{left.text} CROSS JOIN LATERAL ({query}) {alias}", both)


def _exploded(writer: Writer, left: Relation) -> Relation:
    ints = of_kind(left.columns, "int")
    if not ints:
        return left
    outer = writer.choices.chance(30)
    writer.note("LATERAL VIEW OUTER" if outer else "LATERAL VIEW")
    items = ", ".join(column.text for column in (writer.choices.pick(ints), writer.choices.pick(ints)))
    alias, name = writer.fresh("r"), writer.fresh("g")
    text = f"{left.text} LATERAL VIEW {'OUTER ' if outer else ''}EXPLODE(ARRAY({items}, 7)) {alias} AS {name}"
    return Relation(text, (*left.columns, Column(f"{alias}.{name}", "int")))


def correlation(writer: Writer, inner: Sequence[Column], outer: Sequence[Column]) -> str:
    """A condition that compares a column of a subquery with one of outside."""
    choices = writer.choices
    pairs = [(a, b) for a in inner for b in of_kind(outer, a.kind)]
    if not pairs:
        kind = choices.pick(KINDS)
        return Expressions(writer, (*inner, *outer)).leaf(kind) + " IS NOT NULL"
    first, second = choices.pick(pairs)
    sign = choices.weighted((("=", 70), ("<", 10), ("<=>", 10), ("<>", 10)))
    writer.note("correlated" if sign == "=" else "correlated, not by equality")
    condition = f"{first.text} {sign} {second.text}"
    if choices.chance(25):
        return f"{condition} AND {Expressions(writer, (*inner, *outer)).condition(1)}"
    return condition
