"""Reads one statement word by word; what is a query or an expression goes to sqlglot whole."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from trickle.algebra.names import TableName
from trickle.errors import InvalidName, ParseError, UnsupportedStatement
from trickle.sql.query import expression_in, query_in
from trickle.sql.refs import Relation
from trickle.sql.text import Query, SqlText
from trickle.sql.tokens import Kind, Source, Word

T = TypeVar("T")

_OPENS = ("(", "[", "{")
_CLOSES = (")", "]", "}")


class Reader:
    """A place in the words of one statement."""

    def __init__(self, source: Source, words: Sequence[Word], max_depth: int) -> None:
        self.source = source
        self.words = words
        self.max_depth = max_depth
        self.at = 0

    # Looking

    def peek(self, ahead: int = 0) -> Word | None:
        """The next word, or one after it."""
        index = self.at + ahead
        return self.words[index] if index < len(self.words) else None

    def sees(self, *keywords: str) -> bool:
        """Whether the next words are these keywords or symbols."""
        following = self.words[self.at : self.at + len(keywords)]
        return len(following) == len(keywords) and all(map(Word.is_keyword, following, keywords))

    @property
    def done(self) -> bool:
        return self.at >= len(self.words)

    @property
    def offset(self) -> int:
        """Where the next word begins, or the end of the statement."""
        word = self.peek()
        return word.start if word else self.words[-1].end

    # Taking

    def accept(self, *keywords: str) -> bool:
        """Take these keywords if they come next."""
        if not self.sees(*keywords):
            return False
        self.at += len(keywords)
        return True

    def expect(self, *keywords: str) -> None:
        """Take these keywords; they must come next."""
        if not self.accept(*keywords):
            raise self.error(f"expected {' '.join(keywords)}")

    def next(self, what: str) -> Word:
        """Take any word."""
        word = self.peek()
        if word is None:
            raise self.error(f"expected {what}")
        self.at += 1
        return word

    def identifier(self, what: str) -> str:
        """Take a name of one part."""
        word = self.peek()
        if word is None or word.kind not in (Kind.WORD, Kind.QUOTED):
            raise self.error(f"expected {what}")
        self.at += 1
        return word.text

    def dotted(self, what: str) -> tuple[str, ...]:
        """Take a name of one or more parts."""
        parts = [self.identifier(what)]
        while self.accept("."):
            parts.append(self.identifier(what))
        return tuple(parts)

    def table(self, what: str = "the name of a table") -> TableName:
        """Take the name of a relation."""
        return TableName.of(self.dotted(what))

    def own_table(self, what: str = "the name of a table") -> TableName:
        """Take the name of a relation that the statement changes: not one of Trickle's own."""
        return check_own(self.table(what))

    def column(self) -> str:
        """Take the name of a column: a field inside a column cannot be changed on its own."""
        parts = self.dotted("the name of a column")
        if len(parts) > 1:
            raise UnsupportedStatement(
                f"fields inside a column are not changed on their own: {'.'.join(parts)}",
                hint="give the whole column a new value",
            )
        return parts[0]

    def string(self, what: str) -> str:
        """Take a string; adjacent ones are one string, and a doubled quote is a quote, as in Spark."""
        word = self.peek()
        if word is None or word.kind is not Kind.STRING:
            raise self.error(f"expected {what} in quotes")
        text, end = "", None
        while word is not None and word.kind is Kind.STRING:
            text += (self.source.text[word.start] if word.start == end else "") + word.text
            end = word.end
            self.at += 1
            word = self.peek()
        return text

    def listed(self, item: Callable[[], T]) -> tuple[T, ...]:
        """Take ``(item, item, ...)``, at least one."""
        self.expect("(")
        items = [item()]
        while self.accept(","):
            items.append(item())
        self.expect(")")
        return tuple(items)

    def end(self) -> None:
        """The statement must end here."""
        word = self.peek()
        if word is not None:
            raise self.error(f"unexpected {word.text[:40]!r}")

    # Handing over to sqlglot

    def query(self) -> Query:
        """Take the rest of the statement as a query."""
        if self.done:
            raise self.error("expected a query")
        start, end = self.offset, self.words[-1].end
        self.at = len(self.words)
        return query_in(self.source, start, end, self.max_depth)

    def expression(self, *stops: str, outside: Sequence[Relation] = ()) -> SqlText:
        """Take an expression up to one of these keywords outside parentheses and CASE, or to the end."""
        start = self.offset
        before = self.at
        self.skip_to(*stops)
        if self.at == before:
            raise self.error("expected an expression")
        return expression_in(self.source, start, self.words[self.at - 1].end, self.max_depth, outside)

    def skip_to(self, *stops: str) -> None:
        """Pass over what is nested, to one of these keywords, a closing parenthesis, or the end."""
        nesting: list[str] = []
        while (word := self.peek()) is not None:
            stops_here = word.is_keyword(")") or any(map(word.is_keyword, stops))
            if not nesting and stops_here and not self._is_distinct_from(word):
                return
            self._nest(word, nesting)
            self.at += 1

    def _is_distinct_from(self, word: Word) -> bool:
        return word.is_keyword("FROM") and self.at > 0 and self.words[self.at - 1].is_keyword("DISTINCT")

    def _nest(self, word: Word, nesting: list[str]) -> None:
        after_dot = self.at > 0 and self.words[self.at - 1].is_keyword(".")
        if (word.kind is Kind.SYMBOL and word.text in _OPENS) or (word.is_keyword("CASE") and not after_dot):
            nesting.append(word.text.upper())
        elif word.kind is Kind.SYMBOL and word.text in _CLOSES:
            while nesting and nesting.pop() not in _OPENS:
                pass
        elif word.is_keyword("END") and not after_dot and nesting[-1:] == ["CASE"]:
            nesting.pop()

    # Refusing

    def error(self, message: str, *, hint: str | None = None) -> ParseError:
        """A parse error at the next word."""
        return self.source.error(self.offset, message, hint=hint)

    def refuse(self, what: str, *refused: str, hint: str) -> None:
        """Refuse a statement by the name of the clause that comes next, if it is this one."""
        if self.sees(*refused):
            raise UnsupportedStatement(f"{' '.join(refused)} is not supported in {what}", hint=hint)


def check_own(name: TableName) -> TableName:
    """Refuse the name of one of Trickle's own relations."""
    if name.is_system:
        raise InvalidName(
            f"{name} is read-only",
            detail=f"the schema {name.schema!r} belongs to Trickle",
            hint="choose another schema",
        )
    return name
