"""Requests for devices in the words that the scheduler knows, by the DeviceSharing of a revision."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from koordpolicy.algorithms.device_request import asks_for, expand, is_requested, with_amounts
from koordpolicy.graph import About, RuleGraph
from koordpolicy.graph.keys import mapping_keys
from koordpolicy.model.facts.pod import container_facts
from koordpolicy.model.facts.pod_spec import container_spec_facts
from koordpolicy.model.pod import read_pod
from koordpolicy.model.reading import Json, mapping, objects

KIND: Final = "DeviceSharing"
_EXPAND: Final = "requests.expand"
_DERIVE: Final = "requests.derive"


@dataclass(frozen=True, slots=True)
class DeviceRequests:
    """One sort of devices: the resources by which it is known, and those that have rules."""

    name: str
    resources: frozenset[str]
    expanded: tuple[str, ...]
    derived: tuple[str, ...]

    def rewritten(self, pod: Json, about: About) -> Json:
        """The pod, its regular containers asking in other words. Raises ObjectError, `CelError`."""
        spec = mapping(pod, "spec")
        before = list(objects(spec, "containers", "spec"))
        concerned = [at for at, one in enumerate(before) if asks_for(one, self.resources, _place(at))]
        if not concerned or not about.value("requests.enabled"):
            return pod
        names = {key: about.value(f"{_EXPAND}[{key}]") or () for key in self.expanded}
        after = list(before)
        for at in concerned:
            after[at] = expand(before[at], names, _place(at))
        known = read_pod({**pod, "spec": {**spec, "containers": after}}).containers
        for at in concerned:
            asked = [key for key in self.derived if not is_requested(before[at], key, _place(at))]
            container = {
                **container_facts(known[at], init=False),
                **container_spec_facts(before[at], _place(at)),
            }
            amounts = {key: about.value(f"{_DERIVE}[{key}]", container=container) for key in asked}
            after[at] = with_amounts(
                after[at], {key: number for key, number in amounts.items() if number is not None}, _place(at)
            )
        return {**pod, "spec": {**spec, "containers": after}}


class Devices:
    """All sorts of devices of a revision, in order of name. Immutable."""

    def __init__(self, graph: RuleGraph) -> None:
        keys = mapping_keys(graph, KIND)
        self._graph = graph
        self._sorts = tuple(
            DeviceRequests(
                name,
                frozenset(graph.about(KIND, name).value("requests.resources")),
                keys.get((name, _EXPAND), ()),
                keys.get((name, _DERIVE), ()),
            )
            for name in graph.subjects(KIND)
        )

    @property
    def resources(self) -> frozenset[str]:
        """The resources by which a pod is known to ask for any."""
        return frozenset().union(*(one.resources for one in self._sorts))

    def rewritten(self, pod: Json, roots: Mapping[str, Any]) -> Json:
        """The pod as it asks for devices then; the same where it asks for none.

        `roots` are the records of the pod as submitted. Raises ObjectError, `CelError`.
        """
        asked = _asked(pod)
        for one in self._sorts:
            if not one.resources.isdisjoint(asked):
                pod = one.rewritten(pod, self._graph.about(KIND, one.name, roots))
                asked = _asked(pod)
        return pod


def devices(graph: RuleGraph) -> Devices:
    """The sorts of devices of a revision."""
    return graph.once(Devices, lambda: Devices(graph))


def _asked(pod: Json) -> set[str]:
    """The resources that regular containers of a pod name. Raises ObjectError."""
    asked: set[str] = set()
    for at, one in enumerate(objects(mapping(pod, "spec"), "containers", "spec")):
        resources, place = mapping(one, "resources", _place(at)), f"{_place(at)}.resources"
        asked.update(mapping(resources, "requests", place), mapping(resources, "limits", place))
    return asked


def _place(at: int) -> str:
    return f"spec.containers[{at}]"
