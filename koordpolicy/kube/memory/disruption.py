"""Disruption budgets: what a PodDisruptionBudget permits, as arithmetic, and its status in the cluster.

The part of the disruption controller. A budget's status is brought up to date when someone may look at
it: before it is read, before an eviction, and after a write while somebody watches budgets.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from koordpolicy.kube import resources
from koordpolicy.kube.errors import Cause, Forbidden, KubeError, Rejected, TooManyRequests
from koordpolicy.kube.frozen import FrozenDict
from koordpolicy.kube.memory.collection import Key
from koordpolicy.kube.memory.pods import is_ready, with_condition
from koordpolicy.kube.memory.state import State
from koordpolicy.kube.memory.watch import Selection
from koordpolicy.kube.resources import RESOURCES, Resource, resource_of
from koordpolicy.kube.selectors import FieldSelector, selector_of
from koordpolicy.model.protocol import PHASE_FAILED, PHASE_PENDING, PHASE_SUCCEEDED
from koordpolicy.model.time import NANOSECONDS, parse_time, time_text

_BUDGETS: Final = resources.POD_DISRUPTION_BUDGETS
_EVICTION_TIMEOUT: Final = 120
"""Seconds after which a pod that an eviction was granted for counts again, when it did not go."""

_PERCENT: Final = re.compile(r"([0-9]{1,9})%", re.ASCII)


def check_budget(draft: Mapping[str, Any]) -> list[Cause]:
    """What is wrong with a budget's spec."""
    spec = draft.get("spec") or {}
    causes = [
        Cause(f"spec.{field}", f"`{spec[field]}` is neither a count nor a percentage such as `50%`")
        for field in ("minAvailable", "maxUnavailable")
        if spec.get(field) is not None and _share(spec[field], 0) is None
    ]
    if spec.get("minAvailable") is not None and spec.get("maxUnavailable") is not None:
        causes.append(Cause("spec", "`minAvailable` and `maxUnavailable` exclude each other"))
    try:
        selector_of(spec.get("selector"))
    except Rejected as error:
        causes.append(Cause("spec.selector", error.message))
    return causes


def desired_healthy(spec: Mapping[str, Any], expected: int) -> int:
    """How many of the `expected` pods must stay healthy. Percentages round up, for either field."""
    if spec.get("maxUnavailable") is not None:
        return max(0, expected - (_share(spec["maxUnavailable"], expected) or 0))
    if spec.get("minAvailable") is not None:
        return _share(spec["minAvailable"], expected) or 0
    return 0


def budget_status(
    budget: Mapping[str, Any],
    pods: Sequence[Mapping[str, Any]],
    scale: Callable[[Mapping[str, Any]], int | None],
    now: int,
) -> dict[str, Any]:
    """The status of a budget over its pods, at `now` (seconds since 1970).

    `scale` says how many pods a pod's controller wants, None when that is unknown; those pods, and pods
    without controller, count as wanted as they stand.
    """
    old, spec = budget.get("status") or {}, budget.get("spec") or {}
    by_name = {pod["metadata"]["name"]: pod for pod in pods}
    disrupted = {
        name: since
        for name, since in (old.get("disruptedPods") or {}).items()
        if name in by_name
        and not by_name[name]["metadata"].get("deletionTimestamp")
        and now < _counts_until(since)
    }
    healthy = sum(
        not pod["metadata"].get("deletionTimestamp")
        and pod["metadata"]["name"] not in disrupted
        and is_ready(pod)
        for pod in pods
    )
    counts_pods = spec.get("maxUnavailable") is None and isinstance(spec.get("minAvailable"), int)
    expected = len(pods) if counts_pods else _expected(pods, scale)
    desired = desired_healthy(spec, expected)
    allowed = max(0, healthy - desired) if expected > 0 else 0
    status: dict[str, Any] = {
        **old,
        "observedGeneration": budget["metadata"].get("generation", 0),
        "currentHealthy": healthy,
        "desiredHealthy": desired,
        "expectedPods": expected,
        "disruptionsAllowed": allowed,
    }
    if disrupted:
        status["disruptedPods"] = disrupted
    else:
        status.pop("disruptedPods", None)
    condition = {
        "type": "DisruptionAllowed",
        "status": "True" if allowed else "False",
        "reason": "SufficientPods" if allowed else "InsufficientPods",
        "message": "",
        "observedGeneration": status["observedGeneration"],
    }
    return with_condition(status, condition, time_text(now * NANOSECONDS))


class Budgets:
    """The budgets of a cluster. Observes every write, and notes which namespaces need another look."""

    def __init__(self, state: State, now: Callable[[], int]) -> None:
        self._state = state
        self._now = now
        self._in: dict[str, int] = {}
        self._stale: dict[str, None] = {}
        self._recheck: dict[str, int] = {}

    def changed(self, resource: Resource, key: Key, old: FrozenDict | None, new: FrozenDict | None) -> None:
        namespace = key[0]
        if resource == _BUDGETS:
            self._in[namespace] = self._in.get(namespace, 0) + (old is None) - (new is None)
            if old is not None and new is not None and old.get("spec") is new.get("spec"):
                return
        if self._in.get(namespace) and (
            resource in (_BUDGETS, resources.PODS) or "scale" in resource.subresources
        ):
            self._stale[namespace] = None

    def settle(self) -> None:
        """Bring the status of every budget up to date."""
        for namespace in [namespace for namespace, due in self._recheck.items() if due <= self._now()]:
            del self._recheck[namespace]
            self._stale[namespace] = None
        while self._stale:
            namespace, _ = self._stale.popitem()
            for key in self._state.collection(_BUDGETS).names(namespace):
                self._refresh(key)

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
        if not budgets or _unhealthy_may_go(budgets[0], pod):
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

    def _refresh(self, key: Key) -> None:
        budget = self._state.get(_BUDGETS, key)
        selector = selector_of((budget.get("spec") or {}).get("selector"))
        pods = self._state.collection(resources.PODS).select(Selection(key[0], selector, FieldSelector()))
        status = budget_status(budget, pods, self._scale, self._now())
        for since in (status.get("disruptedPods") or {}).values():
            due = _counts_until(since)
            self._recheck[key[0]] = min(due, self._recheck.get(key[0], due))
        if status != budget.get("status"):
            self._write(budget, status)

    def _write(self, budget: FrozenDict, status: dict[str, Any]) -> None:
        metadata = budget["metadata"]
        key = (metadata["namespace"], metadata["name"])
        self._state.put(_BUDGETS, key, {**budget, "metadata": dict(metadata), "status": status})

    def _scale(self, pod: Mapping[str, Any]) -> int | None:
        owner = _controller(pod) or {}
        resource = resource_of(str(owner.get("apiVersion")), str(owner.get("kind")), RESOURCES)
        if resource is None or resource not in self._state.collections:
            return None
        found = self._state.find(resource, (pod["metadata"]["namespace"], str(owner["name"])))
        if found is None or found["metadata"].get("uid") != owner.get("uid"):
            return None
        replicas = (found.get("spec") or {}).get("replicas", 1 if "scale" in resource.subresources else None)
        return replicas if isinstance(replicas, int) else None


def _expected(pods: Sequence[Mapping[str, Any]], scale: Callable[[Mapping[str, Any]], int | None]) -> int:
    """The pods wanted in all: each known controller's scale once, every other pod as one."""
    wanted: dict[str, int] = {}
    for pod in pods:
        controller = _controller(pod)
        count = scale(pod) if controller else None
        if controller is None or count is None:
            wanted[f"pod {pod['metadata']['name']}"] = 1
        else:
            wanted[str(controller["uid"])] = count
    return sum(wanted.values())


def _controller(pod: Mapping[str, Any]) -> Mapping[str, Any] | None:
    owners = pod["metadata"].get("ownerReferences") or ()
    return next((owner for owner in owners if owner.get("controller")), None)


def _unhealthy_may_go(budget: Mapping[str, Any], pod: Mapping[str, Any]) -> bool:
    """Whether a pod that is not ready goes without using the budget up."""
    if is_ready(pod):
        return False
    if (budget.get("spec") or {}).get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    status = budget.get("status") or {}
    return bool(status.get("currentHealthy", 0) >= status.get("desiredHealthy", 0) > 0)


def _counts_until(granted: str) -> int:
    """When a granted eviction is over; at once when somebody wrote a time that is none."""
    try:
        return parse_time(granted) // NANOSECONDS + _EVICTION_TIMEOUT
    except ValueError:
        return 0


def _share(value: Any, of: int) -> int | None:
    """A count, or a percentage of `of` rounded up; None when it is neither."""
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    if isinstance(value, str) and (match := _PERCENT.fullmatch(value)):
        return -(-int(match[1]) * of // 100)
    return None
