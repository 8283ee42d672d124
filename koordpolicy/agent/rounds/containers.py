"""Rounds of container hooks: what each pod and container gets, and what its quota is before any burst."""

from collections.abc import Mapping

from koordpolicy.agent.frame import NodeFrame
from koordpolicy.agent.hooks.container_writes import container_writes
from koordpolicy.agent.hooks.containers import HookedNumbers, numbers_by_writer
from koordpolicy.agent.measurements.levels import ContainerKey
from koordpolicy.agent.plan import Plan, joined
from koordpolicy.algorithms.cpu_pools import CPUPools


class ContainerRounds:
    """Keeps the quotas that hooks gave to containers in the last round; -1 is without limit."""

    def __init__(self) -> None:
        self.quotas: Mapping[ContainerKey, int] = {}

    def plan(self, frame: NodeFrame, pools: CPUPools) -> Plan:
        """What is written for all pods."""
        quotas: dict[ContainerKey, int] = {}
        plans = []
        for uid, one in frame.pods.items():
            hooked = numbers_by_writer(frame.graph, one.pod, frame.record, frame.now)
            quotas |= _quotas(uid, hooked)
            plans.append(container_writes(one.pod, hooked, pools))
        self.quotas = quotas
        return joined(plans)


def _quotas(uid: str, hooked: HookedNumbers) -> dict[ContainerKey, int]:
    return {
        ContainerKey(uid, name): one.quota
        for name, one in hooked.whole.containers.items()
        if one.quota is not None
    }
