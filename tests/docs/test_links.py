"""Links lead somewhere, and every file that a page names exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
TOPS = ("src/", "tests/", "docs/", "bench/", "demo/", "scripts/", "requirements/", ".ci/")
FOLDERS = sorted(p.name for p in (ROOT / "src" / "trickle").iterdir() if p.is_dir() and not p.name.startswith("__"))

_FENCED = re.compile(r"^(`{3,})[^\n]*\n.*?^\1$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_CODE = re.compile(r"`([^`\n]+)`")
_HEADING = re.compile(r"^#+ +(.+)$", re.MULTILINE)


def prose(page: Path) -> str:
    return _FENCED.sub("", page.read_text(encoding="utf-8"))


def anchors(page: Path) -> set[str]:
    headings = [re.sub(r"[^\w\- ]", "", heading.lower()) for heading in _HEADING.findall(prose(page))]
    return {heading.strip().replace(" ", "-") for heading in headings}


def named_paths(page: Path) -> list[str]:
    """Code in a page that is the path of a file or folder here: from the root, or from src/trickle."""
    found = []
    for code in _CODE.findall(prose(page)):
        if re.fullmatch(r"[\w.\-/]+", code):
            if code.startswith(TOPS):
                found.append(code)
            elif code.split("/")[0] in FOLDERS and (code.endswith("/") or code.endswith(".py")) and "/" in code:
                found.append(f"src/trickle/{code}")
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for target in _LINK.findall(prose(page)):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        there = page if not path else (page.parent / path).resolve()
        assert there.exists(), f"{page.name} links to {target}"
        if anchor:
            assert anchor in anchors(there), f"{page.name} links to {target}; headings: {sorted(anchors(there))}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_named_files_exist(page: Path) -> None:
    # What a program makes is not in the checkout.
    missing = [path for path in named_paths(page) if not (ROOT / path).exists() and not path.startswith("build/")]
    assert not missing


def test_architecture_names_every_folder_of_the_code() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    assert [folder for folder in FOLDERS if f"`{folder}/`" not in text] == []


def test_the_index_links_every_page() -> None:
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    linked = set(_LINK.findall(index))
    pages = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")} - {"index.md"}
    assert pages - linked == set()
