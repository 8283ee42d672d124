"""What a node itself says to a pod: names, labels, taints, ports, resources."""

from collections.abc import Iterator, Mapping
from typing import Any

from tests.differential_scheduling.case import Object, name_of
from tests.differential_scheduling.oracle.cluster import Cluster, amount, labels_of, node_selector_matches

_ANY_ADDRESS = "0.0.0.0"  # noqa: S104  # said by pods, not bound by us

Reasons = list[tuple[str, bool]]
"""Why not; and whether fewer pods on the node might help."""


def unschedulable(pod: Object, node: Object) -> Reasons:
    if node["spec"].get("unschedulable"):
        taint = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
        if not tolerated(pod, taint):
            return [("node(s) were unschedulable", False)]
    return []


def tolerated(pod: Object, taint: Mapping[str, Any]) -> bool:
    for one in pod["spec"].get("tolerations") or ():
        if one.get("effect") and one["effect"] != taint["effect"]:
            continue
        if one.get("key") and one["key"] != taint["key"]:
            continue
        if one.get("operator") == "Exists" or (
            one.get("key") and one.get("value", "") == taint.get("value", "")
        ):
            return True
    return False


def taints_tolerated(pod: Object, node: Object) -> bool:
    return all(
        tolerated(pod, taint)
        for taint in node["spec"].get("taints") or ()
        if taint["effect"] in ("NoSchedule", "NoExecute")
    )


def taints(pod: Object, node: Object) -> Reasons:
    return [] if taints_tolerated(pod, node) else [("node(s) had untolerated taint(s)", False)]


def affine(pod: Object, node: Object) -> bool:
    """Whether the pod's node selector and required node affinity match."""
    wanted = pod["spec"].get("nodeSelector") or {}
    if any(labels_of(node).get(key) != value for key, value in wanted.items()):
        return False
    affinity = (pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    return required is None or node_selector_matches(required, node)


def affinity(pod: Object, node: Object) -> Reasons:
    return [] if affine(pod, node) else [("node(s) didn't match Pod's node affinity/selector", False)]


def only_these(pod: Object) -> set[str] | None:
    """The nodes that the pod names in all terms of its required node affinity; None where it does not."""
    affinity = (pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    if not required or not required.get("nodeSelectorTerms"):
        return None
    found: set[str] = set()
    for term in required["nodeSelectorTerms"]:
        named = [set(one["values"]) for one in term.get("matchFields") or () if one["operator"] == "In"]
        if not named:
            return None
        found |= set.intersection(*named)
    return found


def _ports(pod: Object) -> set[tuple[str, str, int]]:
    spec = pod["spec"]
    sidecars = [one for one in spec.get("initContainers") or () if one.get("restartPolicy") == "Always"]
    return {
        (port.get("hostIP") or _ANY_ADDRESS, port.get("protocol") or "TCP", port["hostPort"])
        for container in [*spec["containers"], *sidecars]
        for port in container.get("ports") or ()
        if port.get("hostPort")
    }


def ports(pod: Object, node: Object, cluster: Cluster) -> Reasons:
    taken = {port for other in cluster.pods_on(name_of(node)) for port in _ports(other)}
    for address, protocol, number in _ports(pod):
        for other, other_protocol, other_number in taken:
            if (protocol, number) == (other_protocol, other_number) and (
                address == other or _ANY_ADDRESS in (address, other)
            ):
                return [("node(s) didn't have free ports for the requested pod ports", True)]
    return []


def requests(pod: Object) -> dict[str, int]:
    """What a pod asks for in effect."""
    spec = pod["spec"]

    def of(container: Mapping[str, Any]) -> dict[str, int]:
        written = (container.get("resources") or {}).get("requests") or {}
        return {name: amount(name, text) for name, text in written.items()}

    running: dict[str, int] = {}
    starting: dict[str, int] = {}
    for container in spec.get("initContainers") or ():
        mine = of(container)
        if container.get("restartPolicy") == "Always":
            _add(running, mine)
            mine = {}
        for name in {*mine, *running}:
            starting[name] = max(starting.get(name, 0), mine.get(name, 0) + running.get(name, 0))
    for container in spec["containers"]:
        _add(running, of(container))
    total = {name: max(running.get(name, 0), starting.get(name, 0)) for name in {*running, *starting}}
    for name, text in ((spec.get("resources") or {}).get("requests") or {}).items():
        if name in ("cpu", "memory") or name.startswith("hugepages-"):
            total[name] = amount(name, text)
    _add(total, {name: amount(name, text) for name, text in (spec.get("overhead") or {}).items()})
    return total


def _add(to: dict[str, int], more: Mapping[str, int]) -> None:
    for name, number in more.items():
        to[name] = to.get(name, 0) + number


def resources(pod: Object, node: Object, cluster: Cluster) -> Reasons:
    there = {name: amount(name, text) for name, text in (node["status"].get("allocatable") or {}).items()}
    others = cluster.pods_on(name_of(node))
    found: Reasons = []
    if len(others) + 1 > there.get("pods", 0):
        found.append(("Too many pods", True))
    taken: dict[str, int] = {}
    for other in others:
        _add(taken, requests(other))
    for name, asked in _in_order(requests(pod)):
        if asked and asked > there.get(name, 0) - taken.get(name, 0):
            found.append((f"Insufficient {name}", asked <= there.get(name, 0)))
    return found


def _in_order(asked: Mapping[str, int]) -> Iterator[tuple[str, int]]:
    first = [name for name in ("cpu", "memory", "ephemeral-storage") if name in asked]
    yield from ((name, asked[name]) for name in [*first, *sorted(set(asked) - set(first))])
