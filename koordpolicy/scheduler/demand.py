"""What the pods on a node take together, and the facts that follow from it."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from koordpolicy.model.facts import COUNTED, Record
from koordpolicy.model.facts_node import NodeDemand
from koordpolicy.model.protocol import PODS
from koordpolicy.model.reading import Amounts
from koordpolicy.scheduler.pods import PodView


class _Paths(NamedTuple):
    """The facts about one resource."""

    requested: str
    nonzero: str
    free: str


_PATHS: Final[Mapping[str, _Paths]] = MappingProxyType(
    {
        resource: _Paths(f"requested.{step}", f"nonzeroRequested.{step}", f"free.{step}")
        for step, resource in COUNTED.items()
    }
)


class Demand:
    """What the pods on a node take, kept up to date pod by pod. `owned` are millicores that pods have alone.

    A pod touches the facts of the resources that it takes, and the number of pods; `came` and `left` give
    those, and `facts` gives all. What they give may be kept: later changes do not reach it.
    """

    __slots__ = ("_nonzero", "_requested", "owned")

    def __init__(self) -> None:
        self._requested: dict[str, int] = {}
        self._nonzero: dict[str, int] = {}
        self.owned = 0

    def copy(self) -> "Demand":
        """The same, to be changed apart."""
        other = Demand()
        other._requested, other._nonzero = dict(self._requested), dict(self._nonzero)
        other.owned = self.owned
        return other

    def count(self, view: PodView, sign: int) -> None:
        """Count what a pod takes, or with sign -1 what it leaves."""
        _add(self._requested, view.occupied, sign)
        _add(self._nonzero, view.occupied_nonzero, sign)
        self.owned += sign * view.owned_cpu

    def of(self, pods: int) -> NodeDemand:
        """What so many pods take, as facts about a whole node want it."""
        return NodeDemand(dict(self._requested), dict(self._nonzero), pods)

    def touched(self, view: PodView, pods: int, allocatable: Amounts) -> Record:
        """The facts that a pod touches that has just been counted. `pods` is how many there are now."""
        requested = {**self._requested, PODS: pods}
        nonzero = {**self._nonzero, PODS: pods}
        facts: Record = {"resources.requested": requested, "resources.nonzeroRequested": nonzero}
        for resource, amount in view.occupied.items():
            if amount and resource in _PATHS:
                path, _, free = _PATHS[resource]
                facts[path] = total = requested[resource]
                facts[free] = allocatable.get(resource, 0) - total
        for resource, amount in view.occupied_nonzero.items():
            if amount and resource in _PATHS:
                facts[_PATHS[resource].nonzero] = nonzero[resource]
        facts[_PODS.requested] = facts[_PODS.nonzero] = pods
        facts[_PODS.free] = allocatable.get(PODS, 0) - pods
        if view.owned_cpu:
            facts["ownedCPU"] = self.owned
        return facts

    def facts(self, pods: int, allocatable: Amounts) -> Record:
        """All facts that follow from the pods' requests."""
        requested = {**self._requested, PODS: pods}
        nonzero = {**self._nonzero, PODS: pods}
        facts: Record = {
            "resources.requested": requested,
            "resources.nonzeroRequested": nonzero,
            "ownedCPU": self.owned,
        }
        for resource, paths in _PATHS.items():
            facts[paths.requested] = total = requested.get(resource, 0)
            facts[paths.nonzero] = nonzero.get(resource, 0)
            facts[paths.free] = allocatable.get(resource, 0) - total
        return facts


_PODS: Final = _PATHS[PODS]


def _add(total: dict[str, int], part: Amounts, sign: int) -> None:
    for resource, value in part.items():
        total[resource] = total.get(resource, 0) + sign * value
