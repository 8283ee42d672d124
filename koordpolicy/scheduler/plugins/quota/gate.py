"""The pods that wait for their quota, and who of them is tried again when a quota may have more or uses less."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from koordpolicy.algorithms.quota_limits import NON_PREEMPTIBLE
from koordpolicy.cluster.pods import PodView
from koordpolicy.cluster.quota_pods import QuotaPod
from koordpolicy.cluster.quotas import Quotas
from koordpolicy.model.amounts import add_to
from koordpolicy.model.pod import PodKey
from koordpolicy.model.reading import Amounts
from koordpolicy.scheduler.plugins.base import Host, Refusal
from koordpolicy.scheduler.plugins.parameters import Parameters
from koordpolicy.scheduler.plugins.quota.reasons import why

_Kind = tuple[int, bool, tuple[tuple[str, int], ...]]
"""What pods that are equal to a quota have in common: priority (negative), whether they are reserved, what they request."""


_SLICE: Final = 64
"""Quotas that are looked at in one go: decisions have their turn in between."""


class QuotaGate:
    """Those of one scheduler, by quota and by what they request, so that of equal pods one is looked at."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._waiting: dict[str, dict[_Kind, dict[PodKey, None]]] = {}
        self._places: dict[PodKey, tuple[str, _Kind]] = {}
        self._above: dict[str, tuple[str, ...]] = {}
        """The quotas above each for which pods wait, itself first, the root last."""
        self._below: dict[str, dict[str, None]] = {}
        """The quotas for which pods wait, by each of these."""
        self._held: dict[str, dict[str, None]] = {}
        """The same of those alone whose pods have to be within all quotas above."""
        self._seen = self._returned = self._changes = -1
        self._between: dict[str, int] = {}
        """The quotas of pods that came before the gate, or were looked at there, while others had room that they may give back at once, or
        of these others, who were let past it before them; with what `returned` was when that was looked at last: what was given back before is no news.
        """
        self._left: dict[str, None] = {}
        """The quotas that are to be looked at yet."""
        self._woken: dict[PodKey, QuotaPod] = {}
        """The pods that are to be tried again and have not had their turn: what they ask for is not there for others meanwhile."""
        self._taken: dict[str, dict[str, int]] = {}
        """What these ask for together, by quota."""

    @property
    def _quotas(self) -> Quotas:
        return self._host.cluster.quotas

    def concerned(self, view: PodView) -> bool:
        """Whether a pod waits for its quota, or may have to."""
        if self._places and (not self._quotas.active or view.pod.key in self._places):
            return True
        quotas = self._host.cluster.quotas
        return quotas.active and not quotas.certainly_within(view)

    def gate(self, view: PodView, _parameters: Parameters) -> Refusal | None:
        """Why a pod is to wait: it is not within its quota, and has nobody there whom it could make go."""
        quotas, key = self._quotas, view.pod.key
        member = quotas.member_of(view) if quotas.active else None
        found = None if member is None else quotas.excess(member)
        if (
            member is None
            or found is None
            or (found.stage != NON_PREEMPTIBLE and _may_preempt(quotas, member))
        ):
            self._forget(key)
            return None
        self._had_turn(key)
        self._host.release(key)  # what others went for is not for one that may not have it
        if self._host.promises.waiting:
            self._between.setdefault(member.quota, self._quotas.returned)
        kind = (-view.priority, member.reserved, tuple(sorted(member.request.items())))
        place = member.quota, kind
        if (
            self._places.get(key) != place
        ):  # one that is only asked about again keeps its place among equal ones
            self._forget(key)
            if member.quota not in self._waiting:
                self._waiting[member.quota] = {}
                self._index(quotas, member.quota)
            self._waiting[member.quota].setdefault(kind, {})[key] = None
            self._places[key] = place
        return Refusal(why(quotas, member, found))

    def settle(self) -> bool:
        """Have those tried again, the most important first, who are within their quotas by now. Whether there is more to look at."""
        if not self._places:
            return False
        quotas = self._quotas
        if quotas.changes != self._changes:
            self._changes = quotas.changes
            self._above, self._below, self._held = {}, {}, {}
            for name in self._waiting:
                self._index(quotas, name)
        self._look_where_room_was_left(quotas)
        less_used, parents = quotas.eased()
        if quotas.freed != self._seen:
            self._seen = quotas.freed
            self._left = dict.fromkeys(self._waiting)
        else:
            for name in less_used:
                self._look_where_less_is_used(quotas, name)
            for name in parents:
                self._left.update(self._below.get(name, {}))
        self._look_where_room_came_back(quotas)
        for _ in range(min(_SLICE, len(self._left))):
            name = next(iter(self._left))
            del self._left[name]
            if name in self._waiting:
                self._wake(quotas, name)
        return bool(self._left)

    def _wake(self, quotas: Quotas, name: str) -> None:
        if self._host.promises.waiting:
            self._between.setdefault(name, quotas.returned)
        woken = list(self._fitting(quotas, name))
        for key in woken:
            self._forget(key)
            member = quotas.member(key)
            if member is not None and member.quota == name:
                self._woken[key] = member
                add_to(self._taken.setdefault(name, {}), member.request)
        if woken:
            self._host.reconsider(*woken)

    def _index(self, quotas: Quotas, name: str) -> None:
        """Pods wait for a quota from now on."""
        self._above[name] = above = quotas.above(name)
        held = name in quotas and quotas[name].by_parents
        for one in above:
            for index in (self._below, self._held) if held else (self._below,):
                index.setdefault(one, {})[name] = None

    def _look_where_less_is_used(self, quotas: Quotas, name: str) -> None:
        """Pods of a quota use less: that helps its own, those of quotas above, and those that are held to these as well."""
        for one in quotas.above(name):
            if one in self._waiting:
                self._left[one] = None
            self._left.update(self._held.get(one, {}))

    def _look_where_room_was_left(self, quotas: Quotas) -> None:
        """One that has had its turn may have found no node, or wait for something else: then others may have the room."""
        while self._woken:
            key, member = next(iter(self._woken.items()))
            if self._host.has_turn(key):
                return
            self._had_turn(key)
            if self._host.promises.waits(key):
                self._between.setdefault(member.quota, quotas.returned)
                continue
            now = quotas.member(key)
            if (now is None or not now.placed) and member.quota in quotas:
                self._look_where_less_is_used(quotas, member.quota)

    def _look_where_room_came_back(self, quotas: Quotas) -> None:
        """One of those who had room for a moment gives it back: the others may do so as well, as long as they wait."""
        if self._returned == quotas.returned:
            return
        self._returned = quotas.returned
        more = bool(self._host.promises.waiting)
        for name, before in list(self._between.items()):
            if before != quotas.returned:
                self._look_where_less_is_used(quotas, name)
                if more:
                    self._between[name] = quotas.returned
                else:
                    del self._between[name]

    def _had_turn(self, key: PodKey) -> None:
        member = self._woken.pop(key, None)
        if member is None:
            return
        taken = self._taken[member.quota]
        add_to(taken, {name: -number for name, number in member.request.items()})
        if not any(taken.values()):
            del self._taken[member.quota]

    def status(self) -> Mapping[str, Any] | None:
        """How many pods wait, by quota; None where there are no quotas."""
        if not self._quotas.active:
            return None
        return {name: sum(map(len, kinds.values())) for name, kinds in self._waiting.items()}

    def _fitting(self, quotas: Quotas, name: str) -> Iterator[PodKey]:
        """The pods of a quota that fit into it together; one that is gone or belongs elsewhere, too, to be looked at anew."""
        taken: dict[str, int] = dict(self._taken.get(name, {}))
        kinds = self._waiting[name]
        for kind in sorted(kinds, key=lambda one: one[0]):
            for key in kinds[kind]:
                member = quotas.member(key)
                if member is None or member.quota != name or not quotas.active:
                    yield key
                    continue
                if quotas.excess(member, _sum(taken, member.request)) is None:
                    add_to(taken, member.request)
                    yield key
                    continue
                if not taken and _may_preempt(quotas, member):
                    yield key
                break

    def _forget(self, key: PodKey) -> None:
        place = self._places.pop(key, None)
        if place is None:
            return
        name, kind = place
        kinds = self._waiting[name]
        del kinds[kind][key]
        if not kinds[kind]:
            del kinds[kind]
        if not kinds:
            del self._waiting[name]
            for one in self._above.pop(name, ()):
                for index in (self._below, self._held):
                    below = index.get(one, {})
                    below.pop(name, None)
                    if not below:
                        index.pop(one, None)


def _may_preempt(quotas: Quotas, member: QuotaPod) -> bool:
    """Whether a pod would be within its quota if less important ones of it went, as far as they may have to."""
    return quotas.excess(member, without=member.view.priority) is None


def _sum(some: Amounts, more: Amounts) -> Amounts:
    total = dict(some)
    add_to(total, more)
    return total
