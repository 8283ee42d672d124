"""The NodeResourceTopology of a node: its CPUs, the pools that pods share, and its NUMA zones, as Koordinator's scheduler
and manager read them.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from koordpolicy.agent.reports.kubelet_settings import KubeletSettings
from koordpolicy.algorithms.cpu_pools import CPUPools
from koordpolicy.kube.port import Object
from koordpolicy.linux.readings.cpu_info import CPUFacts
from koordpolicy.model.cpuset import cpuset_text
from koordpolicy.model.numa import ZONE_TYPE, is_zone
from koordpolicy.model.protocol import (
    BE_CPU_SHARED_POOLS,
    CPU,
    CPU_BASIC_INFO,
    CPU_SHARED_POOLS,
    CPU_TOPOLOGY,
    KUBELET_CPU_MANAGER_POLICY,
    MEMORY,
    POD_CPU_ALLOCS,
    TOPOLOGY_API,
)
from koordpolicy.model.reading import ObjectError, mapping, objects, text
from koordpolicy.model.topology import Processor

_OWN: Final = (CPU, MEMORY)
"""The resources of zones that the agent tells of; others, such as batch resources, are the manager's."""


@dataclass(frozen=True, slots=True)
class GivenCPUs:
    """The CPUs that the kubelet has given to a pod by itself; who it is, where that is known."""

    uid: str
    cpus: frozenset[int]
    namespace: str = ""
    name: str = ""


@dataclass(frozen=True, slots=True)
class NodeLayout:
    """What a topology is made of. `memory` is in bytes by NUMA node, `given` what pods have of the kubelet."""

    processors: Sequence[Processor]
    pools: CPUPools
    facts: CPUFacts
    memory: Mapping[int, int]
    kubelet: KubeletSettings
    given: Sequence[GivenCPUs] = field(default_factory=tuple)


def topology_of(node: Object, layout: NodeLayout, standing: Object | None) -> dict[str, Any]:
    """The object that says all that; of one that is `standing` everything stays that is none of the agent's.

    Raises ObjectError for one that cannot be read.
    """
    kept = {} if standing is None else dict(standing)
    metadata = dict(mapping(kept, "metadata"))
    name = text(mapping(node, "metadata"), "name", "metadata")
    annotations = dict(mapping(metadata, "annotations", "metadata"))
    for key, said in _annotations(layout).items():
        absent = not said and key not in annotations
        if not absent and not _same(annotations.get(key), said):
            annotations[key] = json.dumps(said)
    metadata |= {"name": name, "annotations": annotations}
    if standing is None:
        metadata["ownerReferences"] = [
            {
                "apiVersion": "v1",
                "kind": "Node",
                "name": name,
                "uid": text(mapping(node, "metadata"), "uid", "metadata"),
            }
        ]
    return {
        **kept,
        "apiVersion": TOPOLOGY_API,
        "kind": "NodeResourceTopology",
        "metadata": metadata,
        "topologyPolicies": [layout.kubelet.topology_policy],
        "zones": _zones(layout, kept),
    }


def _annotations(layout: NodeLayout) -> dict[str, Any]:
    facts, kubelet = layout.facts, layout.kubelet
    detail = [
        {"id": one.cpu, "core": one.core, "socket": one.socket, "node": one.node} for one in layout.processors
    ]
    return {
        CPU_BASIC_INFO: {
            "cpuModel": facts.model,
            "hyperThreadEnabled": facts.hyper_threading,
            "turboEnabled": facts.turbo,
            "catL3CbmMask": facts.cache_mask,
            "vendorID": facts.vendor,
        },
        CPU_TOPOLOGY: {"detail": detail},
        CPU_SHARED_POOLS: _pools(layout, layout.pools.shared),
        BE_CPU_SHARED_POOLS: _pools(layout, layout.pools.best_effort),
        POD_CPU_ALLOCS: [_given(one) for one in sorted(layout.given, key=lambda one: one.uid)],
        KUBELET_CPU_MANAGER_POLICY: {
            "policy": kubelet.cpu_manager,
            **({"options": dict(kubelet.cpu_manager_options)} if kubelet.cpu_manager_options else {}),
            **({"reservedCPUs": kubelet.reserved_cpus} if kubelet.reserved_cpus else {}),
        },
    }


def _given(one: GivenCPUs) -> dict[str, Any]:
    who = {key: said for key, said in (("namespace", one.namespace), ("name", one.name)) if said}
    return {**who, "uid": one.uid, "cpuset": cpuset_text(one.cpus), "managedByKubelet": True}


def _pools(layout: NodeLayout, pools: Mapping[int, str]) -> list[dict[str, Any]]:
    """Pools by socket and NUMA node; one that has no CPUs is told of as well."""
    sockets = {one.node: one.socket for one in reversed(layout.processors)}
    found = [
        {"socket": sockets.get(node, 0), "node": node, "cpuset": cpus} for node, cpus in sorted(pools.items())
    ]
    return sorted(found, key=lambda one: (one["socket"], one["node"]))


def _zones(layout: NodeLayout, standing: Object) -> list[dict[str, Any]]:
    others: dict[str, Mapping[str, Any]] = {}
    foreign: list[Mapping[str, Any]] = []
    for zone in objects(standing, "zones"):
        if is_zone(zone):
            others[text(zone, "name", "zones")] = zone
        else:
            foreign.append(zone)
    cpus: dict[int, int] = {}
    for one in layout.processors:
        cpus[one.node] = cpus.get(one.node, 0) + 1
    zones = []
    for node in sorted(cpus):
        name = f"node-{node}"
        before = others.get(name, {})
        kept = [one for one in objects(before, "resources", name) if one.get("name") not in _OWN]
        amounts = {CPU: str(cpus[node]), MEMORY: str(layout.memory.get(node, 0))}
        own = [
            {"name": key, "capacity": amount, "allocatable": amount, "available": amount}
            for key, amount in amounts.items()
        ]
        zones.append({**before, "name": name, "type": ZONE_TYPE, "resources": [*own, *map(dict, kept)]})
    return [*zones, *map(dict, foreign)]


def _same(source: Any, said: Any) -> bool:
    try:
        return bool(json.loads(source) == said)
    except (TypeError, ValueError, RecursionError):
        return False


def says(standing: Object | None, wanted: Object) -> bool:
    """Whether an object says all that is wanted already."""
    if standing is None:
        return False
    try:
        annotations = mapping(mapping(standing, "metadata"), "annotations", "metadata")
    except ObjectError:
        return False
    same = dict(annotations) == wanted["metadata"]["annotations"]
    return same and all(bool(standing.get(key) == wanted[key]) for key in ("topologyPolicies", "zones"))
