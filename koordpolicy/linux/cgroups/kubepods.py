"""The kubelet's groups: classes, pods, containers, as its cgroup driver names them."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from koordpolicy.linux.errors import OutsideRoot
from koordpolicy.linux.root import KernelRoot
from koordpolicy.model.protocol import QOS_BEST_EFFORT, QOS_BURSTABLE, QOS_GUARANTEED

_CLASSES: Final = {QOS_GUARANTEED: "", QOS_BURSTABLE: "burstable", QOS_BEST_EFFORT: "besteffort"}
"""Guaranteed pods stand directly below the kubelet's root: the class' group is that root."""

_SCOPES: Final = {"containerd": "cri-containerd", "docker": "docker", "cri-o": "crio", "pouch": "pouch"}
"""What container runtimes put before the ID in the name of a systemd scope."""

_MOST_CONTAINERS: Final = 1024
_SHORTEST_ID: Final = 12


class CgroupDriver(StrEnum):
    """Who makes the kubelet's groups."""

    SYSTEMD = "systemd"
    CGROUPFS = "cgroupfs"


@dataclass(frozen=True, slots=True)
class ContainerGroup:
    """A container's group: its path below the hierarchy, and the ID that its name holds."""

    path: str
    container: str


@dataclass(frozen=True, slots=True)
class Kubepods:
    """The kubelet's groups below `parent`, its `--cgroup-root`; "" as a rule.

    All paths are below a hierarchy, without a slash at either end. Pods are told by their UID and the class
    that Kubernetes gave them (`status.qosClass`). Raises `OutsideRoot` for a name that is a path.
    """

    driver: CgroupDriver
    parent: str = ""

    @property
    def root(self) -> str:
        """The group of all pods."""
        return self._below(self.parent, "kubepods.slice" if self._systemd else "kubepods")

    def of_class(self, kubernetes_class: str) -> str:
        """The group of a Kubernetes QoS class; Guaranteed's is `root`. Raises KeyError for none of the three."""
        name = _CLASSES[kubernetes_class]
        if not name:
            return self.root
        return f"{self.root}/kubepods-{name}.slice" if self._systemd else f"{self.root}/{name}"

    def of_pod(self, uid: str, kubernetes_class: str) -> str:
        """A pod's group."""
        parent = self.of_class(kubernetes_class)
        if not self._systemd:
            return self._below(parent, f"pod{uid}")
        name = _CLASSES[kubernetes_class]
        prefix = f"kubepods-{name}" if name else "kubepods"
        return self._below(parent, f"{prefix}-pod{uid.replace('-', '_')}.slice")

    def of_container(self, pod: str, container_id: str) -> str:
        """A container's group below its pod's, from the status' `containerd://<id>`.

        The name is the usual one of that runtime; `containers` finds it whatever it is called.
        """
        runtime, _, identity = container_id.rpartition("://")
        if not self._systemd:
            return self._below(pod, identity)
        return self._below(pod, f"{_SCOPES.get(runtime, runtime or 'cri-containerd')}-{identity}.scope")

    @property
    def _systemd(self) -> bool:
        return self.driver is CgroupDriver.SYSTEMD

    @staticmethod
    def _below(parent: str, name: str) -> str:
        if not name or name in {".", ".."} or "/" in name or "\0" in name:
            raise OutsideRoot(f"{parent}/{name}", "the name of a group is not a name of one directory")
        return f"{parent}/{name}" if parent else name


def containers(root: KernelRoot, directory: str, pod: str) -> tuple[ContainerGroup, ...]:
    """The container groups below a pod's, the sandbox's among them; `directory` is the pod's in a hierarchy.

    Raises `NoSuchFile` where the pod has ended.
    """
    found = []
    for name in list(root.names(directory))[:_MOST_CONTAINERS]:
        identity = container_of(name)
        if identity:
            found.append(ContainerGroup(f"{pod}/{name}", identity))
    return tuple(found)


def container_of(name: str) -> str:
    """The ID in the name of a container's group, of any runtime and driver; "" for other names."""
    stem = name.removesuffix(".scope")
    for scope in _SCOPES.values():
        stem = stem.removeprefix(f"{scope}-")
    is_id = len(stem) >= _SHORTEST_ID and all(one in "0123456789abcdef" for one in stem)
    return stem if is_id else ""


def discover_kubepods(root: KernelRoot, cgroup_directory: str, parent: str = "") -> Kubepods | None:
    """The kubelet's groups by what is there; None where there are none (yet).

    `cgroup_directory` is where a hierarchy with the CPU controller is mounted.
    """
    for driver in CgroupDriver:
        kubepods = Kubepods(driver, parent)
        if root.exists(f"{cgroup_directory}/{kubepods.root}"):
            return kubepods
    return None
