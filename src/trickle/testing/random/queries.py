"""Random queries, nested up to a depth, as Spark SQL that a user could have written.

The text is put together as text, as users do: what is tested begins with reading it.
"""

from __future__ import annotations

from collections.abc import Sequence

from trickle.testing.random.aggregates import aggregate
from trickle.testing.random.expressions import Expressions
from trickle.testing.random.relations import from_clause
from trickle.testing.random.scope import Column, Query, Relation, Writer
from trickle.testing.random.subqueries import Subqueries
from trickle.testing.random.windows import order_by, window

_SETS = ("UNION ALL", "UNION", "INTERSECT", "EXCEPT", "INTERSECT ALL", "EXCEPT ALL")
_GROUPINGS = ("ROLLUP", "CUBE", "GROUPING SETS")


def query(writer: Writer, depth: int) -> Query:
    """Any query."""
    form = writer.choices.weighted((("select", 66), ("set", 17), ("limit", 9), ("with", 6), ("recursive", 2)))
    if depth == 0 and form in ("set", "with", "recursive"):
        form = "select"
    match form:
        case "set":
            return _set_operation(writer, depth)
        case "limit":
            return _limited(writer, depth)
        case "with":
            return _with(writer, depth)
        case "recursive":
            return _recursive(writer)
        case _:
            return select(writer, depth)


def select(writer: Writer, depth: int, kinds: Sequence[str] | None = None) -> Query:
    """A SELECT; with ``kinds``, its columns are of these."""
    relation = from_clause(writer, depth, query)
    where = _where(writer, relation, depth)
    form = writer.choices.weighted((("plain", 40), ("group", 35), ("window", 15), ("distinct", 10)))
    if form == "group":
        return _grouped(writer, relation, where, depth, kinds)
    if form == "window" and kinds is None:
        return _windowed(writer, relation, where)
    inside = _expressions(writer, relation.columns, depth, "SELECT")
    wanted = kinds or [inside.kind() for _ in range(1 + writer.choices.below(3))]
    outputs = [Column(inside.value(kind), kind) for kind in wanted]
    if kinds is None:
        # With a column as it is, most changes show.
        outputs.append(_a_column(writer, relation))
    distinct = form == "distinct"
    if distinct:
        writer.note("DISTINCT")
    listed, columns = _named(writer, outputs)
    return Query(f"SELECT {'DISTINCT ' if distinct else ''}{listed} FROM {relation.text}{where}", columns)


def _where(writer: Writer, relation: Relation, depth: int) -> str:
    if not writer.choices.chance(35):
        return ""
    writer.note("WHERE")
    condition = _expressions(writer, relation.columns, depth, "WHERE").condition()
    return f" WHERE {condition}"


def _expressions(writer: Writer, columns: Sequence[Column], depth: int, place: str) -> Expressions:
    if depth == 0:
        return Expressions(writer, columns)
    inner = Subqueries(query, depth, place)
    return Expressions(writer, columns, scalar=inner.scalar, test=inner.test)


def _named(writer: Writer, outputs: Sequence[Column]) -> tuple[str, tuple[Column, ...]]:
    columns = tuple(Column(writer.fresh("c"), output.kind) for output in outputs)
    return ", ".join(f"{o.text} AS {c.text}" for o, c in zip(outputs, columns, strict=True)), columns


def _windowed(writer: Writer, relation: Relation, where: str) -> Query:
    choices = writer.choices
    outputs = [
        *choices.some(relation.columns, 1, 2),
        *(window(writer, relation.columns) for _ in range(1 + choices.below(2))),
    ]
    listed, columns = _named(writer, outputs)
    text = f"SELECT {listed} FROM {relation.text}{where}"
    if choices.chance(25):
        writer.note("QUALIFY")
        text += f" QUALIFY {Expressions(writer, [columns[-1]]).condition(0)}"
    return Query(text, columns)


def _grouped(writer: Writer, relation: Relation, where: str, depth: int, kinds: Sequence[str] | None) -> Query:
    choices = writer.choices
    inside = Expressions(writer, relation.columns)
    keys = [
        Column(inside.value(kind, 1), kind) if choices.chance(20) else _a_column(writer, relation)
        for kind in [inside.kind() for _ in range(choices.weighted(((1, 50), (2, 25), (0, 25))))]
    ]
    keys = list({key.text: key for key in keys if not _is_constant(key.text)}.values())
    by, grouping = _group_by(writer, keys)
    calls = [aggregate(writer, relation.columns) for _ in range(1 + choices.below(3))]
    above = _above_groups(writer, () if grouping else keys, calls, depth)
    if kinds is None:
        outputs = [*choices.some(keys, 0, len(keys)), *calls]
        if choices.chance(25):
            writer.note("expression over aggregates")
            kind = choices.pick(calls).kind
            outputs.append(Column(_over_aggregates(writer, [*keys, *calls], kind), kind))
        if keys and grouping and choices.chance(40):
            writer.note("GROUPING()")
            outputs.append(Column(f"GROUPING({choices.pick(keys).text})", "int"))
    else:
        outputs = [Column(_over_aggregates(writer, [*keys, *calls], kind), kind) for kind in kinds]
    if keys and not grouping and kinds is None and choices.chance(10):
        outputs.append(_over_groups(writer, keys, calls))
    listed, columns = _named(writer, outputs)
    having = ""
    if choices.chance(25) and (keys or calls):
        writer.note("HAVING")
        having = f" HAVING {above.condition(1)}"
    return Query(f"SELECT {listed} FROM {relation.text}{where}{by}{having}", columns)


def _above_groups(writer: Writer, keys: Sequence[Column], calls: Sequence[Column], depth: int) -> Expressions:
    """Expressions over keys and aggregates. A subquery looks at keys alone: an aggregate in it would be its own."""
    plain = [*keys, *calls]
    if depth == 0:
        return Expressions(writer, plain)
    inner = Subqueries(query, depth, "HAVING")
    return Expressions(
        writer,
        plain,
        scalar=lambda by, _, kind: inner.scalar(by, keys, kind),
        test=lambda by, _: inner.test(by, keys),
    )


def _a_column(writer: Writer, relation: Relation) -> Column:
    return writer.choices.pick(relation.columns)


def _is_constant(text: str) -> bool:
    """Whether a key names no column: Spark takes a number there for a place."""
    return "." not in text or "SELECT" in text or text.startswith("CAST(") or text[0].isdigit()


def _over_aggregates(writer: Writer, columns: Sequence[Column], kind: str) -> str:
    return Expressions(writer, columns).value(kind, 2)


def _over_groups(writer: Writer, keys: Sequence[Column], calls: Sequence[Column]) -> Column:
    """A window function over groups, which differ in their keys."""
    writer.note("window over groups")
    total = order_by(writer, [writer.choices.pick(calls), *keys])
    return Column(f"ROW_NUMBER() OVER ({total})", "int")


def _group_by(writer: Writer, keys: Sequence[Column]) -> tuple[str, bool]:
    texts = [key.text for key in keys]
    if not texts:
        writer.note("aggregate without keys")
        return "", False
    writer.note("GROUP BY")
    if not writer.choices.chance(18):
        return f" GROUP BY {', '.join(texts)}", False
    kind = writer.choices.pick(_GROUPINGS)
    writer.note(kind)
    if kind != "GROUPING SETS":
        return f" GROUP BY {kind}({', '.join(texts)})", True
    sets = [f"({', '.join(texts)})", "()", *(f"({text})" for text in texts[1:])]
    return f" GROUP BY GROUPING SETS ({', '.join(sets)})", True


def _set_operation(writer: Writer, depth: int) -> Query:
    left = select(writer, depth - 1)
    right = select(writer, depth - 1, [column.kind for column in left.columns])
    word = writer.choices.pick(_SETS)
    writer.note(word)
    text = f"({left.text}) {word} ({right.text})"
    columns = tuple(Column(writer.fresh("c"), column.kind) for column in left.columns)
    alias = writer.fresh("r")
    listed = ", ".join(f"{old.text} AS {new.text}" for old, new in zip(left.columns, columns, strict=True))
    return Query(f"SELECT {listed} FROM ({text}) {alias}", columns)


def _limited(writer: Writer, depth: int) -> Query:
    inner = select(writer, max(0, depth - 1))
    writer.note("ORDER BY LIMIT")
    text = f"SELECT {', '.join(c.text for c in inner.columns)} FROM ({inner.text}) {writer.fresh('r')}"
    text += f" {order_by(writer, inner.columns)} LIMIT {1 + writer.choices.below(4)}"
    if writer.choices.chance(30):
        writer.note("OFFSET")
        text += f" OFFSET {1 + writer.choices.below(3)}"
    return Query(text, inner.columns)


def _with(writer: Writer, depth: int) -> Query:
    """A common table expression that is used twice, and perhaps more often."""
    inner = select(writer, depth - 1)
    name = writer.fresh("q")
    writer.note("WITH")
    first, second = writer.fresh("r"), writer.fresh("r")
    columns = inner.columns
    pairs = [(a, b) for a in columns for b in columns if a.kind == b.kind]
    a, b = writer.choices.pick(pairs)
    join = writer.choices.pick(("JOIN", "LEFT JOIN", "FULL JOIN"))
    listed, named = _named(
        writer, [*(Column(f"{first}.{c.text}", c.kind) for c in columns), Column(f"{second}.{b.text}", b.kind)]
    )
    text = (
        f"WITH {name} AS ({inner.text}) SELECT {listed} FROM {name} {first} {join} {name} {second} "
        f"ON {first}.{a.text} = {second}.{b.text}"
    )
    if not writer.choices.chance(40):
        return Query(text, named)
    writer.ctes[name] = columns
    outer = select(writer, depth - 1)
    del writer.ctes[name]
    return Query(f"WITH {name} AS ({inner.text}) {outer.text}", outer.columns)


def _recursive(writer: Writer) -> Query:
    """What can be reached from the rows of a table over another: each once, or as often as there are ways."""
    start, step = writer.choices.pick(list(writer.tables)), writer.choices.pick(list(writer.tables))
    ints = [column.text for column in writer.table(step) if column.kind == "int"]
    writer.table(start)
    name, a, b = writer.fresh("q"), writer.fresh("c"), writer.fresh("c")
    row, previous = writer.fresh("r"), writer.fresh("r")
    if writer.choices.chance(50):
        writer.note("WITH RECURSIVE, UNION")
        depth, word, where = "0", "UNION", ""
    else:
        writer.note("WITH RECURSIVE, UNION ALL")
        depth, word, where = f"{previous}.{b} + 1", "UNION ALL", f" WHERE {previous}.{b} < 2"
    text = (
        f"WITH RECURSIVE {name}({a}, {b}) AS (SELECT {row}.k, 0 FROM {start} {row} {word} "
        f"SELECT {row}.{ints[-1]} + 1, {depth} FROM {name} {previous} JOIN {step} {row} "
        f"ON {previous}.{a} = {row}.k{where}) SELECT {a}, {b} FROM {name}"
    )
    if word == "UNION":
        text = text.replace(f"{ints[-1]} + 1", ints[-1])
    return Query(text, (Column(a, "int"), Column(b, "int")))
