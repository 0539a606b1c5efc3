"""Text to queries and expressions whose table references are found."""

from __future__ import annotations

from collections.abc import Sequence

from trickle.sql.facts import facts_of
from trickle.sql.refs import Relation, find_refs
from trickle.sql.text import Query, SqlText
from trickle.sql.tokens import Source, read_source
from trickle.sql.trees import expression_tree, query_tree, relation_tree

DEFAULT_MAX_DEPTH = 64


def query(text: str, max_depth: int = DEFAULT_MAX_DEPTH) -> Query:
    """One SELECT-like statement, with its table references and what matters for keeping its result.

    >>> query("SELECT * FROM orders o JOIN sales.items USING (id)").bind(lambda name: f"view_{name.table}")
    'SELECT * FROM `view_orders` o JOIN `view_items` AS `items` USING (id)'
    """
    source = read_source(text)
    statements = source.statements()
    if not statements:
        raise source.error(0, "the query is empty")
    if len(statements) > 1:
        raise source.error(statements[1][0].start, "one query is expected", hint="leave out what follows the semicolon")
    words = statements[0]
    return query_in(source, words[0].start, words[-1].end, max_depth)


def query_in(source: Source, start: int, end: int, max_depth: int) -> Query:
    """The query between two offsets of a text."""
    tokens = source.tokens_between(start, end)
    tree = query_tree(source, tokens, max_depth)
    refs, cuts = find_refs(source, tokens, tree)
    facts = facts_of(tree.root)
    found = Query(
        source.text,
        refs,
        cuts,
        volatile=facts.volatile,
        time_dependent=facts.time_dependent,
        limit_without_order=facts.limit_without_order,
        table_sample=facts.table_sample,
        order_without_limit=facts.order_without_limit,
    )
    return found.shifted(-start, source.text[start:end])


def expression_in(source: Source, start: int, end: int, max_depth: int, outside: Sequence[Relation] = ()) -> SqlText:
    """The value or condition between two offsets of a text; ``outside`` are the relations whose rows it is about."""
    tokens = source.tokens_between(start, end)
    tree = expression_tree(source, tokens, max_depth)
    refs, cuts = find_refs(source, tokens, tree, outside)
    return SqlText(source.text, refs, cuts).shifted(-start, source.text[start:end])


def relation_in(source: Source, start: int, end: int, max_depth: int) -> SqlText:
    """The table named between two offsets of a text, which takes no alias."""
    tokens = source.tokens_between(start, end)
    refs, cuts = find_refs(source, tokens, relation_tree(source, tokens, max_depth))
    return SqlText(source.text, refs, cuts).shifted(-start, source.text[start:end])
