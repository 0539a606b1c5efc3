"""Every case of every spec: its golden parts are what the code makes now, and the change is right on real rows.

The oracle is the user's text on DuckDB, before and after. It knows nothing of trees.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import pytest

from tests.specs.spec import Case, read
from trickle.algebra.weights import WEIGHT
from trickle.delta import differentiate
from trickle.errors import TrickleError
from trickle.operators import Face, Operator, Scan, Step, at_face, show
from trickle.sql.build import build_tree
from trickle.sql.lower import lower
from trickle.sql.rewrites import rewrite
from trickle.testing.duck import Duck, Row, applied, multiset

FOLDER = Path(__file__).parent
PATHS = sorted(FOLDER.glob("*.spec"))
CASES = [(path, case.name) for path in PATHS for case in read(path).cases]

# For reading: each common table expression, the query after them, and each part of a union begin a line.
_BREAK = re.compile(r"(?<=\)), (?=`\w+` AS \()|(?<=\)) (?=SELECT)| (?=UNION ALL)")


@pytest.fixture(scope="module")
def duck():
    with Duck() as given:
        yield given


@pytest.fixture
def rewriting(pytestconfig) -> bool:
    # The switch is known when tests/specs is named on the command line.
    return bool(pytestconfig.getoption("rewrite_specs", default=False))


@pytest.mark.parametrize("path, name", CASES, ids=[f"{path.stem}: {name}" for path, name in CASES])
def test_case(path, name, duck, rewriting):
    spec = read(path)
    (case,) = (case for case in spec.cases if case.name == name)
    golden = _golden(case, duck)
    if rewriting:
        kept = {head: body for head, body in case.sections.items() if head not in case.golden}
        case.sections = kept | golden
        path.write_text(spec.text(), encoding="utf-8")
    assert golden == case.golden


def test_names_of_cases_differ():
    assert [case for case, count in Counter(CASES).items() if count > 1] == []


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_every_operator_shows_what_works(path):
    assert any("tree" in case.golden for case in read(path).cases)


def _golden(case: Case, duck: Duck) -> dict[str, list[str]]:
    try:
        tree = rewrite(build_tree(case.sql, case.schemas))
        delta = differentiate(tree)
    except TrickleError as error:
        return {"refused": str(error).splitlines()}
    assert delta.columns == (*tree.columns, WEIGHT)
    return {
        "tree": show(tree).splitlines(),
        "change": _executed(case, tree, delta, duck),
        "delta plan": show(delta).splitlines(),
        "delta sql": _broken(_delta_sql(delta)).splitlines(),
    }


def _delta_sql(delta: Operator) -> str:
    try:
        return lower(delta, _name_of)
    except TrickleError as error:
        return str(error)


def _executed(case: Case, tree: Operator, delta: Operator, duck: Duck) -> list[str]:
    duck.clear()
    for table in case.tables:
        duck.load_states(table.name, table.state("-"), table.state("+"))
    before, after = duck.text(case.sql, Face.OLD), duck.text(case.sql)
    assert multiset(duck.run(at_face(tree, Face.OLD))) == multiset(before)
    assert multiset(duck.run(tree)) == multiset(after)
    change = duck.run(delta)
    assert set(change[WEIGHT].to_pylist()) <= {1, -1}
    assert applied(before, change) == multiset(after)
    return sorted(line for row, weight in multiset(change).items() for line in _lines(row, weight)) or ["none"]


def _lines(row: Row, weight: int) -> list[str]:
    return [f"{'+' if weight > 0 else '-'} {json.dumps(row, default=str, ensure_ascii=False)}"] * abs(weight)


def _name_of(leaf: Scan | Step) -> str:
    return f"{leaf.table}@{leaf.face.value}" if isinstance(leaf, Scan) else leaf.name


def _broken(text: str) -> str:
    return _BREAK.sub(lambda found: "\n" if found[0] == " " else ",\n", text)
