"""NodeSLO objects, one a node: what policies say of the node, in the words of koordlets that know no policies."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from koordpolicy.algorithms.node_record import node_record
from koordpolicy.cluster.objects import ClusterObjects
from koordpolicy.graph import RuleGraph
from koordpolicy.graph.exchange.rendering import strategy_of
from koordpolicy.kube import resources
from koordpolicy.kube.port import Cluster, Object
from koordpolicy.language.cel.errors import CelError
from koordpolicy.language.facts import TIMES
from koordpolicy.manager.controllers.controller import Choose
from koordpolicy.manager.controllers.node_object import difference, remove_after_node, write_spec
from koordpolicy.model.node import network_bandwidth
from koordpolicy.model.reading import ObjectError
from koordpolicy.model.slo_config import BURST, HOST_APPLICATIONS, QOS, SYSTEM, THRESHOLD

SECTIONS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "resourceUsedThresholdWithBE": THRESHOLD,
        "resourceQOSStrategy": QOS,
        "cpuBurstStrategy": BURST,
        "systemStrategy": SYSTEM,
    }
)
"""The sections of a NodeSLO object, and the documents of `slo-controller-config` that say the same."""

APPLICATIONS: Final = "hostApplications"

_NETWORK: Final = "networkQOS"
_BY_SERVER: Final[Mapping[str, int]] = MappingProxyType(
    {"ingressRequest": 0, "ingressLimit": 100, "egressRequest": 0, "egressLimit": 100}
)
"""What the API server puts into each `networkQOS` that does not say it."""


@dataclass(frozen=True, slots=True)
class SLOPlan:
    """What is to become of a node's NodeSLO object; `problems` are phrases about what could not be told.

    `patch` is None where there is no such object yet, which then gets `spec`. An empty patch writes nothing.
    """

    node: str
    spec: Mapping[str, Any]
    patch: Mapping[str, Any] | None
    problems: tuple[str, ...] = ()


Told = Callable[[RuleGraph, SLOPlan], None]
"""Told of every plan, with the graph that was asked."""


def _untold(graph: RuleGraph, plan: SLOPlan) -> None:
    """Nobody listens."""


@dataclass(frozen=True, slots=True)
class NodeSLOController:
    """Keeps the NodeSLO objects of all nodes, `known` by name, as the graph that `policies` gives for a node says.

    `now` is nanoseconds since 1970. What a section of an object holds stays where policies fail; `extensions` always do.
    """

    policies: Choose
    objects: ClusterObjects
    known: Callable[[str], Object | None]
    now: Callable[[], int]
    told: Told = _untold

    def decide(self, name: str) -> SLOPlan | None:
        """What is to be written for a node; None when there is no such node, or none that can be read."""
        sight = self.objects.sight(name)
        if sight is None:
            return None
        graph, now = self.policies(name, sight.node.labels), self.now()
        roots = {
            "node": node_record(sight, graph.catalogue, TIMES, now),
            "now": TIMES.timestamp(now),
        }
        existing = self.known(name)
        before: Mapping[str, Any] = {} if existing is None else existing.get("spec") or {}
        spec = dict(before)
        problems: list[str] = []
        for section, document in SECTIONS.items():
            try:
                spec[section] = strategy_of(graph, document, roots)
            except CelError as error:
                problems.append(f"{section}: {error}")
        try:
            network_bandwidth(sight.node.annotations)
        except ObjectError as error:
            problems.append(str(error))
            spec.pop("systemStrategy", None)  # as Koordinator does: such a node is not tuned
        self._put_applications(spec, graph, roots, problems)
        patch = None if existing is None else difference(_as_stored(before, spec), spec)
        plan = SLOPlan(name, spec, patch, tuple(problems))
        self.told(graph, plan)
        return plan

    @staticmethod
    def _put_applications(
        spec: dict[str, Any], graph: RuleGraph, roots: Mapping[str, Any], problems: list[str]
    ) -> None:
        try:
            applications = strategy_of(graph, HOST_APPLICATIONS, roots)["applications"]
        except CelError as error:
            problems.append(f"{APPLICATIONS}: {error}")
            return
        if applications:
            spec[APPLICATIONS] = applications
        else:
            spec.pop(APPLICATIONS, None)

    async def reconcile(self, cluster: Cluster, name: str) -> bool:
        """Write what differs, take away the object of a node that is gone; whether anything was written.

        Raises KubeError.
        """
        plan = self.decide(name)
        if plan is None:
            return self.known(name) is not None and await remove_after_node(
                cluster, resources.NODE_SLOS, name
            )
        return await write_spec(cluster, resources.NODE_SLOS, name, plan.spec, plan.patch)


def _as_stored(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """`old` without what the API server has put in by itself and `new` does not say."""
    result: dict[str, Any] = {}
    for key, value in old.items():
        beside = new.get(key)
        if not isinstance(value, Mapping) or not isinstance(beside, Mapping):
            result[key] = value
        elif key == _NETWORK:
            result[key] = {
                name: one
                for name, one in value.items()
                if name in beside or name not in _BY_SERVER or one != _BY_SERVER[name]
            }
        else:
            result[key] = _as_stored(value, beside)
    return result
