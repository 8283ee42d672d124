"""Kinds that want what they wanted last: until when nothing has to be done for them, whatever others want meanwhile."""

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from operator import is_
from typing import Any, TypeAlias

from koordpolicy.agent.plan import Plan
from koordpolicy.agent.strategies.arbiter import WantedFile

Around: TypeAlias = tuple[tuple[object, ...], tuple[Any, ...] | None]
"""What is settled from besides plans: objects that stay the same ones, and facts that stay equal; None where time is among them."""

_NOTHING = Plan()


@dataclass(frozen=True, slots=True)
class _Quiet:
    """What a kind wanted when it was settled, by what else, and before which time the same would do nothing."""

    plan: Plan
    around: Around
    until: int

    def holds(self, plan: Plan | None, around: Around, now: int) -> bool:
        """Whether that is so now."""
        objects, facts = around
        return (
            plan is self.plan
            and now < self.until
            and facts is not None
            and facts == self.around[1]
            and all(map(is_, objects, self.around[0]))
        )


@dataclass(frozen=True, slots=True)
class _Reach:
    """The files of a plan, and the strategies that want something of them."""

    plan: Plan
    places: frozenset[WantedFile]
    strategies: frozenset[str]

    def meets(self, other: "_Reach") -> bool:
        """Whether what becomes of one may depend on the other."""
        return not (self.places.isdisjoint(other.places) and self.strategies.isdisjoint(other.strategies))


@dataclass(slots=True)
class QuietKinds:
    """Which kinds have to be settled and written. Plans are compared by being the same ones."""

    _quiet: dict[str, _Quiet] = field(default_factory=dict)
    _reaches: dict[str, _Reach] = field(default_factory=dict)
    _left: dict[str, _Reach] = field(default_factory=dict)
    """Of kinds that want something else than before: the files that they wanted then."""

    def due(
        self,
        turn: Mapping[str, Plan],
        plans: Mapping[str, Plan],
        before: Mapping[str, Plan],
        around: Around,
        now: int,
    ) -> AbstractSet[str]:
        """The kinds to be settled together, of those that have their `turn` and of others that share files with them.

        `before` is what they wanted last. Empty where nothing is to be done.
        """
        moved = set()
        for kind in turn:
            quiet = self._quiet.get(kind)
            if quiet is None or not quiet.holds(plans.get(kind), around, now):
                moved.add(kind)
        if not moved:
            return moved
        self._left = {
            kind: self._reach(kind, before.get(kind, _NOTHING))
            for kind in moved
            if before.get(kind, _NOTHING) is not plans.get(kind)
        }
        reaches = {kind: self._reach(kind, plan) for kind, plan in plans.items()}
        due: set[str] = set()
        while moved:
            kind = moved.pop()
            due.add(kind)
            mine = [one for one in (reaches.get(kind), self._left.get(kind)) if one is not None]
            moved |= {
                other
                for other, reach in reaches.items()
                if other not in due and other not in moved and any(one.meets(reach) for one in mine)
            }
        for kind in due - turn.keys():
            self._quiet.pop(kind, None)  # what it lost to another may be its own again, at its next turn
        return due

    def places(self, due: AbstractSet[str]) -> Iterator[WantedFile]:
        """The files that kinds want, and wanted before, as `due` found them last."""
        for kind in due:
            for reaches in (self._reaches, self._left):
                if kind in reaches:
                    yield from reaches[kind].places

    def settled(self, kinds: AbstractSet[str], plans: Mapping[str, Plan], around: Around, until: int) -> None:
        """These have what they want, until that time."""
        self._quiet.update({kind: _Quiet(plans[kind], around, until) for kind in kinds})

    def clear(self) -> None:
        """Whatever was settled has to be settled again."""
        self._quiet.clear()

    def _reach(self, kind: str, plan: Plan) -> _Reach:
        known = self._reaches.get(kind)
        if known is None or known.plan is not plan:
            places = {(write.file, write.group): write.strategy for write in plan.writes} | dict(plan.holds)
            strategies = {write.strategy for write in plan.writes} | set(plan.holds.values())
            known = self._reaches[kind] = _Reach(plan, frozenset(places), frozenset(strategies))
        return known
