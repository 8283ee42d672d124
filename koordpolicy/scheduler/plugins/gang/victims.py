"""What policy says of pods that may go for a gang."""

from collections.abc import Callable
from typing import Final

from koordpolicy.cluster.pods import PodView
from koordpolicy.cluster.prepared import Records, prepared
from koordpolicy.graph import RuleGraph
from koordpolicy.graph.sortable import SortKey
from koordpolicy.language.cel.errors import CelError
from koordpolicy.language.cel.values import Timestamp
from koordpolicy.model.time import NANOSECONDS
from koordpolicy.scheduler.plugins.gang.policy import KIND
from koordpolicy.scheduler.pod_predicate import PodPredicate
from koordpolicy.scheduler.sortkeys import sort_key


class GangVictims:
    """The decisions of one graph on pods on nodes."""

    def __init__(self, graph: RuleGraph) -> None:
        self.graph: Final = graph
        self._eligible: Final = PodPredicate(graph, f"{KIND}.preemption.eligible", "victim")
        self._whole: Final = PodPredicate(graph, f"{KIND}.preemption.wholeGangs", "victim")
        self._job: Final = prepared(graph, f"{KIND}.preemption.job")
        self._importance: Final = prepared(graph, f"{KIND}.preemption.importance")

    def eligible_for(self, records: Records) -> Callable[[PodView], bool]:
        """Whether a pod on a node may go for the gang of the pod that `records` speak of."""
        return self._eligible.bound(records)

    def whole_for(self, records: Records) -> Callable[[PodView], bool]:
        """Whether the others of its gang go with a pod, and it does not go where one of them may not."""
        return self._whole.bound(records)

    def job_of(self, victim: PodView, now: int) -> str:
        """What a pod is a part of; empty for none. `now` is in nanoseconds since 1970."""
        try:
            return str(self._job.value(_records(victim, now)) or "")
        except CelError:
            return ""

    def importance(self, victim: PodView, now: int) -> SortKey:
        """The place of a pod among those that may go: the first is kept first."""
        return sort_key(self._importance, _records(victim, now))


def _records(victim: PodView, now: int) -> dict[str, object]:
    return {"victim": victim.facts, "now": Timestamp(now - now % NANOSECONDS)}
