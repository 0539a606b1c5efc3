"""A sign of life while something takes long: on a terminal only, and gone when the work is done."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trickle.engine import Engine


@contextmanager
def working(engine: Engine, text: str) -> Iterator[None]:
    """Show what is being done and for how long; starting Spark comes first where it has not been started."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console
    from rich.progress import Progress, ProgressColumn, SpinnerColumn, Task, TimeElapsedColumn
    from rich.text import Text

    class Doing(ProgressColumn):
        def render(self, task: Task) -> Text:
            return Text(task.description if engine.started else f"starting Spark: {task.description}")

    console = Console(stderr=True)
    with Progress(SpinnerColumn(), Doing(), TimeElapsedColumn(), console=console, transient=True) as progress:
        progress.add_task(text, total=None)
        yield
