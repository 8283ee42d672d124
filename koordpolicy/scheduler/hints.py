"""Which pods an event can help: only those whose refusals it can undo, on a node where they would have room.

A hint may say yes in vain, and costs an attempt then. It must never say no to a pod that would pass.
"""

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np

from koordpolicy.cluster.cache import ClusterCache
from koordpolicy.cluster.events import Event
from koordpolicy.cluster.nodes import NodeView
from koordpolicy.cluster.pods import PodView
from koordpolicy.model.facts import Record
from koordpolicy.model.pod import PodKey
from koordpolicy.model.reading import ObjectError
from koordpolicy.scheduler.decision import PodDecision
from koordpolicy.scheduler.post_filters import PostFilters
from koordpolicy.scheduler.profile import Profile
from koordpolicy.scheduler.step import Step

Helps = Callable[[PodKey], bool]

First = Callable[[PodKey], int | None]
"""The place, among nodes to which something happened, of the first that may help a pod."""

Company: TypeAlias = Callable[[PodView], Sequence[PodView]]

RecordsOf: TypeAlias = Callable[[Record, str], Mapping[str, Any]]
"""The records of a decision about a pod with these facts in this namespace."""

_EMPTY: Final = frozenset({Event.NODE_ADDED, Event.NODE_CHANGED})
"""Events at a node after which it is enough that it is large: who has room there only if others go is told so, or makes
them go."""

_GONE: Final = 1024
"""Pods that wait no more and are still known, at most, beside twice as many as wait."""


def _nobody(_view: PodView) -> Sequence[PodView]:
    return ()


class _Hindered(NamedTuple):
    """What hints need to know of a pod that was refused. It holds as long as view and decision are the pod's last ones.

    `beyond` says that one of the refusing filters looks beyond nodes; `wanted` is what has to be free, as far as that is known,
    `others` the same of each pod that goes with it and wants something else. `mixed` says that some of those go elsewhere, `alone`
    that none go with it.
    """

    view: PodView
    decision: PodDecision
    refusing: frozenset[str]
    beyond: bool
    wanted: Mapping[str, int]
    records: Mapping[str, Any]
    others: tuple[Mapping[str, int], ...] = ()
    mixed: bool = False
    alone: bool = True

    def fits(self, free: Mapping[str, int]) -> bool:
        """Whether so much is enough for it, or for one of those that go with it.

        Where one of these has another place to go to, the place that it had may be enough for the pod itself.
        """
        return _fits(self.wanted, free) or any(_fits(wanted, free) for wanted in self.others)


class Hints:
    """The hints of a profile about pods that wait. `company` gives the pods without a node that go with one or not at all."""

    __slots__ = (
        "_bars", "_cache", "_company", "_fixed", "_kinds", "_known", "_measures", "_of_ways", "_post_filters", "_profile", "_reads", "_records", "_room",
    )  # fmt: skip

    def __init__(
        self,
        profile: Profile,
        cache: ClusterCache,
        post_filters: PostFilters,
        records: RecordsOf,
        company: Company = _nobody,
    ) -> None:
        self._cache = cache
        self._company = company
        self._profile = profile
        self._post_filters = post_filters
        self._records = records
        self._room = next((step for step in profile.filters if _counts_room(step)), None)
        ways = any(step.plugin is not None and step.plugin.makes_way is not None for step in profile.filters)
        self._of_ways = frozenset({Event.RESERVATION_CHANGED}) if ways else frozenset[Event]()
        """What has others make way for a pod, whoever refuses it as long as they are in its way."""
        self._measures = any(Event.METRIC_CHANGED in step.helped_by for step in profile.filters)
        self._fixed = tuple(step for step in profile.filters if _is_fixed(step))
        self._bars = tuple(step for step in profile.filters if _bars(step))
        self._reads: dict[frozenset[str], frozenset[str] | None] = {}
        self._known: dict[PodKey, _Hindered] = {}
        self._kinds: dict[PodKey, tuple[Record, object, str]] = {}
        """The kinds of waiting pods, with what they were made of."""

    def helped_by(self, view: PodView, decision: PodDecision) -> frozenset[Event]:
        """The events that can help a pod that was refused: those that can help against any of its refusals, and reports of nodes where
        one that goes with it may go elsewhere after one.
        """
        refusing = {refusals.filter for refusals in decision.refusals}
        lasting = _lasting(self._bars, decision)
        found = frozenset({Event.NODE_ADDED}).union(
            *(
                step.helped_by - {Event.POD_GONE} if step.name in lasting else step.helped_by
                for step in self._profile.filters
                if step.name in refusing
            )
        )
        found |= self._of_ways
        if self._measures and any(self._differ(one, view) for one in self._company(view)):
            found |= {Event.METRIC_CHANGED}
        # Where no pod's end would help, nobody is made to go.
        return found | self._post_filters.helped_by if Event.POD_GONE in found else found

    def _differ(self, one: PodView, other: PodView) -> bool:
        """Whether one of two pods may have another place to go to than the other."""
        return _goes_elsewhere(one, other) or self._wanted(one) != self._wanted(other)

    def about(
        self,
        event: Event,
        node: str | None,
        changed: Collection[str] | None,
        pods: Mapping[PodKey, PodView],
        last: Mapping[PodKey, PodDecision],
    ) -> Helps:
        """Whether an event at a node can help a pod, of those that wait and were refused before.

        `changed` are the facts of the node that are others now, None where that is not known.
        """
        free = None if node is None else self._free_on(node, event)
        self._forget_others(pods)
        reservations = self._cache.state.reservations if event is Event.RESERVATION_CHANGED else None

        def helps(key: PodKey) -> bool:
            if reservations is not None and not reservations.concerns(pods[key]):
                return False
            known = self._known_of(key, pods, last)
            if known is None:
                return True
            if event is Event.NODE_CHANGED and not (known.mixed or self._undoes(known.refusing, changed)):
                return False
            if free is None or event is Event.POD_PLACED or known.beyond:
                return True
            if known.alone and self._is_barred(known.view, str(node)):
                return False
            if known.fits(free):
                return True
            return event not in _EMPTY and self._can_be_freed(known, str(node), free)

        return helps

    def first(
        self,
        event: Event,
        nodes: Sequence[str],
        pods: Mapping[PodKey, PodView],
        last: Mapping[PodKey, PodDecision],
    ) -> First:
        """The same of one event at each of many nodes, an event after which nothing else of them is another than rows say: which of them
        is the first that can help a pod, found once for pods that are alike.
        """
        free = [(node, self._free_on(node, event)) for node in nodes]
        self._forget_others(pods)
        found: dict[Hashable, int | None] = {}

        def of(known: _Hindered) -> int | None:
            for at, (node, there) in enumerate(free):
                if there is None or known.fits(there) or self._can_be_freed(known, node, there):
                    return at
            return None

        def first(key: PodKey) -> int | None:
            known = self._known_of(key, pods, last)
            if known is None or known.beyond:
                return 0
            kind = self._kind_of(known)
            if kind is None:
                return of(known)
            if kind not in found:
                found[kind] = of(known)
            return found[kind]

        return first

    def _kind_of(self, known: _Hindered) -> Hashable | None:
        """The same for pods that the same nodes can help, as far as amounts and filters of nodes as such go; None where that is not known."""
        view = known.view
        try:
            placement = view.placement
        except ObjectError:
            return None
        alike = self._post_filters.alike(view.pod.key, known.records)
        if alike is None or known.others:
            return None
        facts, kept = view.facts, self._kinds.get(view.pod.key)
        if kept is None or kept[0] != facts or kept[1] != placement:
            said = repr([*map(facts.get, self._profile.fingerprint_facts), placement])
            kept = self._kinds[view.pod.key] = facts, placement, said
        return kept[2], alike, tuple(known.wanted.items())

    def _free_on(self, node: str, event: Event) -> Mapping[str, int] | None:
        """What a node has left, or would have if it were empty where that is enough; None for one that is not known."""
        if node not in self._cache:
            return None
        return _free(self._cache.table.row(self._cache.table.index(node)), empty=event in _EMPTY)

    def _forget_others(self, pods: Mapping[PodKey, PodView]) -> None:
        """Forget pods that wait no more, once they are many."""
        if len(self._known) > 2 * len(pods) + _GONE:
            self._known = {key: one for key, one in self._known.items() if key in pods}
            self._kinds = {key: one for key, one in self._kinds.items() if key in pods}

    def _known_of(
        self, key: PodKey, pods: Mapping[PodKey, PodView], last: Mapping[PodKey, PodDecision]
    ) -> _Hindered | None:
        """A pod that was refused; None where nothing is known of that, as of a decision by another profile than this one."""
        decision = last.get(key)
        if decision is None or decision.problem or decision.ahead:
            return None
        known, view = self._known.get(key), pods[key]
        if known is None or known.decision is not decision or known.view is not view:
            known = self._known[key] = self._hindered(view, decision)
        return known

    def _hindered(self, view: PodView, decision: PodDecision) -> _Hindered:
        refusing = frozenset(refusals.filter for refusals in decision.refusals)
        anywhere = refusing - _lasting(self._bars, decision)
        beyond = _any_beyond([step for step in self._profile.filters if step.name in anywhere])
        records = self._records(view.facts, view.pod.namespace)
        wanted, company = self._wanted(view), self._company(view)
        others: list[Mapping[str, int]] = []
        for one in company:
            if (its := self._wanted(one)) != wanted and its not in others:
                others.append(its)
        mixed = any(_goes_elsewhere(one, view) for one in company)
        alone = not company
        return _Hindered(view, decision, refusing, beyond, wanted, records, tuple(others), mixed, alone)

    def _undoes(self, refusing: frozenset[str], changed: Collection[str] | None) -> bool:
        """Whether one of the filters reads something that changed; None where it is not known what."""
        if changed is None:
            return True
        if refusing not in self._reads:
            steps = [step for step in self._profile.filters if step.name in refusing]
            self._reads[refusing] = (
                None if _any_beyond(steps) else frozenset().union(*(s.reads for s in steps))
            )
        reads = self._reads[refusing]
        return reads is None or not reads.isdisjoint(changed)

    def _can_be_freed(self, known: _Hindered, node: str, free: Mapping[str, int]) -> bool:
        """Whether a node might have room for a pod once others are made to go."""
        short = ((name, amount - free.get(name, 0)) for name, amount in known.wanted.items())
        lacking = {name: amount for name, amount in short if amount > 0}
        return self._post_filters.may_help(
            known.view.pod.key, node, known.records, lacking
        ) and not self._is_shut(known.view, node)

    def _wanted(self, view: PodView) -> Mapping[str, int]:
        step = self._room
        if step is None or step.plugin is None or step.plugin.requests is None:
            return {}
        try:
            # Parameters that depend on more than the pod are not known here; without them less is ignored.
            return step.plugin.requests(view, step.values({"pod": view.facts}))
        except Exception:  # noqa: BLE001  # whoever decides on the pod will say what is wrong
            return {}

    def _is_barred(self, view: PodView, node: str) -> bool:
        """Whether something that is known of a node beside its row closes it to a pod, whoever leaves."""
        try:
            return any(
                step.plugin is not None
                and step.plugin.bars is not None
                and step.plugin.bars(view, node, self._cache.state)
                for step in self._bars
            )
        except Exception:  # noqa: BLE001  # whoever decides on the pod will say what is wrong
            return False

    def _is_shut(self, view: PodView, node: str) -> bool:
        """Whether a node is refused to a pod whatever other pods are there."""
        nodes = NodeView(self._cache.table, np.array([self._cache.table.index(node)]))
        for step in self._fixed:
            assert step.plugin is not None
            assert step.plugin.filter is not None
            assert step.fixed is not None
            try:
                if step.plugin.filter(view, nodes, step.fixed).refused.any():
                    return True
            except Exception:  # noqa: BLE001  # whoever decides on the pod will say what is wrong
                return False
        return False


def _free(row: Mapping[str, object], *, empty: bool) -> Mapping[str, int]:
    """What a node has left of each resource, or would have if it were empty."""
    has, used = row["resources.allocatable"], row["resources.requested"]
    assert isinstance(has, Mapping)
    assert isinstance(used, Mapping)
    return dict(has) if empty else {name: amount - used.get(name, 0) for name, amount in has.items()}


def _fits(wanted: Mapping[str, int], free: Mapping[str, int]) -> bool:
    return all(amount <= free.get(resource, 0) for resource, amount in wanted.items())


def _goes_elsewhere(one: PodView, other: PodView) -> bool:
    """Whether two pods do not say the same of nodes."""
    try:
        return one.placement != other.placement
    except ObjectError:
        return True


def _counts_room(step: Step) -> bool:
    """Whether a filter is nothing but a count of room, for every pod."""
    return (
        step.plugin is not None
        and step.plugin.requests is not None
        and step.enabled.program is None
        and step.enabled.constant is not False
    )


def _is_fixed(step: Step) -> bool:
    """Whether a filter speaks of a node as such, and of every pod."""
    return (
        step.plugin is not None
        and step.plugin.filter is not None
        and step.plugin.row_only
        and step.always
        and step.fixed is not None
        and not step.depends_on_pods
    )


def _bars(step: Step) -> bool:
    """Whether a filter can tell, of every pod, that a node is closed to it."""
    return step.plugin is not None and step.plugin.bars is not None and step.always and not step.expression


def _lasting(bars: Collection[Step], decision: PodDecision) -> frozenset[str]:
    """Those of some filters that refused a pod on all their nodes for reasons that hold whoever leaves."""
    can_be_freed = {one.filter for one in decision.refusals if one.resolvable or one.error}
    refused = {one.filter for one in decision.refusals}
    return frozenset(step.name for step in bars if step.name in refused - can_be_freed)


def _any_beyond(steps: Collection[Step]) -> bool:
    return any(
        step.plugin is not None and (not step.plugin.row_only or step.plugin.decides_late) for step in steps
    )
