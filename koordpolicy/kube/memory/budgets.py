"""The disruption budgets of a cluster: their status, and the evictions they grant. A controller's part.

A budget's status is brought up to date when someone may look at it: before it is read, before an
eviction, and after a write while somebody watches budgets.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Final

from koordpolicy.kube import resources
from koordpolicy.kube.errors import Forbidden, KubeError, TooManyRequests
from koordpolicy.kube.frozen import FrozenDict
from koordpolicy.kube.memory.collection import Key
from koordpolicy.kube.memory.disruption import BudgetTally, budget_status, counts_until, unhealthy_may_go
from koordpolicy.kube.memory.state import MemoryState
from koordpolicy.kube.resources import RESOURCES, Resource, resource_of
from koordpolicy.kube.selectors import selector_of
from koordpolicy.model.protocol import PHASE_FAILED, PHASE_PENDING, PHASE_SUCCEEDED
from koordpolicy.model.time import NANOSECONDS, time_text

_BUDGETS: Final = resources.POD_DISRUPTION_BUDGETS


class DisruptionBudgets:
    """The budgets of a cluster. Observes every write, and notes which namespaces need another look."""

    def __init__(self, state: MemoryState, now: Callable[[], int]) -> None:
        self._state = state
        self._now = now
        self._in: dict[str, int] = {}
        self._stale: dict[str, None] = {}
        self._moved: dict[str, dict[str, None]] = {}
        self._tallies: dict[Key, BudgetTally] = {}
        self._writing = False
        self._recheck: dict[str, int] = {}

    def changed(self, resource: Resource, key: Key, old: FrozenDict | None, new: FrozenDict | None) -> None:
        namespace = key[0]
        if resource == _BUDGETS:
            self._in[namespace] = self._in.get(namespace, 0) + (old is None) - (new is None)
            if old is None or new is None or old.get("spec") != new.get("spec"):
                self._tallies.pop(key, None)
            if not self._writing:
                self._stale[namespace] = None
        elif self._in.get(namespace):
            if resource == resources.PODS:
                self._moved.setdefault(namespace, {})[key[1]] = None
            elif "scale" in resource.subresources:
                self._stale[namespace] = None

    def settle(self) -> None:
        """Bring the status of every budget up to date."""
        for namespace in [namespace for namespace, due in self._recheck.items() if due <= self._now()]:
            del self._recheck[namespace]
            self._stale[namespace] = None
        while self._stale or self._moved:
            namespace = next(iter(self._stale or self._moved))
            self._stale.pop(namespace, None)
            moved = self._moved.pop(namespace, {})
            for key in self._state.collection(_BUDGETS).names(namespace):
                self._refresh(key, moved)

    def claim(self, pod: FrozenDict, *, dry_run: bool) -> None:
        """Take one eviction from the pod's budget.

        TooManyRequests when there is none to take; a KubeError of code 500 for several budgets over one pod.
        """
        if not self._guarded(pod):
            return
        self.settle()
        namespace, name = pod["metadata"]["namespace"], pod["metadata"]["name"]
        labels = pod["metadata"].get("labels") or {}
        budgets = [
            budget
            for budget in map(
                self._state.collection(_BUDGETS).objects.__getitem__,
                self._state.collection(_BUDGETS).names(namespace),
            )
            if selector_of((budget.get("spec") or {}).get("selector")).matches(labels)
        ]
        if len(budgets) > 1:
            raise KubeError(
                f"pod `{name}` has more than one PodDisruptionBudget, which evictions do not support"
            )
        if not budgets or unhealthy_may_go(budgets[0], pod):
            return
        budget, status = budgets[0], budgets[0].get("status") or {}
        allowed = status.get("disruptionsAllowed", 0)
        if allowed < 0:
            raise Forbidden(f"budget `{budget['metadata']['name']}` allows a negative number of disruptions")
        if allowed == 0:
            raise TooManyRequests(
                f"evicting pod `{name}` would violate its disruption budget `{budget['metadata']['name']}`: "
                f"{status.get('currentHealthy', 0)} pods are healthy, {status.get('desiredHealthy', 0)} must be"
            )
        if not dry_run:
            since = {**(status.get("disruptedPods") or {}), name: time_text(self._now() * NANOSECONDS)}
            self._write(budget, {**status, "disruptionsAllowed": allowed - 1, "disruptedPods": since})

    def _guarded(self, pod: FrozenDict) -> bool:
        """Whether evicting the pod disrupts anything: not when it is going, or never began."""
        phase = (pod.get("status") or {}).get("phase")
        going = pod["metadata"].get("deletionTimestamp")
        return not going and phase not in (PHASE_SUCCEEDED, PHASE_FAILED, PHASE_PENDING)

    def _refresh(self, key: Key, moved: Iterable[str]) -> None:
        budget = self._state.get(_BUDGETS, key)
        status = budget_status(
            budget, self._tally(key, budget, moved), partial(self._scale, key[0]), self._now()
        )
        for since in (status.get("disruptedPods") or {}).values():
            due = counts_until(since)
            self._recheck[key[0]] = min(due, self._recheck.get(key[0], due))
        if status != budget.get("status"):
            self._write(budget, status)

    def _tally(self, key: Key, budget: FrozenDict, moved: Iterable[str]) -> BudgetTally:
        """The count of a budget's pods: the one kept, after the pods that moved, or a new one."""
        pods, namespace = self._state.collection(resources.PODS), key[0]
        tally = self._tallies.get(key)
        if tally is None:
            tally = self._tallies[key] = BudgetTally()
            moved = [name for _, name in pods.names(namespace)]
        selector = selector_of((budget.get("spec") or {}).get("selector"))
        for name in moved:
            pod = pods.objects.get((namespace, name))
            selected = pod is not None and selector.matches(pod["metadata"].get("labels") or {})
            tally.set(name, pod if selected else None)
        return tally

    def _write(self, budget: FrozenDict, status: dict[str, Any]) -> None:
        metadata = budget["metadata"]
        key = (metadata["namespace"], metadata["name"])
        self._writing = True  # what we say ourselves is no reason to look again
        try:
            self._state.put(_BUDGETS, key, {**budget, "metadata": dict(metadata), "status": status})
        finally:
            self._writing = False

    def _scale(self, namespace: str, owner: Mapping[str, Any]) -> int | None:
        """How many pods a controller wants, None when it cannot be found."""
        resource = resource_of(str(owner.get("apiVersion")), str(owner.get("kind")), RESOURCES)
        if resource is None or resource not in self._state.collections:
            return None
        found = self._state.find(resource, (namespace, str(owner["name"])))
        if found is None or found["metadata"].get("uid") != owner.get("uid"):
            return None
        replicas = (found.get("spec") or {}).get("replicas", 1 if "scale" in resource.subresources else None)
        return replicas if isinstance(replicas, int) else None
