"""Every rule of the differential engine has a module, a page and a spec of the same name."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# It only tells which rule a kind of join has.
NO_RULE = {"__init__", "join"}
RULES = sorted({path.stem for path in (ROOT / "src/trickle/delta/rules").glob("*.py")} - NO_RULE)
# Written with other operators before anything is differentiated.
WITHOUT_RULE = {"anti_join", "distinct", "set_operations"}


@pytest.mark.parametrize("rule", RULES)
def test_a_rule_has_a_page_and_a_spec(rule):
    assert (ROOT / "docs/operators" / f"{rule.replace('_', '-')}.md").is_file()
    assert (ROOT / "tests/specs" / f"{rule}.spec").is_file()


def test_a_page_and_a_spec_are_about_a_rule():
    pages = {path.stem.replace("-", "_") for path in (ROOT / "docs/operators").glob("*.md")} - {"index"}
    specs = {path.stem for path in (ROOT / "tests/specs").glob("*.spec")}
    assert pages <= {*RULES, *WITHOUT_RULE}
    assert specs == {*RULES, *WITHOUT_RULE}
