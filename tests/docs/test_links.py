"""Headings that links name are there, modules that a page names exist, and no page is forgotten.

That paths from the root exist is checked in tests/structure/test_docs.py.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CODE = ROOT / "src" / "trickle"
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
FOLDERS = sorted(path.name for path in CODE.iterdir() if path.is_dir() and not path.name.startswith("__"))

_FENCED = re.compile(r"^(`{3,})[^\n]*\n.*?^\1$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_MODULE = re.compile(rf"`((?:{'|'.join(FOLDERS)})/[\w/.]*|[a-z]+\.py)`")
_HEADING = re.compile(r"^#+ +(.+)$", re.MULTILINE)


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def prose(page: Path) -> str:
    return _FENCED.sub("", page.read_text(encoding="utf-8"))


def anchors(page: Path) -> set[str]:
    headings = [re.sub(r"[^\w\- ]", "", heading.lower()) for heading in _HEADING.findall(prose(page))]
    return {heading.strip().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_to_headings_lead_somewhere(page: Path) -> None:
    for target in _LINK.findall(prose(page)):
        path, _, anchor = target.partition("#")
        if anchor and "://" not in target:
            there = (page.parent / path).resolve() if path else page
            assert anchor in anchors(there), f"{target}; headings: {sorted(anchors(there))}"


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_modules_named_by_their_place_in_the_package_exist(page: Path) -> None:
    assert [module for module in _MODULE.findall(prose(page)) if not (CODE / module).exists()] == []


def test_architecture_names_every_folder_of_the_code() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    assert [folder for folder in FOLDERS if f"`{folder}/`" not in text] == []


def test_the_index_links_every_page() -> None:
    linked = set(_LINK.findall((ROOT / "docs" / "index.md").read_text(encoding="utf-8")))
    pages = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")} - {"index.md"}
    assert pages - linked == set()


def test_the_page_of_the_command_line_names_every_command() -> None:
    from trickle.cli.command import paths
    from trickle.cli.main import COMMANDS

    text = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    assert [path for path in paths(COMMANDS) if f"`trickle {path}" not in text] == []


def test_the_sql_reference_names_every_procedure_and_system_view() -> None:
    from trickle.api import PROCEDURES
    from trickle.tables.system import SYSTEM_VIEWS

    text = (ROOT / "docs" / "sql-reference.md").read_text(encoding="utf-8")
    assert [name for name in PROCEDURES if f"`{name}`" not in text] == []
    assert [name for name in SYSTEM_VIEWS if f"`trickle.{name}`" not in text] == []


def test_the_page_of_stream_tables_names_every_option() -> None:
    from trickle.refresh.options import OPTIONS

    text = (ROOT / "docs" / "stream-tables.md").read_text(encoding="utf-8")
    assert [name for name in OPTIONS if f"`{name}`" not in text] == []
