"""Which names in a tree are tables, and which column names carry a table's schema.

A name in FROM is a table unless a common table expression of that name is in scope there. A common table expression is
in scope in those after it in the same WITH and in the query below; in its own body only with RECURSIVE.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from trickle.algebra.names import TableName, quote
from trickle.errors import InvalidName, UnsupportedQuery
from trickle.sql.text import Cut, TableRef
from trickle.sql.tokens import Source
from trickle.sql.trees import Tree

_Key = tuple[str, str]

_FILE_FORMATS = frozenset(("avro", "binaryfile", "csv", "delta", "iceberg", "json", "orc", "parquet", "text", "xml"))
_NOT_IN_QUERIES = (exp.DDL, exp.DML, exp.Command, exp.Drop, exp.Into, exp.MultitableInserts)


@dataclass(frozen=True)
class _Ctes:
    """Common table expressions in scope: those of ``positions`` before ``limit``, and those of the outer query."""

    positions: dict[str, int]
    limit: int
    outer: _Ctes | None

    def __contains__(self, name: str) -> bool:
        level: _Ctes | None = self
        while level:
            if level.positions.get(name, level.limit) < level.limit:
                return True
            level = level.outer
        return False


@dataclass(frozen=True)
class Relation:
    """A relation outside the text whose columns the text names: the target or the source of a MERGE, say."""

    name: TableName
    alias: str | None = None


@dataclass(eq=False)
class _Scope:
    """The relations of one SELECT: what they are called, and those without an alias; all in lower case."""

    outer: _Scope | None
    called: Counter[str] = field(default_factory=Counter)
    unaliased: Counter[_Key] = field(default_factory=Counter)
    kept_apart: set[str] = field(default_factory=set)

    def add(self, name: TableName, alias: str | None) -> None:
        self.called[(alias or name.table).lower()] += 1
        if not alias:
            self.unaliased[_key(name)] += 1

    def is_ambiguous(self, key: _Key) -> bool:
        return self.called[key[1]] > self.unaliased[key]

    def alias_of(self, name: TableName) -> str:
        """What a reference without an alias is called: its table name, unless that must be kept apart."""
        return ".".join(_key(name)) if name.table_key in self.kept_apart else name.table

    def resolve(self, key: _Key) -> _Scope | None:
        """The nearest scope that has this table without an alias."""
        scope: _Scope | None = self
        while scope and not scope.unaliased[key]:
            scope = scope.outer
        return scope


@dataclass(frozen=True, eq=False)
class _Found:
    name: TableName
    scope: _Scope
    aliased: bool
    node: exp.Table


def _key(name: TableName) -> _Key:
    return name.schema_key, name.table_key


def find_refs(
    source: Source, tokens: Sequence[Token], tree: Tree, outside: Sequence[Relation] = ()
) -> tuple[tuple[TableRef, ...], tuple[Cut, ...]]:
    """The table references of a tree, and the schemas to cut from column names, in the order of the text."""
    finder = _Finder(source, tree.bare)
    finder.walk(tree.root, outside)
    placed = _Places(source, tokens)
    cuts = list(finder.cuts())
    refs = [placed.ref(found) for found in finder.found]
    return tuple(sorted(refs, key=lambda r: r.start)), tuple(sorted(cuts, key=lambda c: c.start))


class _Finder:
    """Walks a tree with a stack of its own: a chain of 100,000 ORs is 100,000 levels deep."""

    def __init__(self, source: Source, bare: frozenset[int]) -> None:
        self._source = source
        self._bare = bare
        self._columns: list[tuple[exp.Column, _Scope]] = []
        self.found: list[_Found] = []

    def walk(self, root: exp.Expr, outside: Sequence[Relation]) -> None:
        scope = _Scope(None)
        for relation in outside:
            scope.add(relation.name, relation.alias)
        stack: list[tuple[exp.Expr, _Ctes, _Scope]] = [(root, _Ctes({}, 0, None), scope)]
        while stack:
            node, ctes, scope = stack.pop()
            if isinstance(node, exp.Hint):
                continue  # sqlglot parses hints apart, with offsets of their own
            if isinstance(node, _NOT_IN_QUERIES) and not isinstance(node, exp.Query):
                raise UnsupportedQuery(f"{node.key.upper()} is not supported inside a query")
            if isinstance(node, exp.Select):
                scope = _Scope(scope)
            with_ = node.args.get("with_")
            if isinstance(with_, exp.With):
                ctes = self._open_with(with_, ctes, scope, stack)
            self._look_at(node, ctes, scope)
            stack.extend((child, ctes, scope) for child in node.iter_expressions() if child is not with_)

    def _open_with(
        self, with_: exp.With, outer: _Ctes, scope: _Scope, stack: list[tuple[exp.Expr, _Ctes, _Scope]]
    ) -> _Ctes:
        positions = {cte.alias.lower(): index for index, cte in enumerate(with_.expressions)}
        for index, cte in enumerate(with_.expressions):
            visible = index + 1 if with_.args.get("recursive") else index
            stack.append((cte, _Ctes(positions, visible, outer), scope))
        return _Ctes(positions, len(positions), outer)

    def _look_at(self, node: exp.Expr, ctes: _Ctes, scope: _Scope) -> None:
        match node:
            case exp.Table():
                self._look_at_table(node, ctes, scope)
            case exp.Column() if node.args.get("db"):
                self._columns.append((node, scope))
            case exp.Subquery() | exp.Lateral() | exp.Values() | exp.Unnest() if node.alias:
                scope.called[node.alias.lower()] += 1
            case _:
                pass

    def _look_at_table(self, table: exp.Table, ctes: _Ctes, scope: _Scope) -> None:
        alias = table.args.get("alias")
        called = alias.name if isinstance(alias, exp.TableAlias) else ""
        if isinstance(table.this, exp.Func):
            _refuse_hidden_name(table.this)
            scope.called[called.lower()] += 1
            return
        parts = self._parts(table)
        if len(parts) == 1 and parts[0].name.lower() in ctes:
            scope.called[(called or parts[0].name).lower()] += 1
            return
        name = _table_name(parts)
        scope.add(name, called)
        self.found.append(_Found(name, scope, bool(called) or parts[0].meta["start"] in self._bare, table))

    def _parts(self, table: exp.Table) -> list[exp.Identifier]:
        parts = [part for part in table.parts if isinstance(part, exp.Identifier)]
        text = self._source.text
        plain = len(parts) == len(table.parts) and all("start" in part.meta for part in parts)
        if not plain or any(text[part.meta["start"]] in "'\"" for part in parts):
            raise UnsupportedQuery(
                "a table must be named", detail=f"found {table.this.sql()[:80]}", hint="write table or schema.table"
            )
        alias = table.args.get("alias")
        if table.args.get("hints") or (alias and alias.this and not isinstance(alias.this, exp.Identifier)):
            raise UnsupportedQuery(f"options on the table {parts[-1].name!r} are not supported")
        return parts

    def cuts(self) -> Iterator[Cut]:
        for column, scope in self._columns:
            schema, table = column.parts[:2]
            key = schema.name.lower(), table.name.lower()
            found = scope.resolve(key)
            if found is None or "start" not in schema.meta or "start" not in table.meta:
                continue
            if found.is_ambiguous(key):
                # `a.t.id = b.t.id` would be `t.id = t.id` with the schemas cut off.
                found.kept_apart.add(key[1])
                yield Cut(schema.meta["start"], table.meta["end"] + 1, quote(".".join(key)))
            else:
                yield Cut(schema.meta["start"], table.meta["start"])


class _Places:
    """Finds the ends of references among the tokens: the tree does not keep them."""

    def __init__(self, source: Source, tokens: Sequence[Token]) -> None:
        self._source = source
        self._tokens = tokens
        self._index = {token.end: index for index, token in enumerate(tokens)}

    def ref(self, found: _Found) -> TableRef:
        table = found.node
        parts = table.parts
        last = self._index[parts[-1].meta["end"]]
        version = None
        if isinstance(table.args.get("version"), exp.Version):
            version = _version_number(found.name, table.args["version"])
            last = self._version_end(last)
        after = self._sample_end(last) if table.args.get("sample") else last
        return TableRef(
            name=found.name,
            start=parts[0].meta["start"],
            end=self._tokens[last].end + 1,
            alias_needed=not found.aliased,
            version=version,
            alias="" if found.aliased else found.scope.alias_of(found.name),
            alias_at=self._tokens[after].end + 1,
        )

    def _version_end(self, index: int) -> int:
        """The token after ``[FOR] VERSION AS OF``."""
        while self._tokens[index].text.upper() != "OF":
            index += 1
        return index + 1

    def _sample_end(self, index: int) -> int:
        end = self._closing(index + 1)
        repeatable = end + 1 < len(self._tokens) and self._tokens[end + 1].text.upper() == "REPEATABLE"
        return self._closing(end + 1) if repeatable else end

    def _closing(self, index: int) -> int:
        depth = 0
        for at in range(index, len(self._tokens)):
            kind = self._tokens[at].token_type
            depth += (kind is TokenType.L_PAREN) - (kind is TokenType.R_PAREN)
            if kind is TokenType.R_PAREN and not depth:
                return at
        raise self._source.error(self._tokens[index].start, "the parenthesis is not closed")


def _refuse_hidden_name(function: exp.Func) -> None:
    """IDENTIFIER('orders') and STREAM(orders) name tables in ways that cannot be bound."""
    if function.name.lower() in ("identifier", "stream"):
        raise UnsupportedQuery(
            f"{function.name.upper()}(...) is not supported", hint="write the name of the table itself"
        )


def _table_name(parts: Sequence[exp.Identifier]) -> TableName:
    names = [part.name for part in parts]
    if len(parts) == 2 and names[0].lower() in _FILE_FORMATS and parts[1].args.get("quoted"):
        raise UnsupportedQuery(
            f"files are not queried directly: {names[0]}.{quote(names[1])}",
            hint="register the table first: t.attach_table('name', 'path'), then read it by its name",
        )
    if len(parts) > 2:
        raise InvalidName(
            f"a name has one or two parts, not {len(parts)}",
            detail=".".join(names),
            hint="write table or schema.table",
        )
    return TableName.of(names)


def _version_number(name: TableName, version: exp.Version) -> int:
    value = version.expression
    if version.name.upper() != "VERSION" or version.args.get("kind") != "AS OF":
        raise UnsupportedQuery(
            f"{version.name.upper()} AS OF is not supported",
            hint=f"read a version by its number: {name} VERSION AS OF 3",
        )
    if not isinstance(value, exp.Literal) or not str(value.this).isdecimal():
        raise UnsupportedQuery("a version is a whole number", hint=f"write {name} VERSION AS OF 3")
    return int(value.this)
