"""Random queries under random changes: every way to keep a query agrees with the query itself.

    pytest tests/oracle                             as in the suite
    pytest tests/oracle --hypothesis-seed=0         always the same cases

A case that fails is made small, written to ``found/`` and replayed from there in every later run.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from tests.oracle.conftest import COVERED
from tests.oracle.expected import CONSTRUCTS, REFUSED
from trickle.errors import UnsupportedQuery
from trickle.testing.keeping import Bench
from trickle.testing.random.cases import Case, case, played
from trickle.testing.random.choices import Choices

FOUND = Path(__file__).parent / "found"
QUERIES = 270
BATCHES = 12


@st.composite
def cases(draw):
    numbers = {}

    def below(bound: int) -> int:
        if bound not in numbers:
            numbers[bound] = st.integers(0, bound - 1)
        return int(draw(numbers[bound]))

    return case(Choices(below), BATCHES)


@dataclass
class Tally:
    """What was tried, and the case that failed last: at the end that is the smallest one."""

    batches: int = 0
    changing: int = 0
    constructs: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    failed: Case | None = None

    def play(self, bench: Bench, given: Case) -> None:
        try:
            changed = played(bench, given)
        except UnsupportedQuery as error:
            reason = next((reason for message, reason in REFUSED.items() if message in str(error)), None)
            if reason is None:
                self.failed = given
                raise
            self.refused[reason] += 1
            return
        except Exception:
            self.failed = given
            raise
        self.batches += len(changed)
        self.changing += sum(map(bool, changed))
        self.constructs.update({construct: len(changed) for construct in given.noted})

    def __str__(self) -> str:
        lines = [f"{self.batches} cases, {self.changing / max(self.batches, 1):.0%} with a change of the result"]
        lines += [f"{count:7} {construct}" for construct, count in sorted(self.constructs.items())]
        lines += [f"{count:7} queries refused: {reason}" for reason, count in self.refused.items()]
        return "\n".join(lines)


@pytest.mark.timeout(1800)
def test_random_queries(bench, record_property):
    tally = Tally()

    @settings(max_examples=QUERIES, suppress_health_check=list(HealthCheck))
    @given(cases())
    def run(given: Case) -> None:
        note(given.written())
        tally.play(bench, given)

    try:
        run()
        for construct in sorted(CONSTRUCTS - set(tally.constructs)):
            for missing in _with(construct):
                tally.play(bench, missing)
    finally:
        record_property(COVERED, str(tally))
        if tally.failed is not None:
            _save(tally.failed)
    assert tally.batches >= 3000
    assert tally.changing * 2 >= tally.batches
    assert sorted(CONSTRUCTS - set(tally.constructs)) == []


@pytest.mark.parametrize("path", sorted(FOUND.glob("*.case")), ids=lambda path: path.stem)
def test_found_before(path, bench):
    played(bench, Case.read(path.read_text(encoding="utf-8")))


def test_a_case_survives_its_file():
    given = case(Choices.seeded(7), 3)
    again = Case.read(given.written())
    assert (again.text, again.schemas, again.start, list(again.batches)) == (
        given.text,
        given.schemas,
        given.start,
        list(given.batches),
    )


def _with(construct: str) -> list[Case]:
    """Two cases that have a construct: what chance has left out is tried all the same."""
    found = (case(Choices.seeded(seed), BATCHES) for seed in range(100_000))
    return list(islice((given for given in found if construct in given.noted), 2))


def _save(failed: Case) -> None:
    FOUND.mkdir(exist_ok=True)
    name = hashlib.sha256(failed.written().encode()).hexdigest()[:10]
    (FOUND / f"{name}.case").write_text(failed.written(), encoding="utf-8")
