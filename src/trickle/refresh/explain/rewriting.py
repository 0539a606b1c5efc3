"""``explain_query_rewrite``: from the text of a query to the stages in which it would be kept."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from trickle.delta.stages import Stage
from trickle.operators import show
from trickle.refresh.compiled import described
from trickle.refresh.dependencies import DEEPEST
from trickle.refresh.explain.opened import QUERY, UNSTEADY, Asked, read_query
from trickle.refresh.explain.words import Speller, column_list, named, table_name
from trickle.sql.build import build_tree
from trickle.sql.clock import bind_clock
from trickle.sql.rewrites import rules
from trickle.warehouse import Warehouse


def explain_query_rewrite(warehouse: Warehouse, text: str) -> list[str]:
    """What becomes of a query, line by line. UnsupportedQuery when it cannot be kept by changes."""
    asked = read_query(warehouse, text)
    stages = asked.compiled().stages
    lines: list[str] = []
    for title, body in [*_texts(asked), *_trees(asked), *_stages(stages)]:
        lines.append(f"{title}:")
        lines += [f"  {line}" for line in body.splitlines()]
    return lines


def _texts(asked: Asked) -> Iterator[tuple[str, str]]:
    yield "query", asked.given.text
    if asked.run.text != asked.given.text:
        yield "made definite", asked.run.text
    unsteady = [f"a stream table is kept in full only: {UNSTEADY}"] if asked.is_unsteady else []
    if notices := [*unsteady, *asked.notices]:
        yield "notices", "\n".join(notices)


def _trees(asked: Asked) -> Iterator[tuple[str, str]]:
    """The tree as built, and after each rule that changed it."""
    schemas = described({source.name: asked.reading.snapshot(source).schema for source in asked.reading.tables})
    tree = build_tree(
        asked.run.text,
        schemas,
        views={name: view.text for name, view in asked.reading.views.items()},
        names=asked.columns,
        max_depth=DEEPEST,
    )
    yield "tree", show(tree)
    for rule in (*rules(schemas), bind_clock):
        after = rule(tree)
        if after != tree:
            yield f"after {rule.__name__}", show(after)
        tree = after


def _stages(stages: Sequence[Stage]) -> Iterator[tuple[str, str]]:
    speller = Speller(stages)
    for number, stage in enumerate(stages, 1):
        reads = ", ".join(table_name(table, str(QUERY)) for table in sorted(stage.reads)) or "no table"
        about = f"kept {speller.way(stage)}\nreads {reads}\ncolumns {column_list(stage)}\n"
        yield (
            f"stage {number}, {table_name(stage.table, str(QUERY))}",
            about + show(named(stage.keeping.whole(), str(QUERY))),
        )
