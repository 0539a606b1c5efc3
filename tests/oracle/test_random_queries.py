"""Random queries under random changes: every way to keep a query agrees with the query itself.

    pytest tests/oracle                             as in the suite
    TRICKLE_FUZZ_SEED=7 pytest tests/oracle         other cases

A case that fails is made small, written to ``found/`` and replayed from there in every later run.
"""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from tests.oracle.conftest import COVERED
from tests.oracle.expected import CONSTRUCTS, REFUSED
from trickle.errors import UnsupportedQuery
from trickle.testing.keeping import Bench
from trickle.testing.random.cases import Case, case, played
from trickle.testing.random.choices import Choices
from trickle.testing.random.shrink import shrunk

FOUND = Path(__file__).parent / "found"
QUERIES = 168
BATCHES = 18
SECONDS_TO_SHRINK = 120
SEED = "TRICKLE_FUZZ_SEED"


@dataclass
class Tally:
    """What was tried."""

    batches: int = 0
    changing: int = 0
    constructs: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)

    def try_one(self, bench: Bench, choices: Choices) -> None:
        """Keep a query through its batches. A failure is made small and written down."""
        given = case(choices, BATCHES)
        try:
            changed = self._played(bench, given)
        except Exception as error:
            small = _small(bench, choices, error)
            raise AssertionError(f"{_save(small)} says:\n{small.written()}") from error
        self.batches += len(changed)
        self.changing += sum(map(bool, changed))
        self.constructs.update({construct: len(changed) for construct in given.noted})

    def _played(self, bench: Bench, given: Case) -> list[int]:
        try:
            return played(bench, given, thorough_every=4)
        except UnsupportedQuery as error:
            reason = next((reason for message, reason in REFUSED.items() if message in str(error)), None)
            if reason is None:
                raise
            self.refused[reason] += 1
            return []

    def __str__(self) -> str:
        lines = [f"{self.batches} cases, {self.changing / max(self.batches, 1):.0%} with a change of the result"]
        lines += [f"{count:7} {construct}" for construct, count in sorted(self.constructs.items())]
        lines += [f"{count:7} queries refused: {reason}" for reason, count in self.refused.items()]
        return "\n".join(lines)


@pytest.fixture
def seed() -> int:
    """The same cases in every run of the suite, so that it fails for a reason; others with ``make fuzz``."""
    return int(os.environ.get(SEED, "2"))


@pytest.mark.timeout(900)
def test_random_queries(bench, seed, record_property):
    tally = Tally()
    try:
        for number in range(QUERIES):
            tally.try_one(bench, Choices.seeded(seed * QUERIES + number))
        for construct in sorted(CONSTRUCTS - set(tally.constructs)):
            tally.try_one(bench, _leading_to(construct))
    finally:
        record_property(COVERED, str(tally))
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


def _leading_to(construct: str) -> Choices:
    """What chance has left out is tried all the same."""
    for seed in range(100_000):
        if construct in case(Choices.seeded(seed), BATCHES).noted:
            return Choices.seeded(seed)
    raise AssertionError(f"no query has {construct}")


def _small(bench: Bench, choices: Choices, error: Exception) -> Case:
    def fails(given: Case) -> bool:
        try:
            played(bench, given)
        except type(error):
            return True
        except Exception:  # noqa: BLE001 - another failure is another case
            return False
        return False

    fewer = shrunk(choices.made, lambda given: fails(case(given, BATCHES)), SECONDS_TO_SHRINK)
    found = case(Choices.replayed(fewer), BATCHES)
    # A batch has whole tables, so each can be left out.
    for batch in found.batches:
        less = replace(found, batches=[each for each in found.batches if each is not batch])
        found = less if fails(less) else found
    return found


def _save(failed: Case) -> str:
    FOUND.mkdir(exist_ok=True)
    path = FOUND / f"{hashlib.sha256(failed.written().encode()).hexdigest()[:10]}.case"
    path.write_text(failed.written(), encoding="utf-8")
    return str(path)
