"""What strategies want of the kernel that no file takes: groups of resctrl, cookies of core scheduling."""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from koordpolicy.agent.node_kernel import NodeKernel, NoSuchGroup
from koordpolicy.agent.node_pods import NodePod
from koordpolicy.agent.plan import Write
from koordpolicy.agent.rounds.caches import GROUP
from koordpolicy.agent.strategies.cpu_isolation import COOKIE
from koordpolicy.linux.core_scheduling import HostCoreScheduling
from koordpolicy.linux.files.kernel_file import FileWriter
from koordpolicy.linux.writes.core_cookies import CoreCookies
from koordpolicy.linux.writes.resctrl_groups import ResctrlGroups
from koordpolicy.linux.writes.write import FileOutcome, FileWrite, FileWriteResult

Maker: TypeAlias = Callable[[FileWrite], FileWriteResult]
"""Makes one write that is none of a file. Raises nothing."""


def makers(kernel: NodeKernel, *, plan_only: bool) -> dict[str, Maker]:
    """Who makes which of them, by the names that plans use."""
    groups = ResctrlGroups(kernel.root, plan_only=plan_only)
    cookies = CoreCookies(kernel.root, kernel.hierarchy, HostCoreScheduling(), plan_only=plan_only)
    return {GROUP: groups.write, COOKIE: cookies.write}


def made(
    writes: Sequence[Write], by: Mapping[str, Maker], kernel: NodeKernel, pods: Mapping[str, NodePod]
) -> list[FileWriteResult]:
    """Make those of a plan's writes that are none of files, in their order."""
    found = []
    for write in writes:
        maker = by.get(write.file)
        if maker is None:
            continue
        wanted = FileWrite(write.file, write.value, FileWriter(write.strategy), "", write.reason)
        try:
            target = kernel.target_of(write.group, pods)
        except NoSuchGroup:
            found.append(FileWriteResult(wanted, FileOutcome.UNSUPPORTED, problem="its group has ended"))
            continue
        found.append(maker(FileWrite(wanted.file, wanted.value, wanted.writer, target, wanted.reason)))
    return found
