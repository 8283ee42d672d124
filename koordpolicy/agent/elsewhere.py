"""What strategies want that no kernel file takes: groups of resctrl, cookies of core scheduling, shaping of traffic."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, TypeAlias

from koordpolicy.agent.node_kernel import NodeKernel, NoSuchGroup
from koordpolicy.agent.node_pods import NodePod
from koordpolicy.agent.plan import Write
from koordpolicy.agent.rounds.caches import GROUP
from koordpolicy.agent.strategies.cpu_isolation import COOKIE
from koordpolicy.agent.strategies.network_isolation import TERWAY_NODE, TERWAY_PODS, TRAFFIC
from koordpolicy.linux.core_scheduling import HostCoreScheduling
from koordpolicy.linux.files.kernel_file import FileWriter
from koordpolicy.linux.readings.routes import read_default_device
from koordpolicy.linux.writes.core_cookies import CoreCookies
from koordpolicy.linux.writes.resctrl_groups import ResctrlGroups
from koordpolicy.linux.writes.terway_files import TerwayFiles
from koordpolicy.linux.writes.traffic_shaping import NONE, TrafficShaping
from koordpolicy.linux.writes.write import FileOutcome, FileWrite, FileWriteResult
from koordpolicy.model.time import NANOSECONDS

Maker: TypeAlias = Callable[[Sequence[FileWrite]], Sequence[FileWriteResult]]
"""Makes all writes of a round that are of its own sort. Raises nothing."""

_REFRESH: Final = 60 * NANOSECONDS
"""After so long is looked whether others have changed what was shaped."""
_SETTLED: Final = frozenset(
    {FileOutcome.WRITTEN, FileOutcome.EQUAL, FileOutcome.REMEMBERED, FileOutcome.UNSUPPORTED}
)
_TERWAY_FILES: Final = {TERWAY_PODS: "pod.json", TERWAY_NODE: "global_bps_config"}


def makers(
    kernel: NodeKernel, terway: Path | None, clock: Callable[[], int], *, plan_only: bool
) -> dict[str, Maker]:
    """Who makes which of them, by the names that plans use. `terway` is the directory that Terway reads."""
    groups = ResctrlGroups(kernel.root, plan_only=plan_only)
    cookies = CoreCookies(kernel.root, kernel.hierarchy, HostCoreScheduling(), plan_only=plan_only)
    shaping = TrafficShaping(lambda: read_default_device(kernel.root), clock, _REFRESH, plan_only=plan_only)
    found = {GROUP: _each(groups.write), COOKIE: _each(cookies.write), TRAFFIC: shaping.write_all}
    if terway is not None:
        files = TerwayFiles(terway, _TERWAY_FILES, plan_only=plan_only)
        found |= dict.fromkeys(_TERWAY_FILES, _each(files.write))
    return found


def _each(make: Callable[[FileWrite], FileWriteResult]) -> Maker:
    return lambda writes: [make(one) for one in writes]


def made(
    writes: Sequence[Write], by: Mapping[str, Maker], kernel: NodeKernel, pods: Mapping[str, NodePod]
) -> list[FileWriteResult]:
    """Make those of a plan's writes that are none of files: of each sort all together, in their order."""
    wanted: dict[str, list[FileWrite]] = {}
    found: list[FileWriteResult] = []
    for write in writes:
        if write.file not in by:
            continue
        one = FileWrite(write.file, write.value, FileWriter(write.strategy), "", write.reason)
        try:
            target = kernel.target_of(write.group, pods)
        except NoSuchGroup:
            found.append(FileWriteResult(one, FileOutcome.UNSUPPORTED, problem="its group has ended"))
        else:
            wanted.setdefault(write.file, []).append(replace(one, target=target))
    for file, listed in wanted.items():
        found += by[file](listed)
    return found


def others_quiet_until(results: Sequence[FileWriteResult], now: int) -> int:
    """Before which time the same would do nothing. What failed is tried every time, and so are cookies: processes begin in a
    group whenever they like.
    """
    settled = all(one.write.file != COOKIE and one.outcome in _SETTLED for one in results)
    return now + _REFRESH if settled else now


def undone(by: Mapping[str, Maker], reason: str) -> list[FileWriteResult]:
    """Undo what would come to the wrong ones while nobody looks: the address of a pod that ends is another pod's next."""
    shaping = by.get(TRAFFIC)
    return (
        [] if shaping is None else list(shaping([FileWrite(TRAFFIC, NONE, FileWriter.NETWORK, "", reason)]))
    )
