"""The examples cannot slip through: what is not run says so, and what is shown is compared."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.blocks import Block, blocks
from tests.docs.pages import Reader


def page(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "page.md"
    path.write_text(text, encoding="utf-8")
    return path


def test_output_belongs_to_the_block_before_it(tmp_path: Path) -> None:
    found = blocks(page(tmp_path, "# A\n\n```python\nprint(1)\n```\n\n```output\n1\n```\n\n```text\nnot run\n```\n"))
    assert [(b.line, b.language, b.text, b.expected) for b in found] == [(3, "python", "print(1)\n", "1\n")]


@pytest.mark.parametrize("fence", ["```\nx\n```", "```bash\nls\n```", "```output\n1\n```", "```python\nx = 1"])
def test_a_block_that_would_be_skipped_is_an_error(tmp_path: Path, fence: str) -> None:
    with pytest.raises(AssertionError, match="page"):
        blocks(page(tmp_path, fence + "\n"))


def test_what_a_block_prints_is_compared() -> None:
    reader = Reader()
    reader.run(Block(Path("p.md"), 1, "python", "x = 41\nprint('took', 12, 'ms')\n", "took ... ms\n"))
    reader.run(Block(Path("p.md"), 5, "python", "print(x + 1)\n", "42\n"))
    with pytest.raises(AssertionError, match=r"p\.md:9 shows"):
        reader.run(Block(Path("p.md"), 9, "python", "print(x)\n", "42\n"))


def test_only_trickle_runs_in_a_console_block() -> None:
    with pytest.raises(AssertionError, match="only trickle"):
        Reader().run(Block(Path("p.md"), 1, "console", "$ rm -rf /nowhere\n"))


def test_a_failing_command_must_show_its_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TRICKLE_WAREHOUSE", raising=False)
    reader = Reader()
    with pytest.raises(AssertionError, match="unannounced"):
        reader.run(Block(Path("p.md"), 1, "console", "$ trickle status\n"))
    reader.run(Block(Path("p.md"), 1, "console", "$ trickle status\nerror: there is no warehouse ...\n$ echo $?\n5\n"))
