"""Several processes on one catalog."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

WORKERS = Path(__file__).with_name("workers.py")


class Workers:
    """Processes that do the same thing to a catalog at the same moment. Spawned once: each one costs an import."""

    def __init__(self, number: int) -> None:
        command = [sys.executable, str(WORKERS)]
        self._processes = [
            subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(number)
        ]

    def __call__(self, task: str, *arguments: str) -> list[Any]:
        """Have every process do a task of workers.py; returns what each one says."""
        for message in ([task, *arguments], "go"):
            for process in self._processes:
                assert process.stdin is not None
                process.stdin.write(json.dumps(message) + "\n")
                process.stdin.flush()
            answers = [json.loads(str(process.stdout and process.stdout.readline())) for process in self._processes]
            for answer in answers:
                assert "failed" not in answer, answer["failed"]
        return [answer["said"] for answer in answers]

    def close(self) -> None:
        for process in self._processes:
            process.communicate(timeout=20)
