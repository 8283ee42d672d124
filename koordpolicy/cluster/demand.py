"""What the pods on a node take together, and the facts that follow from it.

The ledger is exact, facts stay within int64: see `model.amounts`.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from koordpolicy.cluster.pods import PodView
from koordpolicy.model.amounts import all_within, within
from koordpolicy.model.facts import COUNTED, Record
from koordpolicy.model.facts.node import NodeDemand
from koordpolicy.model.protocol import PODS
from koordpolicy.model.reading import Amounts

_PATHS: Final[Mapping[str, tuple[str, str, str]]] = MappingProxyType(
    {
        resource: (f"requested.{step}", f"nonzeroRequested.{step}", f"free.{step}")
        for step, resource in COUNTED.items()
    }
)
"""The facts about one resource: requested, the same with defaults, and free."""


class Demand:
    """What the pods on a node take, kept up to date pod by pod. `owned` are millicores that pods have alone.

    A pod touches the facts of the resources that it takes, and the number of pods: `touched` gives those,
    `facts` gives all. Amounts that were given are never changed: they stand in rows, which others keep.
    """

    __slots__ = ("_nonzero", "_pods", "_requested", "owned")

    def __init__(self) -> None:
        self._requested: dict[str, int] = {}
        self._nonzero: dict[str, int] = {}
        self._pods = 0
        self.owned = 0

    def copy(self) -> "Demand":
        """The same, to be changed apart."""
        other = Demand()
        other._requested, other._nonzero = self._requested, self._nonzero
        other._pods, other.owned = self._pods, self.owned
        return other

    def count(self, view: PodView, sign: int) -> None:
        """Count what a pod takes, or with sign -1 what it leaves."""
        self._pods += sign
        self._requested = _sum(self._requested, view.occupied, sign, self._pods)
        self._nonzero = _sum(self._nonzero, view.occupied_nonzero, sign, self._pods)
        self.owned += sign * view.owned_cpu

    @property
    def whole(self) -> NodeDemand:
        """All of it, as facts about a whole node want it."""
        return NodeDemand(self._requested, self._nonzero, self._pods)

    def touched(self, view: PodView, allocatable: Amounts) -> Record:
        """The facts that a pod touches that has just been counted."""
        requested, nonzero, pods = all_within(self._requested), all_within(self._nonzero), self._pods
        facts: Record = {"resources.requested": requested, "resources.nonzeroRequested": nonzero}
        for resource, amount in view.occupied.items():
            paths = _PATHS.get(resource)
            if paths is not None and amount:
                facts[paths[0]] = total = requested[resource]
                facts[paths[2]] = within(allocatable.get(resource, 0) - total)
        for resource, amount in view.occupied_nonzero.items():
            paths = _PATHS.get(resource)
            if paths is not None and amount:
                facts[paths[1]] = nonzero[resource]
        facts[_REQUESTED] = facts[_NONZERO] = pods
        facts[_FREE] = allocatable.get(PODS, 0) - pods
        if view.owned_cpu:
            facts["ownedCPU"] = within(self.owned)
        return facts

    def facts(self, allocatable: Amounts) -> Record:
        """All facts that follow from what pods take."""
        requested = {**all_within(self._requested), PODS: self._pods}
        nonzero = {**all_within(self._nonzero), PODS: self._pods}
        facts: Record = {
            "resources.requested": requested,
            "resources.nonzeroRequested": nonzero,
            "ownedCPU": within(self.owned),
        }
        for resource, (path, with_defaults, free) in _PATHS.items():
            facts[path] = total = requested.get(resource, 0)
            facts[with_defaults] = nonzero.get(resource, 0)
            facts[free] = within(allocatable.get(resource, 0) - total)
        return facts


_REQUESTED, _NONZERO, _FREE = _PATHS[PODS]


def _sum(total: Mapping[str, int], part: Amounts, sign: int, pods: int) -> dict[str, int]:
    """Amounts with others added, and the number of pods, which no container asks for."""
    found = {**total}
    for resource, value in part.items():
        found[resource] = found.get(resource, 0) + sign * value
    found[PODS] = pods
    return found
