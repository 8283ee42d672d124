"""The pods of the node with what only the node knows: their control groups and the containers that run."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from koordpolicy.kube.port import Object
from koordpolicy.linux.cgroups.kubepods import Kubepods
from koordpolicy.linux.errors import OutsideRoot
from koordpolicy.model.pod import Pod
from koordpolicy.model.reading import ObjectError, mapping, objects, text

_STATUSES = ("containerStatuses", "initContainerStatuses")


@dataclass(frozen=True, slots=True)
class NodePod:
    """A pod, its control group, and those of the containers that run, by name; paths are below a hierarchy."""

    pod: Pod
    group: str
    containers: Mapping[str, str] = field(default_factory=dict)


def node_pods(pods: Iterable[tuple[Pod, Object]], kubepods: Kubepods) -> dict[str, NodePod]:
    """The pods that are not over, by UID. One whose names are no names of groups is left out."""
    found: dict[str, NodePod] = {}
    for pod, obj in pods:
        if pod.terminal or not pod.uid:
            continue
        try:
            group = kubepods.of_pod(pod.uid, pod.kubernetes_qos)
            containers = {
                name: kubepods.of_container(group, identity) for name, identity in running_containers(obj)
            }
        except (OutsideRoot, KeyError):
            continue
        found[pod.uid] = NodePod(pod, group, containers)
    return found


def running_containers(obj: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Name and ID (`containerd://...`) of the containers that run, as a pod's status says; none where it is unreadable."""
    found = []
    try:
        status = mapping(obj, "status")
        for key in _STATUSES:
            for one in objects(status, key, "status"):
                identity = text(one, "containerID", key)
                if identity and mapping(one, "state", key).get("running") is not None:
                    found.append((text(one, "name", key), identity))
    except ObjectError:
        return []
    return found
