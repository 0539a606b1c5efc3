"""Runs the blocks of a page as its reader would: in order, in one folder, in one Python session."""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
from dataclasses import dataclass, field
from typing import Any

import trickle
from tests.docs.blocks import Block
from trickle.cli import main as cli
from trickle.cli.output import show
from trickle.cli.running import run_text
from trickle.cli.session import Session
from trickle.settings import Settings, combine, from_toml

WAREHOUSE = "warehouse"


@dataclass
class Reader:
    """Somebody who types in what a page shows."""

    names: dict[str, Any] = field(default_factory=lambda: {"__name__": "page"})
    exit_code: int = 0

    def run(self, block: Block) -> None:
        """Run a block and compare what it prints with what the page shows."""
        match block.language:
            case "python":
                self._compare(block, self._python(block), block.expected)
            case "sql":
                self._compare(block, self._sql(block), block.expected)
            case "console":
                self._console(block)
            case "toml":
                combine(Settings(), from_toml(block.text))
            case other:
                raise AssertionError(other)

    def close(self) -> None:
        """Close the connection that the page opened."""
        if isinstance(t := self.names.get("t"), trickle.Trickle):
            t.close()

    def _python(self, block: Block) -> str:
        # Line numbers of a traceback are those of the page.
        code = compile("\n" * block.line + block.text, str(block.page), "exec")
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(code, self.names)
        return printed.getvalue()

    def _sql(self, block: Block) -> str:
        t = self.names.setdefault("t", None) or trickle.connect(WAREHOUSE)
        self.names["t"] = t
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            for result in run_text(t, block.text, 100):
                show(Session(), result)
        return printed.getvalue()

    def _console(self, block: Block) -> None:
        for command, expected in _commands(block):
            printed = self._command(block, command)
            assert expected or self.exit_code == 0, f"{block}: {command} fails unannounced:\n{printed}"
            self._compare(block, printed, expected or None)

    def _command(self, block: Block, command: str) -> str:
        words = shlex.split(command, comments=True)
        match words:
            case ["echo", "$?"]:
                return f"{self.exit_code}\n"
            case ["export", assignment]:
                name, _, value = assignment.partition("=")
                os.environ[name] = value
                return ""
            case ["trickle", *arguments]:
                both = io.StringIO()
                with contextlib.redirect_stdout(both), contextlib.redirect_stderr(both):
                    self.exit_code = cli.run(arguments)
                return both.getvalue()
            case _:
                raise AssertionError(f"{block}: only trickle is run here, not {command!r}; write the block as text")

    def _compare(self, block: Block, printed: str, expected: str | None) -> None:
        if expected is not None:
            assert _fits(printed, expected), f"{block} shows\n{expected}\nand prints\n{printed}"


def _commands(block: Block) -> list[tuple[str, str]]:
    """The commands of a console block, each with the lines below it; ``> `` continues a command."""
    found: list[tuple[str, str]] = []
    for line in block.text.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], ""))
            continue
        assert found, f"{block}: a console block begins with a command after '$ '"
        command, below = found.pop()
        found.append((f"{command}\n{line[2:]}", below) if line.startswith("> ") else (command, f"{below}{line}\n"))
    return found


def _fits(printed: str, expected: str) -> bool:
    """Equal but for trailing blanks; ``...`` in the page stands for anything, as in doctests."""
    wanted = r".*?".join(re.escape(part) for part in _trimmed(expected).split("..."))
    return re.fullmatch(wanted, _trimmed(printed), re.DOTALL) is not None


def _trimmed(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.strip("\n").splitlines())
