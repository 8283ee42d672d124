"""Disruption budgets as arithmetic: what a PodDisruptionBudget permits over the pods it selects."""

import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from koordpolicy.kube.errors import Cause, Rejected
from koordpolicy.kube.memory.pods import is_ready, with_condition
from koordpolicy.kube.selectors import selector_of
from koordpolicy.model.time import NANOSECONDS, parse_time, time_text

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


@dataclass(frozen=True, slots=True)
class _Member:
    """What a budget has to know of one pod. `controller` is the uid of its controller, "" without one."""

    healthy: bool
    controller: str


class BudgetTally:
    """The pods of one budget, counted. Kept up to date pod by pod, so that counting anew is rarely needed."""

    def __init__(self) -> None:
        self.healthy = 0
        """Pods that are ready and not going."""
        self._controllers: dict[str, Mapping[str, Any]] = {}
        self._members: dict[str, _Member] = {}
        self._sizes: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._members)

    def set(self, name: str, pod: Mapping[str, Any] | None) -> None:
        """Count a pod as it is now; None when the budget does not select it, or it is gone."""
        old = self._members.pop(name, None)
        if old is not None:
            self.healthy -= old.healthy
            self._sizes[old.controller] -= 1
            if not self._sizes[old.controller]:
                del self._sizes[old.controller]
                self._controllers.pop(old.controller, None)
        if pod is not None:
            controller = controller_of(pod)
            uid = "" if controller is None else str(controller["uid"])
            if controller is not None:
                self._controllers[uid] = controller
            healthy = not pod["metadata"].get("deletionTimestamp") and is_ready(pod)
            self._members[name] = _Member(healthy, uid)
            self.healthy += healthy
            self._sizes[uid] += 1

    def is_healthy(self, name: str) -> bool:
        """Whether this pod is among the healthy ones."""
        member = self._members.get(name)
        return member is not None and member.healthy

    def expected(self, scale: Callable[[Mapping[str, Any]], int | None]) -> int:
        """The pods wanted in all: each known controller's scale once, every other pod as it stands."""
        total = 0
        for uid, size in self._sizes.items():
            wanted = scale(self._controllers[uid]) if uid else None
            total += size if wanted is None else wanted
        return total


def budget_status(
    budget: Mapping[str, Any], tally: BudgetTally, scale: Callable[[Mapping[str, Any]], int | None], now: int
) -> dict[str, Any]:
    """The status of a budget over its pods, at `now` (seconds since 1970).

    `scale` says how many pods a controller, named by an owner reference, wants; None when that is unknown.
    """
    old, spec = budget.get("status") or {}, budget.get("spec") or {}
    disrupted = {
        name: since
        for name, since in (old.get("disruptedPods") or {}).items()
        if tally.is_healthy(name) and now < counts_until(since)
    }
    healthy = tally.healthy - len(disrupted)
    counts_pods = spec.get("maxUnavailable") is None and isinstance(spec.get("minAvailable"), int)
    expected = len(tally) if counts_pods else tally.expected(scale)
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


def unhealthy_may_go(budget: Mapping[str, Any], pod: Mapping[str, Any]) -> bool:
    """Whether a pod that is not ready goes without using the budget up."""
    if is_ready(pod):
        return False
    if (budget.get("spec") or {}).get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    status = budget.get("status") or {}
    return bool(status.get("currentHealthy", 0) >= status.get("desiredHealthy", 0) > 0)


def counts_until(granted: str) -> int:
    """When a granted eviction is over; at once when somebody wrote a time that is none."""
    try:
        return parse_time(granted) // NANOSECONDS + _EVICTION_TIMEOUT
    except ValueError:
        return 0


def controller_of(pod: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The owner reference of the pod's controller."""
    owners = pod["metadata"].get("ownerReferences") or ()
    return next((owner for owner in owners if owner.get("controller")), None)


def _share(value: Any, of: int) -> int | None:
    """A count, or a percentage of `of` rounded up; None when it is neither."""
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    if isinstance(value, str) and (match := _PERCENT.fullmatch(value)):
        return -(-int(match[1]) * of // 100)
    return None
