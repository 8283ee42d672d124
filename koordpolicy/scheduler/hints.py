"""Which pods an event can help: only those whose refusals it can undo, on a node where they would have room.

A hint may say yes in vain, and costs an attempt then. It must never say no to a pod that would pass.
"""

from collections.abc import Callable, Collection, Mapping

from koordpolicy.cluster.cache import ClusterCache
from koordpolicy.cluster.events import Event
from koordpolicy.cluster.pods import PodView
from koordpolicy.model.pod import PodKey
from koordpolicy.scheduler.decision import PodDecision
from koordpolicy.scheduler.profile import Profile
from koordpolicy.scheduler.step import Step

Helps = Callable[[PodKey], bool]


def differing(before: Mapping[str, object], after: Mapping[str, object]) -> frozenset[str]:
    """The facts of a row that are others now."""
    return frozenset(path for path in before.keys() | after.keys() if before.get(path) != after.get(path))


class Hints:
    """The hints of a profile about pods that wait."""

    __slots__ = ("_cache", "_profile", "_reads", "_room")

    def __init__(self, profile: Profile, cache: ClusterCache) -> None:
        self._cache = cache
        self._profile = profile
        self._room = next((step for step in profile.filters if _counts_room(step)), None)
        self._reads: dict[frozenset[str], frozenset[str] | None] = {}

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
        row: Mapping[str, object] | None = None
        if node is not None and node in self._cache:
            row = self._cache.table.row(self._cache.table.index(node))

        def helps(key: PodKey) -> bool:
            decision = last.get(key)
            if decision is None or decision.problem or decision.ahead:
                return True  # of another profile than this one nothing is known
            refusing = frozenset(refusals.filter for refusals in decision.refusals)
            if event is Event.NODE_CHANGED and changed is not None and not self._undoes(refusing, changed):
                return False
            if row is None or event is Event.POD_PLACED or self._looks_beyond(refusing):
                return True
            # A pod that may displace others needs a node that is large enough; others need room on it.
            displaces = self._profile.preempts and event in (Event.NODE_ADDED, Event.NODE_CHANGED)
            return self._has_room(pods[key], row, empty=displaces)

        return helps

    def _undoes(self, refusing: frozenset[str], changed: Collection[str]) -> bool:
        """Whether one of the filters reads something that changed."""
        if refusing not in self._reads:
            steps = [step for step in self._profile.filters if step.name in refusing]
            self._reads[refusing] = (
                None if _any_beyond(steps) else frozenset().union(*(s.reads for s in steps))
            )
        reads = self._reads[refusing]
        return reads is None or not reads.isdisjoint(changed)

    def _looks_beyond(self, refusing: frozenset[str]) -> bool:
        """Whether one of the filters looks beyond a node: what happens there may help elsewhere."""
        return _any_beyond([step for step in self._profile.filters if step.name in refusing])

    def _has_room(self, view: PodView, row: Mapping[str, object], *, empty: bool) -> bool:
        """Whether a node has room for a pod, or would have it if it were empty."""
        step = self._room
        if step is None or step.plugin is None or step.plugin.requests is None:
            return True
        has, used = row["resources.allocatable"], row["resources.requested"]
        assert isinstance(has, Mapping)
        assert isinstance(used, Mapping)
        try:
            # Parameters that depend on more than the pod are not known here; without them less is ignored.
            wanted = step.plugin.requests(view, step.values({"pod": view.facts}))
        except Exception:  # noqa: BLE001  # whoever decides on the pod will say what is wrong
            return True
        return all(
            amount <= has.get(name, 0) - (0 if empty else used.get(name, 0))
            for name, amount in wanted.items()
        )


def _counts_room(step: Step) -> bool:
    """Whether a filter is nothing but a count of room, for every pod."""
    return (
        step.plugin is not None
        and step.plugin.requests is not None
        and step.enabled.program is None
        and step.enabled.constant is not False
    )


def _any_beyond(steps: Collection[Step]) -> bool:
    return any(
        step.plugin is not None and (not step.plugin.row_only or step.plugin.decides_late) for step in steps
    )
