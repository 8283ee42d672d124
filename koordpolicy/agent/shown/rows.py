"""Rows of metrics: label values in the order of the table, and a number."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from koordpolicy.agent.agent import NodeAgent
from koordpolicy.agent.node_pods import NodePod
from koordpolicy.model.protocol import CPU, MEMORY
from koordpolicy.model.reading import Amounts
from koordpolicy.runtime.counting import Sample

Rows: TypeAlias = Callable[[NodeAgent], Iterable[Sample]]

CORE, BYTE, INTEGER = "core", "byte", "integer"
"""Units of resources, by koordlet's names."""
_MILLI: Final = 1000
_RESOURCES: Final[Mapping[str, tuple[str, int]]] = {CPU: (CORE, _MILLI), MEMORY: (BYTE, 1)}


@dataclass(frozen=True, slots=True)
class ShownRows:
    """The rows of one metric, of an agent; its node is the first label of each. Implements `Counted`."""

    agent: NodeAgent
    rows: Rows

    def samples(self) -> Iterator[Sample]:
        """The rows now."""
        node = self.agent.watch.node
        for labels, number in self.rows(self.agent):
            yield (node, *labels), number


def cpu_and_memory(amounts: Amounts | None, *labels: str) -> Iterator[Sample]:
    """A row for each of the two that is there, told in cores and bytes."""
    for resource, (unit, scale) in _RESOURCES.items():
        if amounts is not None and resource in amounts:
            yield (*labels, resource, unit), amounts[resource] / scale


def container_labels(pod: NodePod, name: str) -> tuple[str, ...]:
    """ID and name of a container, then its pod's."""
    return (pod.identities.get(name, ""), name, *pod_labels(pod))


def pod_labels(pod: NodePod) -> tuple[str, str, str]:
    """UID, name and namespace."""
    return (pod.pod.uid, pod.pod.name, pod.pod.namespace)
