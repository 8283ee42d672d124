"""A plan of CPU suppression as writes: to the group of best-effort pods, its pods and their containers."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from koordpolicy.agent.plan import BEST_EFFORT, Group, Order, Plan, Write, container_group, pod_group
from koordpolicy.agent.strategies.suppression import Suppression, SuppressionAction
from koordpolicy.agent.strategies.suppression_plan import SuppressionPlan
from koordpolicy.algorithms.container_resources import UNLIMITED
from koordpolicy.algorithms.cpuset import Reach

WRITER: Final = "cpu-suppress"
CPUS_FILE: Final = "cpuset.cpus"
QUOTA_FILE: Final = "cpu.cfs_quota_us"


def suppression_writes(
    decision: Suppression, plan: SuppressionPlan, pods: Mapping[str, Sequence[str]], because: str = ""
) -> Plan:
    """The writes in order; `pods` are the best-effort ones by UID, each with the names of its containers.

    `because` says what else the target follows from, in a phrase.
    """
    reason = f"CPUSuppress: {decision.outcome}"
    if decision.reason:
        reason = f"{reason}, {decision.reason}"
    else:
        reason = f"{reason} to {decision.target}m" + (f", {because}" if because else "")
    writes = [
        Write(CPUS_FILE, group, one.cpus, reason, WRITER)
        for one in plan.cpuset
        for group in _reached(one.reach, pods)
    ]
    if plan.quota is not None:
        # Kernels of version 1 take no share smaller than a child's, which hooks may free in the same round.
        order = Order.AS_LISTED if plan.quota == UNLIMITED else Order.LAST
        writes.append(Write(QUOTA_FILE, BEST_EFFORT, plan.quota, reason, WRITER, order))
    held = decision.outcome is SuppressionAction.SUPPRESS
    return Plan(tuple(writes), notes=() if held or not because else (because,))


def _reached(reach: Reach, pods: Mapping[str, Sequence[str]]) -> Iterator[Group]:
    of_pods = [pod_group(uid) for uid in pods]
    of_containers = [container_group(uid, name) for uid, names in pods.items() for name in names]
    match reach:
        case Reach.TOP_DOWN:
            yield from (BEST_EFFORT, *of_pods, *of_containers)
        case Reach.BOTTOM_UP:
            yield from (*of_containers, *of_pods, BEST_EFFORT)
        case Reach.TOP_DOWN_TO_PODS:
            yield from (BEST_EFFORT, *of_pods)
        case Reach.CONTAINERS_ONLY:
            yield from of_containers
