"""Positions of WAL capture, and what a snapshot sees, against the server's own answer."""

from __future__ import annotations

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.postgres import Postgres
from trickle.errors import InternalError
from trickle.sources.postgres.positions import Snapshot, WalPosition, parse_lsn, show_lsn

lsns = st.integers(0, 2**64 - 1)


@st.composite
def snapshots(draw: st.DrawFn) -> Snapshot:
    xmin = draw(st.integers(3, 2**40))
    xmax = xmin + draw(st.integers(0, 50))
    running = draw(st.sets(st.integers(xmin, xmax - 1))) if xmax > xmin else set()
    # The first that runs is the lower end.
    return Snapshot(min(running, default=xmax), xmax, frozenset(running))


positions = st.one_of(st.builds(WalPosition, lsns), st.builds(WalPosition, lsns, snapshots(), lsns))


@given(lsns)
def test_an_lsn_survives_its_text(lsn: int) -> None:
    assert parse_lsn(show_lsn(lsn)) == lsn


@given(positions)
def test_a_position_survives_its_text(position: WalPosition) -> None:
    assert WalPosition.parse(str(position)) == position


@pytest.mark.parametrize(
    "text", ["", "wal:", "trigger:1:2:", "wal:0/0+1:2:", "wal:x/1", "wal:0/1@0/2", "wal:0/1+@0/2", "0/1"]
)
def test_what_is_no_position_is_refused(text: str) -> None:
    with pytest.raises(InternalError):
        WalPosition.parse(text)


@given(snapshots(), st.integers(-60, 60))
def test_an_id_is_found_again_from_its_lower_half(snapshot: Snapshot, distance: int) -> None:
    xid = snapshot.xmax + distance
    assert snapshot.widen(xid % 2**32) == xid


def test_a_snapshot_sees_what_the_server_says(postgres: Postgres) -> None:
    with postgres.database() as dsn, psycopg.connect(dsn, autocommit=True) as connection:

        @given(snapshots(), st.integers(-3, 53))
        def check(snapshot: Snapshot, offset: int) -> None:
            xid = snapshot.xmin + offset
            query = "SELECT pg_visible_in_snapshot(%s::text::xid8, %s::pg_snapshot), %s::pg_snapshot::text"
            assert connection.execute(query, (str(xid), str(snapshot), str(snapshot))).fetchone() == (
                snapshot.sees(xid),
                str(snapshot),
            )

        check()


@given(positions, lsns, lsns, st.integers(0, 2**32 - 1))
def test_moving_takes_in_exactly_what_lies_between(position: WalPosition, upto: int, commit_lsn: int, xid: int) -> None:
    end = WalPosition(upto)
    moved = position.moved(end)
    is_in_range = commit_lsn < upto and not position.holds(commit_lsn, xid)
    assert moved.holds(commit_lsn, xid) == (position.holds(commit_lsn, xid) or is_in_range)
