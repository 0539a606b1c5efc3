"""A unit's commit: exactly once, all or nothing.

Files are staged before this module is called; nobody sees them. Then

1. the *intent* (tables, versions they were computed from, actions, new frontiers) goes to the catalog in one SQL
   transaction; from here on the unit will happen;
2. each Delta table is committed, with one application id per stream table and the refresh number as its version, so
   that a repeated commit is noticed;
3. pins, frontiers and history are finalised in one SQL transaction: readers through Trickle see the unit at once.

A failure before 1 leaves nothing visible. After it, ``roll_forward`` finishes the work: every step may be repeated,
by any process, at the same time.

A member is a stream table, or a lake table with a pin (``catalog/pins.py``): a replica, or a base table that IMMEDIATE
stream tables follow. All are committed alike; what finalising moves is the stream table's own state, or the pin with
its position.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from types import MappingProxyType
from typing import Any

from deltalake import DeltaTable
from sqlalchemy.orm import Session

from trickle.apply.steps import Step, reached
from trickle.catalog import history, intents, pins, relations, streams
from trickle.catalog.records import Action, Intent, IntentMember, Outcome, Status
from trickle.errors import ConcurrentModification, HistoryLost, InternalError, UnsupportedError
from trickle.lake.commit import TableCommit, check_commit, commit_once, is_committed, is_own
from trickle.warehouse import Warehouse


@dataclass(frozen=True)
class MemberResult:
    """What finalising needs to know about a member; kept in the intent as JSON."""

    version: int
    """The version that readers see afterwards."""
    frontier: Mapping[int, str]
    action: Action
    rows_inserted: int
    rows_deleted: int
    reason: str | None
    data_timestamp: datetime
    effective_mode: str | None
    details: Mapping[str, object]
    state: Mapping[str, object] | None = None
    """What the stream table remembers about its storage afterwards; None when that stays as it is."""

    def to_json(self) -> dict[str, object]:
        """Plain values, JSON's own types only."""
        return {
            "version": self.version,
            "frontier": {str(source): position for source, position in self.frontier.items()},
            "action": self.action.value,
            "rows_inserted": self.rows_inserted,
            "rows_deleted": self.rows_deleted,
            "reason": self.reason,
            "data_timestamp": self.data_timestamp.isoformat(),
            "effective_mode": self.effective_mode,
            "details": dict(self.details),
            "state": None if self.state is None else dict(self.state),
        }

    @staticmethod
    def from_json(found: Mapping[str, Any]) -> MemberResult:
        """The inverse of ``to_json``."""
        return MemberResult(
            version=found["version"],
            frontier={int(source): position for source, position in found["frontier"].items()},
            action=Action(found["action"]),
            rows_inserted=found["rows_inserted"],
            rows_deleted=found["rows_deleted"],
            reason=found["reason"],
            data_timestamp=datetime.fromisoformat(found["data_timestamp"]),
            effective_mode=found["effective_mode"],
            details=found["details"],
            state=found.get("state"),
        )


@dataclass(frozen=True)
class UnitMember:
    """What a unit does to one stream table."""

    relation_id: int
    refresh_number: int
    """The number this refresh gets; one more than the table's last."""
    commits: Mapping[str, TableCommit]
    """By the folder inside the stream table's: inner tables first, the stream table itself (``OWN``) last. Empty when
    the contents stay as they are and only the frontier moves."""
    refresh_id: int | None
    result: MemberResult


@dataclass(frozen=True)
class PinnedMember:
    """What a unit does to a lake table with a pin."""

    relation_id: int
    number: int
    """The number this move gets; one more than the pin's last."""
    commit: TableCommit | None
    """None when the contents stay as they are and only the position moves."""
    version: int
    """The version that readers see afterwards."""
    position: str | None

    @property
    def commits(self) -> Mapping[str, TableCommit]:
        return {} if self.commit is None else {OWN: self.commit}


Member = UnitMember | PinnedMember

OWN = ""
"""The folder of a stream table itself."""


def application_id(uid: str, folder: str = OWN) -> str:
    """The Delta application id of a stream table, or of an inner table: one for its whole life."""
    return f"trickle:{uid}:{folder}" if folder else f"trickle:{uid}"


def commit_unit(
    warehouse: Warehouse, members: Sequence[Member], *, fence: Callable[[Session], None] | None = None
) -> None:
    """Commit staged work for all members together. ``fence`` refuses in the transaction that decides it."""
    reached(Step.STAGED)
    checked = {commit.commit_id: check_commit(commit) for member in members for commit in member.commits.values()}
    with warehouse.catalog.write() as tx:
        if fence is not None:
            fence(tx)
        # In one order for all, so that two units never wait for each other.
        for member in sorted(members, key=lambda m: m.relation_id):
            _check_unmoved(tx, member)
        intent = intents.add(
            tx, [_intent_member(place, m) for place, m in enumerate(members)], warehouse.clock.now(), uuid.uuid4().hex
        )
    reached(Step.INTENT_WRITTEN)
    roll_forward(warehouse, intent, checked)


def _check_unmoved(tx: Session, member: Member) -> None:
    """Lock a member, and refuse when somebody moved it since its next contents were computed."""
    if isinstance(member, PinnedMember):
        if pins.lock(tx, member.relation_id).number != member.number - 1:
            raise ConcurrentModification(
                f"{relations.by_id(tx, member.relation_id).name} was changed by another process meanwhile",
                detail="another statement or ingest came first",
                hint="try again",
            )
        return
    stored = streams.lock(tx, member.relation_id)
    if stored.refresh_number != member.refresh_number - 1 or not _is_running(tx, member.refresh_id):
        raise ConcurrentModification(
            f"stream table {stored.relation.name} was changed by another process meanwhile",
            detail="another refresh or a new definition came first",
            hint="refresh again",
        )


def roll_forward(
    warehouse: Warehouse, intent: Intent, checked: Mapping[str, DeltaTable] = MappingProxyType({})
) -> None:
    """Finish a unit whose intent is written. Safe to repeat.

    ``checked`` has the tables that were opened for its commits, by their ids, when the intent has just been written.
    """
    done = 0
    for member in intent.members:
        for commit in _stored_commits(warehouse, member) or (None,):
            if commit is not None:
                try:
                    commit_once(commit, checked.get(commit.commit_id))
                except (ConcurrentModification, UnsupportedError, HistoryLost, InternalError) as error:
                    _abandon(warehouse, intent, error)
                    raise
            reached(Step.TABLE_COMMITTED, done)
            done += 1
    reached(Step.TABLES_COMMITTED)
    with warehouse.catalog.write() as tx:
        if intents.claim(tx, intent.id):
            for member in _in_order(intent):
                _finalise(tx, member, warehouse.clock.now())
            intents.remove(tx, intent.id)
    reached(Step.FINALISED)


def _in_order(intent: Intent) -> list[IntentMember]:
    """The members in the order in which ``commit_unit`` locks them."""
    return sorted(intent.members, key=lambda member: member.relation_id)


def recover(warehouse: Warehouse, relation_ids: Sequence[int] | None = None) -> int:
    """Roll forward every unit that a process left between its intent and its end; their number."""
    with warehouse.catalog.read() as tx:
        pending = intents.pending(tx, relation_ids)
    for intent in pending:
        # A unit that can no longer happen has been given up, and is no reason to leave the others waiting.
        with suppress(ConcurrentModification, UnsupportedError, HistoryLost, InternalError):
            roll_forward(warehouse, intent)
    return len(pending)


def is_decided(warehouse: Warehouse, relation_id: int, commit: TableCommit) -> bool:
    """Whether a unit with this very commit is decided: an intent holds it, or the table's log does.

    What ``commit_unit`` raises does not tell: an error may come before the decision, after it, or after the end.
    """
    with warehouse.catalog.read() as tx:
        members = [member for intent in intents.pending(tx, [relation_id]) for member in intent.members]
    intended = {own.commit_id for m in members if m.relation_id == relation_id for _, own in commits_of(m)}
    return commit.commit_id in intended or is_own(commit)


def _stored_commits(warehouse: Warehouse, member: IntentMember) -> list[TableCommit]:
    """Commits from their intent. Where the tables lie is asked again: the warehouse may have been moved since."""
    written = commits_of(member)
    if not written:
        return []
    with warehouse.catalog.read() as tx:
        relation = relations.by_id(tx, member.relation_id)
    location = warehouse.location_of(relation)
    return [
        replace(commit, location=location.child(*folder.split("/")) if folder else location)
        for folder, commit in written
    ]


def commits_of(member: IntentMember) -> list[tuple[str, TableCommit]]:
    """What an intent is about to commit for a member, by the folder inside the stream table's."""
    if member.commit is None:
        return []
    stored = json.loads(member.commit)
    if "commits" not in stored:
        # As the first version wrote it: the commit of the stream table alone.
        return [(OWN, TableCommit.from_json(member.commit))]
    return [(folder, TableCommit.from_json(commit)) for folder, commit in stored["commits"]]


def _is_running(tx: Session, refresh_id: int | None) -> bool:
    record = None if refresh_id is None else history.find(tx, refresh_id)
    return refresh_id is None or (record is not None and record.status is Outcome.RUNNING)


def after_success(status: Status) -> Status:
    """A suspended stream table stays suspended, also when a refresh was forced."""
    return status if status is Status.SUSPENDED else Status.ACTIVE


_PIN = "pin"
"""Marks the result of a member that is no stream table."""


def _intent_member(place: int, member: Member) -> IntentMember:
    commits = _commits_json(member.commits) if member.commits else None
    if isinstance(member, PinnedMember):
        result = {_PIN: {"version": member.version, "position": member.position}}
        return IntentMember(member.relation_id, place, commits, member.number, None, result)
    return IntentMember(
        relation_id=member.relation_id,
        position=place,
        commit=commits,
        refresh_number=member.refresh_number,
        refresh_id=member.refresh_id,
        result=member.result.to_json(),
    )


def _commits_json(commits: Mapping[str, TableCommit]) -> str:
    return json.dumps({"commits": [[folder, commit.to_json()] for folder, commit in commits.items()]})


def _finalise(tx: Session, member: IntentMember, now: datetime) -> None:
    if _PIN in member.result:
        _move_pin(tx, member, now)
        return
    result = MemberResult.from_json(member.result)
    stored = streams.lock(tx, member.relation_id)
    # A number that was taken since the intent means a new definition: the mark that it left must stay.
    redefined = stored.refresh_number >= member.refresh_number
    streams.update(
        tx,
        member.relation_id,
        now=now,
        version=result.version,
        refresh_number=max(stored.refresh_number, member.refresh_number),
        populated=True,
        status=after_success(stored.status),
        consecutive_errors=0,
        needs_reinitialize=stored.needs_reinitialize and redefined,
        effective_mode=result.effective_mode,
        data_timestamp=result.data_timestamp,
        last_refresh_at=now,
    )
    if result.state is not None:
        streams.update(tx, member.relation_id, now=now, state=result.state)
    streams.set_frontier(tx, member.relation_id, result.frontier)
    if member.refresh_id is not None:
        history.finish(
            tx,
            member.refresh_id,
            status=Outcome.COMPLETED,
            now=now,
            action=result.action,
            rows_inserted=result.rows_inserted,
            rows_deleted=result.rows_deleted,
            version_after=result.version,
            reason=result.reason,
            frontier={str(source): position for source, position in result.frontier.items()},
            details=result.details,
        )


def _move_pin(tx: Session, member: IntentMember, now: datetime) -> None:
    moved: Any = member.result[_PIN]
    number = max(pins.lock(tx, member.relation_id).number, member.refresh_number)
    pins.move(tx, member.relation_id, version=moved["version"], number=number, position=moved["position"], now=now)


def _abandon(warehouse: Warehouse, intent: Intent, error: Exception) -> None:
    """Give up a unit that somebody else's write into a stream table has made impossible.

    When no member is committed yet, the intent goes and nothing has happened. Otherwise the members that are
    committed stay, and every member is marked to be rebuilt: none of them is trusted to agree with the others. A pin
    stays where it is: its readers see what they saw, and whoever writes the table next finds its log ahead of the pin.
    """
    half_done = any(_has_happened(warehouse, member) for member in intent.members)
    now = warehouse.clock.now()
    with warehouse.catalog.write() as tx:
        if not intents.claim(tx, intent.id):
            return
        for member in _in_order(intent):
            if _PIN in member.result:
                pin = pins.lock(tx, member.relation_id)
                number = max(pin.number, member.refresh_number)
                pins.move(tx, member.relation_id, version=pin.version, number=number, position=pin.position, now=now)
                continue
            stored = streams.lock(tx, member.relation_id)
            # The number is spent: a Delta log may hold it already, or be given it by a process that does not know yet.
            streams.update(
                tx,
                member.relation_id,
                now=now,
                needs_reinitialize=stored.needs_reinitialize or half_done,
                refresh_number=max(stored.refresh_number, member.refresh_number),
            )
            if member.refresh_id is not None:
                history.finish(
                    tx,
                    member.refresh_id,
                    status=Outcome.FAILED,
                    now=now,
                    error_code=getattr(error, "code", None),
                    error_message=str(error),
                )
        intents.remove(tx, intent.id)


def _has_happened(warehouse: Warehouse, member: IntentMember) -> bool:
    try:
        return any(is_committed(commit) is not None for commit in _stored_commits(warehouse, member))
    except HistoryLost:
        return False
