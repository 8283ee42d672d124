"""The programs outside Kubernetes that policy names for this node, as they are measured and reported."""

from collections.abc import Mapping

from koordpolicy.agent.node_kernel import NodeKernel, NoSuchGroup
from koordpolicy.agent.reports.usage import ApplicationOnHost
from koordpolicy.agent.strategies.host_applications import application_group, host_applications
from koordpolicy.graph import RuleGraph
from koordpolicy.model.facts import Record


class HostApplications:
    """As decided last: `known` of them, and the `groups` of those whose place can be told, by name."""

    def __init__(self, kernel: NodeKernel) -> None:
        self._kernel = kernel
        self.known: tuple[ApplicationOnHost, ...] = ()
        self.groups: Mapping[str, str] = {}

    def decide(self, graph: RuleGraph, record: Record, now: int) -> None:
        """Take what policy says of the node; `now` in nanoseconds since 1970. Raises CelError."""
        known, groups = [], {}
        for one in host_applications(graph, record, now):
            base = "" if one.cgroup_path is None else one.cgroup_path.base or ""
            known.append(ApplicationOnHost(one.name, one.priority, one.qos or "", base))
            try:
                groups[one.name] = self._kernel.target_of(application_group(one), {})
            except NoSuchGroup:
                continue  # the kubelet has not made its groups yet
        self.known, self.groups = tuple(known), groups
