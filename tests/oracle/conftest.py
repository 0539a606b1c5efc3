"""What random runs covered is shown at the end of the run, whatever its outcome."""

from __future__ import annotations

import pytest

from trickle.testing.keeping import Bench

COVERED = "random queries"


@pytest.fixture(scope="session")
def bench():
    given = Bench()
    yield given
    given.close()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Tests may run in other processes, so what they have to say comes with their reports."""
    reports = [report for reports in terminalreporter.stats.values() for report in reports]
    for report in reports:
        for name, value in getattr(report, "user_properties", ()):
            if name == COVERED and report.when == "call":
                terminalreporter.section(COVERED)
                terminalreporter.write_line(value)
