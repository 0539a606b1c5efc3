"""Completes keywords and table names."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

_WORDS = """
    ADD ALL ALTER AND AS ASC BETWEEN BIGINT BOOLEAN BY CALL CASCADE CASE CAST COLUMN COUNT CREATE CROSS DATE DECIMAL
    DELETE DESC DESCRIBE DISTINCT DOUBLE DROP ELSE END EXCEPT EXISTS EXPLAIN EXTENDED FALSE FORCE FROM FULL GROUP
    HAVING IF IN INNER INSERT INT INTERSECT INTO IS JOIN KEY LEFT LIKE LIMIT MATCHED MATERIALIZED MERGE NOT NULL ON OR
    ORDER OUTER OVER PARTITION PARTITIONED PRIMARY REFRESH RENAME REPLACE RESET RESUME RIGHT SELECT SET SHOW STREAM
    STRING SUM SUSPEND TABLE TABLES THEN TIMESTAMP TO TRUE TRUNCATE UNION UPDATE USING VALUES VIEW WHEN WHERE WITH
"""
KEYWORDS = tuple(_WORDS.split())


class SqlCompleter(Completer):
    """Offers keywords, in the case of what was typed, and the names that the catalog knows."""

    def __init__(self, names: Callable[[], Iterable[str]]) -> None:
        self._names = names

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        """Everything that begins like the word before the cursor."""
        word = _word_before(document)
        if not word and not complete_event.completion_requested:
            return
        for name in self._names():
            if name.lower().startswith(word.lower()):
                yield Completion(name, start_position=-len(word), display_meta="table")
        for keyword in KEYWORDS:
            if keyword.startswith(word.upper()):
                yield Completion(keyword.lower() if word.islower() else keyword, start_position=-len(word))


def _word_before(document: Document) -> str:
    before = document.text_before_cursor
    start = len(before)
    while start and (before[start - 1].isalnum() or before[start - 1] in "_.`"):
        start -= 1
    return before[start:]
