"""The kernel of this node as strategies write to it: groups by what they are, files by their names."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from koordpolicy.agent.node_pods import NodePod
from koordpolicy.agent.plan import Group, Level, Order, Plan, Write
from koordpolicy.linux.cgroups.hierarchy import Hierarchy
from koordpolicy.linux.cgroups.kubepods import Kubepods, discover_kubepods
from koordpolicy.linux.files.kernel_file import FileWriter
from koordpolicy.linux.files.table import KERNEL_FILES
from koordpolicy.linux.root import KernelRoot
from koordpolicy.linux.writes.write import FileWrite, FileWriteResult, WriteDoor
from koordpolicy.model.protocol import QOS_BEST_EFFORT, QOS_BURSTABLE, QOS_GUARANTEED

_BASES: Final[Mapping[str, str]] = MappingProxyType(
    {"kubepods": QOS_GUARANTEED, "burstable": QOS_BURSTABLE, "besteffort": QOS_BEST_EFFORT}
)
"""Below which group a host application's stands, by the class whose pods stand there."""


class NoSuchGroup(LookupError):
    """A group that is not on this node now: its pod has ended, or its container does not run; or no file of a group."""


@dataclass(slots=True)
class NodeKernel:
    """The kernel's files, where groups are, and the door for writes. `parent` is the kubelet's `--cgroup-root`."""

    root: KernelRoot
    hierarchy: Hierarchy
    door: WriteDoor
    parent: str = ""
    _kubepods: Kubepods | None = None

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

    def file_write(self, write: Write, pods: Mapping[str, NodePod]) -> FileWrite:
        """A strategy's write as the door takes it. Raises NoSuchGroup."""
        if write.file not in KERNEL_FILES:
            raise NoSuchGroup(f"{write.file} is no file of the table")
        return FileWrite(
            write.file,
            write.value,
            FileWriter(write.strategy),
            self.target_of(write.group, pods),
            write.reason,
        )

    def write(self, plan: Plan, pods: Mapping[str, NodePod]) -> list[FileWriteResult]:
        """Make the writes of a plan, in its order; those of groups that have ended are left out."""
        results: list[FileWriteResult] = []
        levels: dict[Level, list[FileWrite]] = {}
        for write in plan.writes:
            try:
                wanted = self.file_write(write, pods)
            except NoSuchGroup:
                continue
            if write.order is Order.LEVELLED:
                levels.setdefault(write.group.level, []).append(wanted)
            else:
                results += self.door.write([wanted])
        if levels:
            results += self.door.write_leveled([levels[level] for level in Level if level in levels])
        return results
