"""What the documents say about the project is so."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

import trickle
from scripts.generate_docs import PAGES, stale

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
FOLDERS = ("src", "tests", "docs", "scripts", "bench", "demo", "requirements", ".ci")

NAMED_PATH = re.compile(rf"`((?:{'|'.join(re.escape(f) for f in FOLDERS)})/[\w./*-]*)`")
LINK = re.compile(r"\]\((?!\w+:|#)([^)#\s]+)[^)]*\)")


def names(document: Path) -> str:
    return str(document.relative_to(ROOT))


@pytest.mark.parametrize("document", DOCUMENTS, ids=names)
def test_paths_named_in_a_document_exist(document: Path) -> None:
    text = document.read_text(encoding="utf-8")
    missing = [path for path in NAMED_PATH.findall(text) if not list(ROOT.glob(path.rstrip("/")))]
    missing += [path for path in LINK.findall(text) if not (document.parent / path).exists()]
    assert missing == []


def test_generated_pages_are_fresh() -> None:
    assert all((ROOT / page).exists() for page in PAGES)
    assert stale() == []


def test_the_changelog_the_package_and_the_project_have_one_version() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    newest = re.search(r"^## \[?(\d+\.\d+\.\d+)", changelog, re.MULTILINE)
    assert newest is not None
    assert newest[1] == project == trickle.__version__


def test_exported_names_are_sorted_and_there() -> None:
    exported = trickle.__all__
    assert list(exported) == sorted(exported)
    assert [name for name in exported if not hasattr(trickle, name)] == []
