"""What is to be released on a node, for which reason, and who may go for it: tasks of a round of evictions."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from koordpolicy.agent.strategies.evictable import Evictable, PodKey, pod_key, used
from koordpolicy.algorithms.eviction_round import EvictionTask, Target
from koordpolicy.algorithms.release import Thresholds, release_by_requests, release_by_use, used_percent

INVALID = "invalid config"
BELOW = "below threshold"
OFF = "not enabled"
UNMEASURED = "not measured"
RELEASE = "release"


@dataclass(frozen=True, slots=True)
class Need:
    """What one reason calls for. `why` says in a phrase how it ended, with a task or without one.

    `percent` is the whole percentage that is in use, where that decided.
    """

    why: str
    task: EvictionTask[PodKey] | None = None
    percent: int | None = None

    @property
    def release(self) -> Mapping[str, int]:
        """What is to be released, by resource."""
        return MappingProxyType({}) if self.task is None else self.task.release


@dataclass(frozen=True, slots=True)
class Needs:
    """What all reasons of one kind call for, by their names, in the order in which they are worked on."""

    by_reason: Mapping[str, Need] = field(default_factory=dict)

    @property
    def tasks(self) -> list[EvictionTask[PodKey]]:
        """The tasks in order."""
        return [need.task for need in self.by_reason.values() if need.task is not None]


def by_use(
    rules: Evictable, reason: str, section: str, resource: str, use: int | None, thresholds: Thresholds | None
) -> Need:
    """Pods by priority, or all candidates where the section knows no priority, for what a node uses of a resource."""
    if not rules.on(section):
        return Need(OFF)
    highest = None
    if section != "bestEffort":
        highest = rules.about().value(f"{section}.highestPriority")
        if highest is None:
            return Need(INVALID)
    if thresholds is None or not thresholds.valid:
        return Need(INVALID)
    capacity = int(rules.node["resources.capacity"].get(resource, 0))
    if use is None or capacity <= 0:
        return Need(UNMEASURED)
    percent = used_percent(use, capacity)
    amount = release_by_use(use, capacity, thresholds)
    if amount <= 0:
        return Need(BELOW, percent=percent)
    pods = rules.candidates(section, highest_priority=highest)
    if highest is not None:
        pods = [pod for pod in pods if f"usage.{resource}" in pod]
    keys = [pod_key(pod) for pod in pods]
    task = EvictionTask(reason, Target.USED, {resource: amount}, keys, used(pods, resource))
    return Need(RELEASE, task, percent)


def by_requests(rules: Evictable, reason: str, resource: str) -> Need:
    """Pods by priority, where more is requested of a resource than the node offers."""
    section = "byRequests"
    if not rules.on(section):
        return Need(OFF)
    about = rules.about()
    highest, threshold, lower = (
        about.value(f"{section}.{name}") for name in ("highestPriority", "threshold", "lower")
    )
    if highest is None or threshold is None or lower is None:
        return Need(INVALID)
    thresholds = Thresholds(threshold, lower)
    if not thresholds.valid or not rules.spares_guaranteed(highest):
        return Need(INVALID)
    requested, each = rules.requests_up_to(highest, resource)
    release = release_by_requests(requested, rules.node["resources.allocatable"], thresholds)
    if not release:
        return Need(BELOW)
    pods = [pod for pod in rules.candidates(section, highest_priority=highest) if f"usage.{resource}" in pod]
    keys = [pod_key(pod) for pod in pods]
    amounts = {key: amount for key, amount in each.items() if any(name in release for name in amount)}
    return Need(RELEASE, EvictionTask(reason, Target.REQUEST, release, keys, amounts))
