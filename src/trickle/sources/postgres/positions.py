"""Places in a server's history: LSNs, snapshots, and the positions of WAL capture, from and to text. Pure.

A position of WAL capture is an LSN: everything is in the lake that committed with a record that begins before it. This
is the rule by which the server itself decides what a slot has already given away, so both always agree, wherever in
a record an LSN points.

The position of a table that was just loaded is a snapshot: the lake holds what it sees, which is not the same as what
committed before some LSN (a commit record is written a moment before its transaction becomes visible, and it may be
visible before it is on disk). Of the transactions that the slot gives, those that the snapshot sees are then left
out. When everything that the snapshot may see lies behind, at ``until``, the LSN alone says it all, and the snapshot
is dropped: transaction ids come round again.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from trickle.errors import InternalError

MODE = "wal"

_LSN = re.compile(r"([0-9A-F]{1,8})/([0-9A-F]{1,8})\Z", re.ASCII)
_SNAPSHOT = re.compile(r"(\d+):(\d+):((?:\d+(?:,\d+)*)?)\Z", re.ASCII)
_ROUND = 1 << 32


def parse_lsn(text: str) -> int:
    """An LSN as a number of bytes.

    >>> parse_lsn("16/B374D848")
    97500059720
    """
    found = _LSN.match(text)
    if found is None:
        raise InternalError("not a position in the WAL", detail=repr(text))
    return int(found[1], 16) << 32 | int(found[2], 16)


def show_lsn(lsn: int) -> str:
    """An LSN as PostgreSQL writes it.

    >>> show_lsn(97500059720)
    '16/B374D848'
    """
    return f"{lsn >> 32:X}/{lsn & 0xFFFFFFFF:X}"


@dataclass(frozen=True)
class Snapshot:
    """A ``pg_snapshot``: what had ended when it was taken. Ids have 64 bits here."""

    xmin: int
    xmax: int
    running: frozenset[int] = frozenset()

    @staticmethod
    def parse(text: str) -> Snapshot:
        """The snapshot from PostgreSQL's text.

        >>> Snapshot.parse("10:14:10,12")
        Snapshot(xmin=10, xmax=14, running=frozenset({10, 12}))
        """
        found = _SNAPSHOT.match(text)
        if found is None:
            raise InternalError("not a snapshot", detail=repr(text))
        running = frozenset(int(xid) for xid in found[3].split(",") if xid)
        return Snapshot(int(found[1]), int(found[2]), running)

    def __str__(self) -> str:
        return f"{self.xmin}:{self.xmax}:{','.join(map(str, sorted(self.running)))}"

    def sees(self, xid: int) -> bool:
        """Whether a transaction that committed is part of the snapshot.

        >>> [Snapshot.parse("10:14:10,12").sees(xid) for xid in (9, 10, 11, 12, 13, 14)]
        [True, False, True, False, True, False]
        """
        return xid < self.xmin or (xid < self.xmax and xid not in self.running)

    def sees_all_of(self, other: Snapshot) -> bool:
        """Whether everything is in this snapshot that is in the other one.

        >>> Snapshot.parse("10:14:10").sees_all_of(Snapshot.parse("10:14:10,12"))
        True
        >>> Snapshot.parse("10:20:10,12").sees_all_of(Snapshot.parse("10:14:10"))
        False
        """
        earlier = {xid for xid in self.running if xid < other.xmax}
        return other.xmax <= self.xmax and earlier <= other.running

    def widen(self, xid: int) -> int:
        """The id of a transaction from its lower 32 bits, which is what the WAL has: of all that end with them, the
        one that is nearest to the snapshot.

        >>> snapshot = Snapshot.parse("4294967290:4294967300:")
        >>> snapshot.widen(5), snapshot.widen(4294967295)
        (4294967301, 4294967295)
        """
        near = self.xmax - (self.xmax - xid) % _ROUND
        return near if self.xmax - near <= _ROUND // 2 else near + _ROUND


@dataclass(frozen=True)
class WalPosition:
    """What of the WAL is in the lake."""

    lsn: int
    snapshot: Snapshot | None = None
    until: int = 0
    """Everything that the snapshot sees committed with a record that begins before this LSN."""

    @staticmethod
    def parse(text: str) -> WalPosition:
        """The position from its text.

        >>> WalPosition.parse("wal:0/10")
        WalPosition(lsn=16, snapshot=None, until=0)
        """
        mode, _, rest = text.partition(":")
        lsn, plus, load = rest.partition("+")
        snapshot, at, until = load.partition("@")
        if mode != MODE or bool(plus) != bool(at):
            raise InternalError("not a position of WAL capture", detail=repr(text))
        if not plus:
            return WalPosition(parse_lsn(lsn))
        return WalPosition(parse_lsn(lsn), Snapshot.parse(snapshot), parse_lsn(until))

    def __str__(self) -> str:
        load = f"+{self.snapshot}@{show_lsn(self.until)}" if self.snapshot else ""
        return f"{MODE}:{show_lsn(self.lsn)}{load}"

    def holds(self, commit_lsn: int, xid: int) -> bool:
        """Whether a transaction is in the lake, by where its commit record begins and the lower half of its id."""
        if commit_lsn < self.lsn:
            return True
        return self.snapshot is not None and commit_lsn < self.until and self.snapshot.sees(self.snapshot.widen(xid))

    @property
    def end(self) -> int:
        """Where to stop reading: nothing that begins here or later belongs to the position."""
        return max(self.lsn, self.until)

    def moved(self, upto: WalPosition) -> WalPosition:
        """Where a table stands that was here and has been given everything up to ``upto``."""
        if upto.snapshot is not None:
            return upto
        lsn = max(self.lsn, upto.lsn)
        if self.snapshot is None or self.until <= lsn:
            return WalPosition(lsn)
        return WalPosition(lsn, self.snapshot, self.until)
