"""What a pod asks for that this scheduler does not see to yet. Such a pod is placed, and told what it was placed without.

It is not kept back, as in `unsupported`: these are labels, annotations and amounts of Koordinator, which every scheduler but
Koordinator's own passes over.
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from koordpolicy.graph import RuleGraph
from koordpolicy.model.pod import Pod
from koordpolicy.model.protocol import (
    DEPRECATED_SCHEDULING_HINT,
    FPGA,
    GANG_NAME,
    GPU,
    NUMA_TOPOLOGY_SPEC,
    POD_GROUP,
    POD_GROUP_NAME,
    QOS_CLASS,
    RDMA,
    RESOURCE_SPEC,
    SCHEDULING_HINT,
)
from koordpolicy.model.scheduling_hint import not_followed

_HINT: Final = "its hint"
_GANG: Final = "a place together with its gang"
_LABELS: Final = (
    (POD_GROUP, _GANG),
    (POD_GROUP_NAME, _GANG),
)
_ANNOTATIONS: Final = (
    (GANG_NAME, _GANG),
    (NUMA_TOPOLOGY_SPEC, "its NUMA topology"),
    (RESOURCE_SPEC, "its way of binding CPUs"),
    (SCHEDULING_HINT, _HINT),
    (DEPRECATED_SCHEDULING_HINT, _HINT),
)
_OF_CPUS: Final = frozenset({NUMA_TOPOLOGY_SPEC, RESOURCE_SPEC})
_KEYS: Final = frozenset(key for key, _ in (*_LABELS, *_ANNOTATIONS)) | {QOS_CLASS}
_DEVICES: Final = (GPU, RDMA, FPGA)
"""How names of resources begin that stand for devices, which have to be allocated."""
_OWN: Final = frozenset(("Exclusive", "Bound"))
"""Bindings of CPUs for which CPUs have to be allocated."""


@lru_cache(maxsize=256)
def _devices_among(names: frozenset[str]) -> tuple[str, ...]:
    return tuple(name for name in sorted(names) if name.startswith(_DEVICES))


def not_enforced(
    pod: Pod, graph: RuleGraph, *, gangs: bool = False, devices: bool = False, cpus: bool = False
) -> tuple[str, ...]:
    """What a pod is placed without, in phrases that name where it asks for it. `gangs` says that gangs are kept together,
    `devices` that it was given devices, `cpus` that it was given CPUs or NUMA zones.
    """
    said: tuple[str, ...] = ()
    if not devices:
        asked = frozenset().union(*[one.requests for one in (*pod.containers, *pod.init_containers)])
        said = tuple([f"devices of its own ({name})" for name in _devices_among(asked)])
    if _KEYS.isdisjoint(pod.labels) and _KEYS.isdisjoint(pod.annotations):
        return said  # as of most pods
    return (*_of_metadata(pod, gangs=gangs, cpus=cpus), *said, *(() if cpus else _of_class(pod, graph)))


def _of_metadata(pod: Pod, *, gangs: bool, cpus: bool) -> Iterator[str]:
    for key, what in _LABELS:
        if pod.labels.get(key) and not (gangs and what is _GANG):
            yield f"{what} (label {key})"
    for key, what in _ANNOTATIONS:
        if what is _HINT and not not_followed(pod.annotations):
            continue
        if pod.annotations.get(key) and not (gangs and what is _GANG) and not (cpus and key in _OF_CPUS):
            yield f"{what} (annotation {key})"


def _of_class(pod: Pod, graph: RuleGraph) -> Iterator[str]:
    label = pod.labels.get(QOS_CLASS)
    for name, said in graph.classes.qos.items() if label else ():
        if said.get("value", name) == label and said.get("cpuBinding") in _OWN:
            yield f"CPUs of its own (label {QOS_CLASS}={label})"
