"""The kernel of this node as strategies write to it: where groups are that plans name by what they are."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from koordpolicy.agent.collectors.devices import DEVICE_SOURCES, DeviceSources
from koordpolicy.agent.node_pods import NodePod
from koordpolicy.agent.plan import Group, Level
from koordpolicy.linux.cgroups.hierarchy import Hierarchy
from koordpolicy.linux.cgroups.kubepods import Kubepods, discover_kubepods
from koordpolicy.linux.errors import KernelFileError
from koordpolicy.linux.readings.held import HeldFiles, most_held_files
from koordpolicy.linux.readings.members import read_processes
from koordpolicy.linux.root import KernelRoot
from koordpolicy.linux.writes.write import WriteDoor
from koordpolicy.model.protocol import QOS_BEST_EFFORT, QOS_BURSTABLE, QOS_GUARANTEED

_BASES: Final[Mapping[str, str]] = MappingProxyType(
    {"kubepods": QOS_GUARANTEED, "burstable": QOS_BURSTABLE, "besteffort": QOS_BEST_EFFORT}
)
"""Below which group a host application's stands, by the class whose pods stand there."""


class NoSuchGroup(LookupError):
    """A group that is not on this node now: its pod has ended, or its container does not run."""


@dataclass(slots=True)
class NodeKernel:
    """The kernel's files, where groups are, and the door for writes. `parent` is the kubelet's `--cgroup-root`, `sources` where
    devices are told of beside.
    """

    root: KernelRoot
    hierarchy: Hierarchy
    door: WriteDoor
    parent: str = ""
    sources: DeviceSources = DEVICE_SOURCES
    _kubepods: Kubepods | None = None
    files: HeldFiles = field(init=False)
    """What is read in every round."""

    def __post_init__(self) -> None:
        self.files = HeldFiles(self.root, self.hierarchy, most_held_files())

    def kubepods(self) -> Kubepods | None:
        """The kubelet's groups; None while there are none: the kubelet has not begun yet."""
        if self._kubepods is None:
            self._kubepods = discover_kubepods(self.root, self.hierarchy.directory("cpu"), self.parent)
        return self._kubepods

    def target_of(self, group: Group, pods: Mapping[str, NodePod]) -> str:
        """What a write names a group by: its path below a hierarchy. Raises NoSuchGroup."""
        if group.level in (Level.NODE, Level.ROOT):
            return ""
        if group.level is Level.RESCTRL:
            return group.name
        if group.level is Level.HOST_APPLICATION:
            found = self._application(group)
        elif group.level is Level.QOS:
            kubepods = self.kubepods()
            found = None if kubepods is None else kubepods.of_class(group.name)
        else:
            pod = pods.get(group.pod)
            if group.level is Level.POD:
                found = None if pod is None else pod.group
            else:
                found = None if pod is None else pod.containers.get(group.name)
        if not found:
            raise NoSuchGroup(group.words)
        return found

    def _application(self, group: Group) -> str | None:
        if not group.pod:
            return group.name
        kubepods = self.kubepods()
        return None if kubepods is None else f"{kubepods.of_class(_BASES[group.pod])}/{group.name}"

    def groups(self, pods: Mapping[str, NodePod]) -> "NodeGroups":
        """Where groups are while the pods of the node, by UID, are these."""
        return NodeGroups(self, pods)


@dataclass(frozen=True, slots=True)
class NodeGroups:
    """The groups of a node with these pods, by UID. Implements `GroupPaths`."""

    kernel: NodeKernel
    pods: Mapping[str, NodePod]

    def path(self, group: Group) -> str | None:
        """See `GroupPaths.path`."""
        try:
            return self.kernel.target_of(group, self.pods)
        except NoSuchGroup:
            return None

    def processes(self, group: Group) -> Sequence[int]:
        """See `GroupPaths.processes`."""
        path = self.path(group)
        if path is None:
            return ()
        try:
            return read_processes(self.kernel.root, self.kernel.hierarchy, path)
        except KernelFileError:
            return ()  # it has ended since its pod was told of
