"""Bursts round by round on the model and on this machine's kernel: no quota runs away, no burst is in others' way."""

from collections.abc import Iterator

import pytest

from koordpolicy.agent.apply import apply
from koordpolicy.agent.node_kernel import NodeKernel
from koordpolicy.agent.node_pods import NodePod
from koordpolicy.agent.plan import BEST_EFFORT, Order, Plan, Write, container_group, pod_group
from koordpolicy.agent.strategies.cpu_burst import (
    BURST_FILE,
    QUOTA_FILE,
    ContainerCPU,
    CPUBursts,
    PodCPU,
    TokensOf,
)
from koordpolicy.algorithms.cpu_burst import PoolState
from koordpolicy.algorithms.records import pods_on_node
from koordpolicy.language.facts import TIMES
from koordpolicy.linux.errors import KernelFileError
from koordpolicy.linux.files.kernel_file import CgroupVersion
from koordpolicy.linux.readings.value import read_number
from koordpolicy.linux.writes.audit import WriteLog
from koordpolicy.linux.writes.door import KernelDoor
from koordpolicy.linux.writes.write import FileOutcome, FileWriteResult
from koordpolicy.model.pod import Pod
from koordpolicy.model.time import NANOSECONDS
from tests.contract.kernel.kernels import Kernel, fake, host
from tests.unit.agent.frames import LIMITS, FakeNode
from tests.unit.agent.frames import pod as pod_of
from tests.unit.agent.nodes import NOW
from tests.vectors.policies import document, graph

POD = Pod("p", uid="u", phase="Running")
AUTO = graph(document("CPUBurst", "ours", {"policy": "auto"}))
NAMES = ("web", "side")


class Site:
    """A pod with containers in groups of that kernel, and the rounds of an agent whose clock the test moves."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel, self.now = kernel, 0
        self.pod = kernel.make("pod")
        self.containers = {name: kernel.make(f"pod/{name}") for name in NAMES}
        self.limits = dict.fromkeys(NAMES, 1000)
        self.door = KernelDoor(kernel.root, kernel.hierarchy, lambda: self.now, LIMITS, WriteLog(1000))
        self.bursts = CPUBursts(AUTO, lambda: 1.0)
        self.tokens: TokensOf = {}
        (self.record,) = pods_on_node([POD], None, AUTO.catalogue, TIMES)

    def set(self, file: str, group: str, value: int) -> None:
        """As kubelets and runtimes write it. Raises `KernelFileError` where the kernel does not take it."""
        place = self.kernel.hierarchy.located(file, group)[0]
        self.kernel.root.write(place.path, place.entry.form.render(value))

    def value(self, file: str, group: str) -> int:
        return read_number(self.kernel.root, self.kernel.hierarchy, file, group)

    def begin(self, *, pod: int, **containers: int) -> None:
        self.set(QUOTA_FILE, self.pod, pod)
        for name, quota in containers.items():
            self.set(QUOTA_FILE, self.containers[name], quota)

    def round(self, throttled: float = 0.2) -> tuple[FileWriteResult, ...]:
        self.now += NANOSECONDS
        containers = {
            name: ContainerCPU(
                self.limits[name], self.value(QUOTA_FILE, group), used=500, throttled=throttled
            )
            for name, group in self.containers.items()
        }
        pod = PodCPU(self.record, self.value(QUOTA_FILE, self.pod), containers)
        plan, self.tokens = self.bursts.plan({}, [pod], PoolState.IDLE, self.tokens, NOW + self.now)
        groups = NodeKernel(self.kernel.root, self.kernel.hierarchy, self.door).groups(
            {POD.uid: NodePod(POD, self.pod, self.containers)}
        )
        return tuple(apply(plan, self.door, groups).results)

    @property
    def quotas(self) -> tuple[int, ...]:
        groups = (self.pod, *self.containers.values())
        return tuple(self.value(QUOTA_FILE, group) for group in groups)

    @property
    def saved(self) -> tuple[int, ...]:
        groups = (self.pod, *self.containers.values())
        return tuple(self.value(BURST_FILE, group) for group in groups)


@pytest.fixture(params=["fake v1", "fake v2", "host v1", "host v2"])
def site(request: pytest.FixtureRequest) -> Iterator[Site]:
    where, version = request.param.split()
    if where == "fake":
        yield Site(fake(CgroupVersion(version)))
        return
    with host(CgroupVersion(version)) as found:
        if found is None:
            pytest.skip(f"cgroups {version} with cpu, cpuset and memory cannot be written on this machine")
        yield Site(found)


def test_a_container_that_is_not_set_up_raises_nothing_and_may_be_set_up(site: Site) -> None:
    site.begin(pod=200_000, side=100_000)
    site.round()
    assert site.quotas == (220_000, 100_000, 120_000)  # of one, which had none, and one that really grew
    assert site.saved == (100_000, 0, 100_000)
    site.set(QUOTA_FILE, site.containers["web"], 50_000)  # the runtime comes late, with what it was told
    for _ in range(12):
        site.round()
    assert site.quotas[1:] == (300_000, 300_000)
    assert site.quotas[0] - sum(site.quotas[1:]) == 50_000


@pytest.mark.parametrize("stands", [1_000_000, 150_000])
def test_a_burst_that_others_left_while_there_was_no_quota_is_taken_back(site: Site, stands: int) -> None:
    site.begin(pod=200_000)
    for group in site.containers.values():
        site.set(BURST_FILE, group, stands)
    with pytest.raises(KernelFileError):
        site.set(QUOTA_FILE, site.containers["web"], 100_000)
    for _ in range(3):
        site.round(throttled=0.0)
    assert site.quotas == (200_000, 100_000, 100_000)
    assert site.saved == (200_000, 100_000, 100_000)


def test_bursts_make_way_for_a_smaller_limit(site: Site) -> None:
    site.begin(pod=200_000, web=100_000, side=100_000)
    site.round(throttled=0.0)
    with pytest.raises(KernelFileError):
        site.set(QUOTA_FILE, site.containers["web"], 50_000)
    site.limits["web"] = 500  # as the pod's spec says by now
    site.round(throttled=0.0)
    assert site.saved == (150_000, 50_000, 100_000)
    site.set(QUOTA_FILE, site.containers["web"], 50_000)
    site.set(QUOTA_FILE, site.pod, 150_000)


def test_a_pod_grows_only_by_what_its_containers_take(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    site.begin(pod=200_000, web=100_000, side=100_000)
    really, stuck = site.kernel.root.write, site.kernel.hierarchy.located(QUOTA_FILE, site.containers["web"])

    def refusing(path: str, content: str) -> None:
        if path == stuck[0].path:
            raise KernelFileError(path, "Invalid argument", 22)
        really(path, content)

    monkeypatch.setattr(site.kernel.root, "write", refusing)
    for _ in range(11):
        site.round()
    assert FileOutcome.DELAYED in {one.outcome for one in site.round()}
    assert site.quotas == (400_000, 100_000, 300_000)
    monkeypatch.undo()
    site.now += 10 * NANOSECONDS
    site.round()
    assert site.quotas == (420_000, 120_000, 300_000)
    # And it shrinks only with them.
    monkeypatch.setattr(site.kernel.root, "write", refusing)
    site.bursts = CPUBursts(graph(), lambda: 0.0)
    for _ in range(4):
        site.round()
    assert site.quotas == (220_000, 120_000, 100_000)


def test_what_is_told_is_what_the_kernel_holds(site: Site) -> None:
    site.begin(pod=200_000, web=100_000, side=100_000)
    told = [one for one in site.round(throttled=0.0) if one.write.file == BURST_FILE]
    assert [(one.write.value, one.held) for one in told] == [
        (1_000_000, "100000"),
        (1_000_000, "100000"),
        (2_000_000, "200000"),
    ]
    # The next agent finds them so, and has written nothing.
    site.door = KernelDoor(site.kernel.root, site.kernel.hierarchy, lambda: site.now, LIMITS, WriteLog(10))
    told = [one for one in site.round(throttled=0.0) if one.write.file == BURST_FILE]
    assert {(one.outcome, one.held) for one in told} == {
        (FileOutcome.EQUAL, "100000"),
        (FileOutcome.EQUAL, "200000"),
    }


def test_a_group_shrinks_after_its_children_were_freed() -> None:
    """Kernels of version 1 take no share smaller than a child's."""
    batch = pod_of("batch", "BE")
    node = FakeNode([batch])
    groups = node.kernel.groups(node.node_pods())
    hooked = [
        Write(QUOTA_FILE, group, 100_000, "its own", "batch-resources")
        for group in (pod_group(batch.uid), container_group(batch.uid, "main"))
    ]
    apply(Plan(hooked), node.kernel.door, groups)
    free = [
        Write(QUOTA_FILE, one.group, -1, "held together", "batch-resources", Order.LEVELLED) for one in hooked
    ]
    suppressed = Write(QUOTA_FILE, BEST_EFFORT, 80_100, "CPUSuppress", "cpu-suppress", Order.LAST)
    found = apply(Plan([suppressed, *free]), node.kernel.door, groups)
    assert [one.outcome for one in found.results] == [FileOutcome.WRITTEN] * 3
    assert read_number(node.root, node.hierarchy, QUOTA_FILE, "kubepods/besteffort") == 80_100
