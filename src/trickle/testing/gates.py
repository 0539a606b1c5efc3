"""For tests of gates, ours and yours: facts from plain values, and a way to try one gate.

A gate of the product is tried with the facts that it asks for; a fact that was not given is an error that names it:

>>> from trickle.gates.facts import FuseFacts, FuseRating, Volume
>>> from trickle.gates.fuse import FuseGate
>>> fuse = FuseFacts("order_summary", FuseRating("fixed", ceiling=100), blown=False)
>>> verdict = tried(FuseGate(), fuses=[fuse], volume=Volume(0, 500), exact_volume=Volume(0, 500))
>>> print(verdict.decision, verdict.reason)
BLOCK delta of 500 changed rows exceeds ceiling 100

A gate of your own is a function. It is called with what you hand in, as a refresh calls it with the name of the stream
table and the staged change, and what it returns is read as a refresh reads it:

>>> def has_customers(name, change):
...     missing = sum(1 for row in change if row["customer"] is None)
...     return missing == 0, f"{missing} rows of {name} have no customer"
>>> verdict = tried(has_customers, "order_summary", [{"customer": "ada"}, {"customer": None}])
>>> print(verdict.decision, verdict.reason)
SKIP user gate has_customers: 1 rows of order_summary have no customer
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from datetime import UTC, datetime
from typing import Any, cast

from trickle.algebra.names import nearest
from trickle.errors import InvalidOption
from trickle.gates.facts import (
    Delta,
    Due,
    Facts,
    FuseFacts,
    GatedSource,
    HeldUpstream,
    Lock,
    Path,
    SourceMove,
    TableFacts,
    UnitFacts,
    UserAnswer,
    Volume,
    WatermarkGroup,
)
from trickle.gates.gate import Gate
from trickle.gates.user import answered, user_verdict
from trickle.gates.verdict import Verdict

_KNOWN = frozenset(name for name in dir(Facts) if not name.startswith("_"))
_ORDINARY: Mapping[str, Any] = {
    "name": "order_summary",
    "relation_id": 1,
    "status": "ACTIVE",
    "populated": True,
    "needs_reinitialize": False,
    "always_refresh": False,
}


def a_table(**changed: Any) -> TableFacts:
    """An ordinary stream table, called order_summary, apart from what is changed.

    >>> a_table(status="SUSPENDED").status
    'SUSPENDED'
    """
    _check(changed, [field.name for field in fields(TableFacts)], "a table")
    return TableFacts(**{**_ORDINARY, **changed})


class Given:
    """Facts from plain values, which also remembers what was asked for.

    ``volume`` and ``exact_volume`` are one value for every fuse, or a mapping from owners to values.

    >>> facts = Given(lock=Lock("pid 12 on host"))
    >>> facts.lock.held_by, facts.asked
    ('pid 12 on host', ['lock'])
    """

    def __init__(self, **given: Any) -> None:
        _check(given, sorted(_KNOWN), "the facts")
        self._given = {"now": datetime(2026, 1, 1, tzinfo=UTC), **given}
        self.asked: list[str] = []
        """The names of the facts that were asked for, in order."""

    def _fact(self, name: str) -> Any:
        self.asked.append(name)
        if name not in self._given:
            raise InvalidOption(f"the gate asked for {name!r}, which is not given", hint=f"Given({name}=...)")
        return self._given[name]

    @property
    def now(self) -> datetime:
        return cast(datetime, self._fact("now"))

    @property
    def cut_at(self) -> datetime | None:
        return cast("datetime | None", self._fact("cut_at"))

    @property
    def lock(self) -> Lock:
        return cast(Lock, self._fact("lock"))

    @property
    def due(self) -> Due:
        return cast(Due, self._fact("due"))

    @property
    def sources(self) -> Sequence[SourceMove]:
        return cast("Sequence[SourceMove]", self._fact("sources"))

    @property
    def gated_sources(self) -> Sequence[GatedSource]:
        return cast("Sequence[GatedSource]", self._fact("gated_sources"))

    @property
    def held_upstream(self) -> Sequence[HeldUpstream]:
        return cast("Sequence[HeldUpstream]", self._fact("held_upstream"))

    @property
    def fuses(self) -> Sequence[FuseFacts]:
        return cast("Sequence[FuseFacts]", self._fact("fuses"))

    def volume(self, owner: str) -> Volume | None:
        return cast("Volume | None", _of(self._fact("volume"), owner))

    def exact_volume(self, owner: str) -> Volume:
        return cast(Volume, _of(self._fact("exact_volume"), owner))

    @property
    def watermark_groups(self) -> Sequence[WatermarkGroup]:
        return cast("Sequence[WatermarkGroup]", self._fact("watermark_groups"))

    @property
    def paths(self) -> Sequence[Path]:
        return cast("Sequence[Path]", self._fact("paths"))

    @property
    def unit(self) -> UnitFacts:
        return cast(UnitFacts, self._fact("unit"))

    @property
    def delta(self) -> Delta:
        return cast(Delta, self._fact("delta"))

    @property
    def user_answers(self) -> Sequence[UserAnswer]:
        return cast("Sequence[UserAnswer]", self._fact("user_answers"))


def tried(
    gate: Gate | Callable[..., object], *arguments: object, table: TableFacts | None = None, **given: Any
) -> Verdict:
    """What a gate says: one of the product of facts, one of yours of the arguments that it is called with.

    What a function raises is raised; in a refresh it holds the change back.
    """
    if isinstance(gate, type):
        raise InvalidOption(f"{gate.__name__} is a class", hint=f"tried({gate.__name__}(), ...)")
    evaluate = getattr(gate, "evaluate", None)
    if evaluate is not None:
        if arguments:
            raise InvalidOption("a gate of the product is tried with facts by name", hint="tried(gate, due=Due(...))")
        return cast(Verdict, evaluate(table or a_table(), Given(**given)))
    if given or table is not None:
        raise InvalidOption("a gate of your own is called with plain arguments", hint="tried(gate, name, change)")
    function = cast("Callable[..., object]", gate)
    return user_verdict(answered(getattr(gate, "__name__", "gate"), function(*arguments)))


def _of(given: Any, owner: str) -> Any:
    return given[owner] if isinstance(given, Mapping) else given


def _check(given: Mapping[str, Any], known: Sequence[str], what: str) -> None:
    for name in given:
        if name not in known:
            close = nearest(name, known)
            hint = f"did you mean {close!r}?" if close else "known: " + ", ".join(known)
            raise InvalidOption(f"{what} has no {name!r}", hint=hint)
