"""Figures of several ways as one table, and what is promised about them."""

from __future__ import annotations

from bench.beside import AUTO, DIFFERENTIAL, FULL, Beside, Refreshed
from bench.figures import Claim
from bench.show import tables, verdicts
from bench.tpch import claims
from bench.tpch_tables import QUERIES


def took(full: float, kept: float | None, auto: float, chosen: str = FULL) -> dict[str, list[Refreshed]]:
    failed = Refreshed(None, error="SomeError: broken")
    return {
        FULL: [Refreshed(full, "FULL", jobs=2)],
        DIFFERENTIAL: [Refreshed(kept, "DIFFERENTIAL", jobs=3) if kept else failed],
        AUTO: [Refreshed(auto, chosen, jobs=2)],
    }


def test_modes_stand_beside_each_other() -> None:
    rows = [Beside("some", "q01", took(400, 100, 420)), Beside("some", "q02", took(400, None, 420))]
    part = {"title": "", "lines": [], "rows": [row.to_json() for row in rows]}
    ((title, (headings, first, second)),) = tables(part, {})
    assert title == "some"
    assert headings[:5] == ("what", "FULL", "DIFFERENTIAL", "AUTO", "FULL / DIFFERENTIAL")
    assert first[:5] == ("q01", "400 ms", "100 ms", "420 ms (FULL)", "4.00")
    assert "2 / 3 / 2" in first
    assert second[2] == "failed: SomeError: broken"


def test_what_is_promised_of_all_queries_together() -> None:
    faster = [Beside("", query, took(400, 100, 101, chosen=DIFFERENTIAL)) for query in QUERIES]
    found = {claim.what: claim for claim in claims(faster, 1.0, 0.001)}
    assert found["SF 1, 0.1 %: FULL / DIFFERENTIAL, geometric mean"].value == 4
    assert all(claim.passed is not False for claim in found.values())
    failed = [*faster[:-1], Beside("", "q22", took(400, None, 900))]
    broken = [claim.what for claim in claims(failed, 1.0, 0.001) if claim.passed is False]
    assert broken == [
        "SF 1, 0.1 %: queries that failed",
        "SF 1, 0.1 %: AUTO / the better of the two, worst (q22)",
        "SF 1, 0.1 %: AUTO / the better of the two, by the quickest refreshes, worst (q22)",
    ]
    wrong = [*faster[:-1], Beside("", "q22", took(100, 400, 400, chosen=DIFFERENTIAL))]
    worst = [claim for claim in claims(wrong, 1.0, 0.01) if "what AUTO chose" in claim.what and claim.at_most]
    assert [(claim.what[-5:], claim.value, claim.passed) for claim in worst] == [("(q22)", 4.0, False)]
    assert not [claim for claim in claims(faster[:3], 1.0, 0.01) if claim.at_least]


def test_a_slow_sample_is_told_apart_from_a_slow_way() -> None:
    runs = {
        FULL: [Refreshed(400, "FULL")],
        DIFFERENTIAL: [Refreshed(ms, "DIFFERENTIAL") for ms in (100, 104, 110)],
        AUTO: [Refreshed(ms, "DIFFERENTIAL") for ms in (150, 102, 140)],
    }
    values = {claim.what.partition(": ")[2]: claim.value for claim in claims([Beside("", "q01", runs)], 1.0, 0.01)}
    assert values["AUTO / the better of the two, worst (q01)"] == 140 / 104
    assert values["AUTO / the better of the two, by the quickest refreshes, worst (q01)"] == 1.02
    assert values["what AUTO chose / the better of the two, worst (q01)"] == 1


def test_claims_in_words() -> None:
    known = [Claim("a", 4.0, at_least=3), Claim("b", 4.0, at_most=3), Claim("c", None, at_most=3), Claim("d", 4.0)]
    assert verdicts({"lines": [], "claims": [claim.to_json() for claim in known]}) == [
        "PASS: a: 4, at least 3",
        "FAIL: b: 4, at most 3",
        "UNKNOWN: c: unknown, at most 3",
        "d: 4",
    ]
