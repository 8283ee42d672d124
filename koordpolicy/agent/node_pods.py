"""The pods of the node with what only the node knows: their control groups and the containers that run."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from koordpolicy.kube.port import Object
from koordpolicy.linux.cgroups.kubepods import Kubepods
from koordpolicy.linux.errors import OutsideRoot
from koordpolicy.model.pod import Pod
from koordpolicy.model.reading import ObjectError, integer, mapping, objects, text

_USUAL_GRACE = 30
_STATUSES = ("containerStatuses", "initContainerStatuses")


@dataclass(frozen=True, slots=True)
class NodePod:
    """A pod, its control group, and those of the containers that run, by name; paths are below a hierarchy."""

    pod: Pod
    group: str
    containers: Mapping[str, str] = field(default_factory=dict)
    addresses: tuple[str, ...] = ()
    """Its own on the network; none before it has any, or on the host's."""
    on_host: bool = False
    """Whether it is on the host's network."""
    identities: Mapping[str, str] = field(default_factory=dict)
    """The IDs of the containers that run, by name, as the runtime tells them: `containerd://...`."""
    grace: int = _USUAL_GRACE
    """Seconds that its containers have to end; Kubernetes gives 30 where a pod says nothing."""


def node_pods(pods: Iterable[tuple[Pod, Object]], kubepods: Kubepods) -> dict[str, NodePod]:
    """The pods that are not over, by UID. One whose names are no names of groups is left out."""
    found: dict[str, NodePod] = {}
    for pod, obj in pods:
        if pod.terminal or not pod.uid:
            continue
        try:
            group = kubepods.of_pod(pod.uid, pod.kubernetes_qos)
            identities = dict(running_containers(obj))
            containers = {
                name: kubepods.of_container(group, identity) for name, identity in identities.items()
            }
        except (OutsideRoot, KeyError):
            continue
        on_host, grace = _spec(obj)
        own = () if on_host else addresses(obj)
        found[pod.uid] = NodePod(pod, group, containers, own, on_host, identities, grace)
    return found


def addresses(obj: Mapping[str, Any]) -> tuple[str, ...]:
    """A pod's addresses, as its status says; none where it is unreadable."""
    try:
        status = mapping(obj, "status")
        listed = [text(one, "ip", "status.podIPs") for one in objects(status, "podIPs", "status")]
        return tuple(filter(None, listed or [text(status, "podIP", "status")]))
    except ObjectError:
        return ()


def _spec(obj: Mapping[str, Any]) -> tuple[bool, int]:
    """Whether a pod is on the host's network, and the seconds that it has to end."""
    try:
        spec = mapping(obj, "spec")
        grace = integer(spec, "terminationGracePeriodSeconds", "spec")
    except ObjectError:
        return False, _USUAL_GRACE
    return spec.get("hostNetwork") is True, _USUAL_GRACE if grace is None else max(grace, 0)


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
