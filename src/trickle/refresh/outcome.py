"""What a refresh did, as it is committed, remembered and handed back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from trickle.apply.unit import MemberResult, UnitMember, application_id
from trickle.catalog.records import Action, RefreshMode, StreamTable
from trickle.gates.facts import Delta
from trickle.gates.verdict import Verdict
from trickle.lake.commit import TableCommit
from trickle.refresh.making import Made
from trickle.refresh.members import Member
from trickle.refresh.plan import Choice, Facts
from trickle.sources.lake import LakePosition


@dataclass(frozen=True)
class RefreshResult:
    """What a refresh did."""

    name: str
    action: str
    rows_inserted: int
    rows_deleted: int
    duration_ms: float
    reason: str
    version: int | None
    spark_jobs: int | None


@dataclass(frozen=True)
class Work:
    """A member for which the action has been chosen."""

    member: Member
    choice: Choice
    frontier: Mapping[int, LakePosition]
    facts: Facts

    @property
    def stream(self) -> StreamTable:
        return self.member.stream


@dataclass(frozen=True)
class Done:
    """A member whose next contents are staged."""

    work: Work
    refresh_id: int
    made: Made
    spark_jobs: int | None


def commits_of(stream: StreamTable, made: Made, number: int) -> dict[str, TableCommit]:
    """What to commit: inner tables first, the stream table itself last."""
    return {
        folder: prepared.as_commit(app=(application_id(stream.relation.uid, folder), number))
        for folder, prepared in sorted(made.prepared.items(), reverse=True)
    }


def unit_member(done: Done, moment: datetime, verdict: Verdict) -> UnitMember:
    stream, made = done.work.stream, done.made
    number = stream.refresh_number + 1
    own = made.own
    result = MemberResult(
        version=made.next.version,
        frontier={source: str(position) for source, position in done.work.frontier.items()},
        action=done.work.choice.action,
        rows_inserted=own.inserted if own else 0,
        rows_deleted=own.deleted if own else 0,
        reason=done.work.choice.reason,
        data_timestamp=moment,
        effective_mode=_effective_mode(done.work),
        details={
            "spark_jobs": done.spark_jobs,
            "files_added": sum(len(prepared.adds) for prepared in made.prepared.values()),
            "files_removed": sum(len(prepared.removes) for prepared in made.prepared.values()),
            **_measured(done.work),
            **_volumes(done),
            **({"verdict": verdict.to_json()} if verdict.children else {}),
            **made.details,
        },
        state=made.state,
    )
    return UnitMember(stream.relation.id, number, commits_of(stream, made, number), done.refresh_id, result)


def _volumes(done: Done) -> dict[str, object]:
    """What the fuse learns from: how much waited at each source, and how much the table changed."""
    delta = delta_of(done.made, by_changes=done.work.choice.action is Action.DIFFERENTIAL)
    waited = {
        source.name: {"inserted": source.inserted, "deleted": source.deleted}
        for source in done.work.facts.sources.values()
        if source.moved and source.inserted is not None and source.deleted is not None
    }
    return {"sources": waited, "delta": {"inserted": delta.inserted, "deleted": delta.deleted}}


def _measured(work: Work) -> dict[str, object]:
    """What the cost model learns from, and why a refresh did not go by changes."""
    sources = list(work.facts.sources.values())
    counts = [source.counted_rows for source in sources if source.changed]
    found: dict[str, object] = {"source_rows": sum(source.source_rows for source in sources)}
    if None not in counts:
        found["changed_rows"] = sum(count or 0 for count in counts)
    if work.choice.code:
        found["code"] = work.choice.code
    return found


def _effective_mode(work: Work) -> str:
    differs = work.choice.action is Action.DIFFERENTIAL
    return (RefreshMode.DIFFERENTIAL if differs else RefreshMode.FULL).value


def result_of(done: Done, duration_ms: float) -> RefreshResult:
    return RefreshResult(
        name=str(done.work.member.name),
        action=done.work.choice.action.value,
        rows_inserted=done.made.own.inserted if done.made.own else 0,
        rows_deleted=done.made.own.deleted if done.made.own else 0,
        duration_ms=duration_ms,
        reason=done.work.choice.reason,
        version=done.made.next.version,
        spark_jobs=done.spark_jobs,
    )


def milliseconds(start: datetime, end: datetime) -> float:
    return (end - start).total_seconds() * 1000


def delta_of(made: Made, *, by_changes: bool) -> Delta:
    """How much a staged result changes the table: exactly where that is known, else by how much it grows or shrinks."""
    own = made.own
    if own is None:
        return Delta(0, 0)
    if by_changes or own.changes is not None:
        return Delta(own.inserted, own.deleted)
    grown = own.inserted - own.deleted
    return Delta(max(grown, 0), max(-grown, 0))
