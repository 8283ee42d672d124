"""The whole agent, made to fail at random and killed: nothing leaves it, nobody goes by stale data, files end as policy says."""

import asyncio
import errno
import os
import random
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from koordpolicy.agent import agent as agent_module
from koordpolicy.agent.agent import NodeAgent
from koordpolicy.agent.audit.log import AuditLog
from koordpolicy.agent.explanation import node_explanation
from koordpolicy.agent.node_kernel import NodeKernel
from koordpolicy.agent.peak_files import PeakFiles
from koordpolicy.agent.pods import PodSource
from koordpolicy.agent.undoing import HURTS, take_over, undo_journal
from koordpolicy.kube.errors import KubeError, TooManyRequests, Unreachable
from koordpolicy.kube.memory import MemoryCluster, Store
from koordpolicy.linux.cgroups.hierarchy import discover_hierarchy
from koordpolicy.linux.errors import of_os_error
from koordpolicy.linux.fake.machine import FakeMachine, FakeTask, MachineSettings
from koordpolicy.linux.fake.root import FakeRoot
from koordpolicy.linux.files.kernel_file import CgroupVersion, FileWriter
from koordpolicy.linux.readings.resctrl import resctrl_groups
from koordpolicy.linux.root import CGROUPS
from koordpolicy.linux.writes.audit import WriteLog
from koordpolicy.linux.writes.door import KernelDoor
from koordpolicy.linux.writes.write import FileWrite
from tests.conftest import REPOSITORY
from tests.contract.kernel.kernels import make_group
from tests.unit.agent.frames import LIMITS, SECOND
from tests.unit.agent.nodes import NOW
from tests.unit.agent.whole import pod_object, whole_agent
from tests.vectors.policies import document, graph

GIB = 1 << 30
CONTAINERS = {name: letter * 64 for name, letter in (("web", "a"), ("batch", "b"), ("other", "c"))}
SECRET = "/proc/sys/kernel/core_pattern"
OUTSIDE = "/proc/1/oom_score_adj"
WRONG = (errno.EINVAL, errno.EBUSY, errno.EACCES, errno.ENOENT, errno.ENODEV, errno.EIO, errno.EAGAIN)
INJECTIONS = 10_000
STALE = 2 * SECOND
POLICIES = (
    document("CPUSuppress", "ours", {"enabled": True}),
    document(
        "MemoryEviction",
        "ours",
        {
            "enabled": True,
            "threshold": "50%",
            "bestEffort": {"enabled": True},
            "cooldown": "1s",
            "conduct": {"expectedWithin": "1s"},
        },
    ),
    document("CPUBurst", "ours", {"policy": "auto"}),
    document(
        "Isolation",
        "be",
        {
            "group": "BE",
            "cpu": {"enabled": True, "idle": True},
            "memory": {"enabled": True, "throttling": "50%"},
            "cache": {"enabled": True, "end": "30%", "bandwidth": "50%"},
            "disk": {"enabled": True},
            "blocks": [{"name": "sda", "type": "device", "readIOPS": 100}],
        },
    ),
    document(
        "Interference",
        "waiting",
        {
            "when": {"cel": "has(pod.schedulingDelay) && pod.schedulingDelay > percent(1)"},
            "reaction": "EvictBestEffort",
        },
    ),
    document("SystemTuning", "ours", {"minFreeFactor": 100, "cpuMechanism": "coreSched"}),
)
PLAIN = {
    SECRET: "core",
    OUTSIDE: "0",
    "/proc/sys/vm/min_free_kbytes": "1",
    "/sys/devices/system/cpu/online": "0-3",
    **{f"/sys/devices/system/cpu/cpu{cpu}/topology/physical_package_id": "0" for cpu in range(4)},
    **{f"/sys/devices/system/cpu/cpu{cpu}/topology/core_id": str(cpu // 2) for cpu in range(4)},
    **{f"/sys/devices/system/cpu/cpu{cpu}/cache/index3/id": "0" for cpu in range(4)},
    **{f"/sys/devices/system/cpu/cpu{cpu}/cache/index3/shared_cpu_list": "0-3" for cpu in range(4)},
    "/sys/devices/system/node/node0/cpulist": "0-3",
    "/sys/devices/system/node/node0/meminfo": "Node 0 MemTotal: 1 kB\nNode 0 MemFree: 1 kB\n",
    "/sys/block/sda/dev": "8:0",
    "/sys/fs/resctrl/schemata": "L3:0=7ff\nMB:0=100\n",
    "/sys/fs/resctrl/tasks": "",
    "/sys/fs/resctrl/info/L3/cbm_mask": "7ff",
    "/proc/cpuinfo": "vendor_id : GenuineIntel",
}


class Hostile(FakeRoot):
    """A kernel that fails at random once it is told to, and notes what it is made to change."""

    def __init__(self, version: CgroupVersion, chance: random.Random) -> None:
        super().__init__(version, extra=PLAIN)
        self.chance, self.injected, self.hostile = chance, 0, False
        self.changed: set[str] = set()

    def read(self, path: str) -> str:
        self._perhaps(path)
        text = super().read(path)
        if self.hostile and self.chance.random() < 0.04:
            self.injected += 1
            return self.chance.choice(["", "what?", "max max", "9" * 5000, "-", "0-", "\0", "0"])
        return text

    def write(self, path: str, content: str) -> None:
        self._perhaps(path)
        super().write(path, content)
        self.changed.add(path)

    def _perhaps(self, path: str) -> None:
        if self.hostile and self.chance.random() < 0.12:
            self.injected += 1
            number = self.chance.choice(WRONG)
            raise of_os_error(path, OSError(number, os.strerror(number)))


class Clock:
    """Goes on by a test's word; the wall's jumps as it likes."""

    monotonic, wall = 1000 * SECOND, NOW

    def read(self) -> int:
        return self.monotonic

    def read_wall(self) -> int:
        return self.wall


class Server(MemoryCluster):
    """A cluster that refuses evictions at random, and notes how old was what they were asked by."""

    def __init__(self, store: Store, chance: random.Random) -> None:
        super().__init__(store)
        self.chance, self.evictions = chance, list[tuple[int, int]]()
        self.agent: NodeAgent | None = None
        self.clock = Clock()
        self.gone: set[str] = set()

    async def evict(  # type: ignore[override]  # whatever else is asked for does not matter here
        self, _namespace: str, pod: str, **_more: Any
    ) -> None:
        assert self.agent is not None and self.agent.measurements is not None
        node = self.agent.measurements.node.excerpt("memory", self.clock.monotonic, 3600 * SECOND)
        self.evictions.append(
            (self.agent.answers.age(self.clock.monotonic), self.clock.monotonic - int(node.times[-1]))
        )
        problem: KubeError | None = self.chance.choice([None, Unreachable("away"), TooManyRequests("no")])
        if problem is not None:
            raise problem
        self.gone.add(pod)


PODS_OF = {
    "web": pod_object("web", "LS", CONTAINERS["web"], {"limits": {"cpu": "1", "memory": "1Gi"}}),
    "batch": pod_object(
        "batch",
        "BE",
        CONTAINERS["batch"],
        {"requests": {"kubernetes.io/batch-cpu": "500"}, "limits": {"kubernetes.io/batch-cpu": "500"}},
    ),
    "other": pod_object("other", "BE", CONTAINERS["other"]),
}
GROUPS = {
    "web": f"kubepods/burstable/poduid-web/{CONTAINERS['web']}",
    "batch": f"kubepods/besteffort/poduid-batch/{CONTAINERS['batch']}",
    "other": f"kubepods/besteffort/poduid-other/{CONTAINERS['other']}",
}


def appear(root: FakeRoot, machine: FakeMachine, name: str, pid: int) -> None:
    """The groups of a pod, and work in them, where they are not there."""
    hierarchy = discover_hierarchy(root)
    above = GROUPS[name].split("/")
    for depth in range(1, len(above) + 1):
        make_group(root, hierarchy, "/".join(above[:depth]))
    if pid not in machine.tasks:
        machine.start(FakeTask(pid, GROUPS[name], demand=1.0, memory=3 * GIB if name != "web" else GIB))
        root.plain[f"/proc/{pid}/schedstat"] = "1 1 1"


def vanish(root: FakeRoot, machine: FakeMachine, name: str, pid: int) -> None:
    """A pod ends without a word."""
    machine.end(pid)
    pod = GROUPS[name].rpartition("/")[0]
    for tree in root.trees.values():
        parent = tree.find(pod.rpartition("/")[0])
        if parent is not None:
            parent.children.pop(pod.rpartition("/")[2], None)


@pytest.mark.parametrize("version", list(CgroupVersion))
def test_whatever_the_kernel_does_nothing_leaves_the_agent(
    version: CgroupVersion, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    chance, clock = random.Random(17), Clock()
    root = Hostile(version, chance)
    machine = FakeMachine(root, MachineSettings(memory=8 * GIB, reserve=1 << 20, step=100_000_000))
    for pid, name in enumerate(GROUPS, 7):
        appear(root, machine, name, pid)
    hierarchy = discover_hierarchy(root)
    door = KernelDoor(root, hierarchy, clock.read, LIMITS, WriteLog(100))
    monkeypatch.setattr(agent_module, "monotonic_ns", clock.read)
    monkeypatch.setattr(agent_module, "now_ns", clock.read_wall)
    cluster = Server(Store(lambda: clock.wall / SECOND), chance)
    cluster.clock = clock

    async def story() -> None:
        async with whole_agent(
            graph(*POLICIES),
            NodeKernel(root, hierarchy, door),
            cluster,
            list(PODS_OF.values()),
            capacity={"cpu": "4", "memory": "8Gi", "pods": "110"},
            peaks=PeakFiles(tmp_path),
            clock=clock.read,
        ) as agent:
            cluster.agent, root.hostile = agent, True
            rounds = 0
            while root.injected < INJECTIONS // 2 and rounds < INJECTIONS:
                rounds += 1
                await one_round(agent, rounds)
            assert root.injected >= INJECTIONS // 2
            root.hostile = False
            for _ in range(3):
                await one_round(agent, 3)
            assert agent.doing.results  # it is as it was before

    async def one_round(agent: NodeAgent, number: int) -> None:
        steps = [SECOND, SECOND, SECOND, 5 * SECOND, 120 * SECOND] if root.hostile else [SECOND]
        clock.monotonic += chance.choice(steps)
        clock.wall += chance.choice([SECOND, SECOND, 3600 * SECOND, -3600 * SECOND])
        pid, name = chance.choice(list(enumerate(GROUPS, 7)))
        hostile, root.hostile = root.hostile, False
        (vanish if hostile and chance.random() < 0.1 else appear)(root, machine, name, pid)
        root.hostile = hostile
        machine.advance(SECOND // 5)
        agent.decide()
        if chance.random() < 0.8:
            agent.collect()
        frame = agent.frame()
        if frame is not None:
            await agent.carry_out(agent.strategies, frame)
        if number % 10 == 0:
            await agent.predict()
            await agent.report()
        if chance.random() < 0.5:  # evicted pods come back, as their owners want
            cluster.gone.clear()
        told = [one for name, one in PODS_OF.items() if name not in cluster.gone]
        if chance.random() < 0.7:  # else the kubelet is silent, perhaps for long
            agent.watch.pods.replace(told, "")
            agent.answers.good(PodSource.KUBELET, clock.monotonic)
        await asyncio.sleep(0)

    asyncio.run(story())
    assert root.plain[SECRET] == "core"
    assert root.plain[OUTSIDE] == "0"
    allowed = (f"{CGROUPS}/", "/sys/fs/resctrl/", "/proc/sys/vm/")
    scores = {f"/proc/{pid}/oom_score_adj" for pid in range(7, 10)}
    assert {path for path in root.changed if not path.startswith(allowed)} <= scores
    assert cluster.evictions, "nobody was ever evicted: the test shows nothing"
    assert max(pods for pods, _node in cluster.evictions) <= 30 * SECOND
    assert max(node for _pods, node in cluster.evictions) <= STALE


def test_a_dry_run_names_all_that_would_be_done_and_does_none_of_it() -> None:
    root = Hostile(CgroupVersion.V1, random.Random(0))
    machine = FakeMachine(root, MachineSettings(memory=8 * GIB, reserve=1 << 20, step=100_000_000))
    for pid, name in enumerate(GROUPS, 7):
        appear(root, machine, name, pid)
    root.changed.clear()
    hierarchy = discover_hierarchy(root)
    door = KernelDoor(root, hierarchy, lambda: NOW, LIMITS, WriteLog(100), plan_only=True)

    async def story() -> dict[str, Any]:
        async with whole_agent(
            graph(*POLICIES),
            NodeKernel(root, hierarchy, door),
            MemoryCluster(Store(lambda: NOW / SECOND)),
            list(PODS_OF.values()),
            capacity={"cpu": "4", "memory": "8Gi", "pods": "110"},
            dry_run=True,
        ) as agent:
            agent.doing.began = 0  # long ago: nobody goes in the first seconds
            for _ in range(2):  # a rate takes two counts
                agent.collect()
                machine.advance(SECOND // 5)
            frame = agent.frame()
            assert frame is not None
            await agent.carry_out(agent.strategies, frame)
            return node_explanation(agent, frame)

    record = asyncio.run(story())
    told = {(one["strategy"], Path(one["file"]).name, one["outcome"]) for one in record["files"]}
    assert {
        ("resctrl", "BE", "planned"),
        ("block-io", "blkio.throttle.read_iops_device", "unsupported"),
        ("batch-resources", "cpu.shares", "planned"),
        ("system", "min_free_kbytes", "planned"),
        ("group-identity", "cpu.idle", "planned"),
    } <= told, told
    assert not {"pod.json", "global_bps_config"} & {file for _strategy, file, _outcome in told}  # no Terway
    # Each line of a file that is written line by line is told of, and what stands behind it.
    lines = {
        str(one["wanted"]).partition(":")[0]: one for one in record["files"] if "schemata" in one["file"]
    }
    assert lines.keys() == {"L3", "MB"}, lines
    assert [one["decision"] for one in lines["MB"]["rules"]] == [
        "Isolation/BE.cache.enabled",
        "Isolation/BE.cache.bandwidth",
    ]
    assert {one["strategy"] for one in record["evictions"]} == {"MemoryEviction"}
    assert root.changed == set()
    assert list(resctrl_groups(root)) == []


# --- what a killed agent has left ---------------------------------------------------------------------


def left(root: FakeRoot, state: Path) -> tuple[NodeKernel, int]:
    """The kernel of the next agent, and how many files it took over."""
    hierarchy = discover_hierarchy(root)
    door = KernelDoor(
        root, hierarchy, lambda: 0, LIMITS, WriteLog(100), journal=undo_journal(str(state), root)
    )
    kernel = NodeKernel(root, hierarchy, door)
    return kernel, take_over(kernel, AuditLog(1 << 16, lambda: 0, lambda: "t"), NOW)


BOOT = "/proc/sys/kernel/random/boot_id"
BATCH = "kubepods/besteffort/poduid-batch"


def suppress(kernel: NodeKernel, *cpus: int) -> None:
    cpus_of = [
        [FileWrite("cpuset.cpus", frozenset(cpus), FileWriter.CPU_SUPPRESS, group)]
        for group in ("kubepods/besteffort", BATCH)
    ]
    kernel.door.write_leveled(cpus_of)
    kernel.door.write(
        [
            FileWrite("cpu.cfs_quota_us", 5000, FileWriter.CPU_SUPPRESS, "kubepods/besteffort"),
            FileWrite("cpu.shares", 77, FileWriter.BATCH_RESOURCES, BATCH),
        ]
    )


def suppressed(root: FakeRoot) -> tuple[str, str, str]:
    cpu, cpuset = (f"{CGROUPS}/{root.tree(one).mount}" for one in ("cpu", "cpuset"))
    return (
        root.read(f"{cpuset}/{BATCH}/cpuset.cpus").strip(),
        root.read(f"{cpu}/kubepods/besteffort/cpu.cfs_quota_us").strip(),
        root.read(f"{cpu}/{BATCH}/cpu.shares").strip(),
    )


def site() -> FakeRoot:
    root = FakeRoot(CgroupVersion.V1, extra={BOOT: "one\n"})
    for group in ("kubepods", "kubepods/besteffort", BATCH):
        make_group(root, discover_hierarchy(root), group)
    return root


def test_what_a_killed_agent_has_held_stays_until_the_next_one_decides(tmp_path: Path) -> None:
    root = site()
    kernel, count = left(root, tmp_path)
    assert count == 0
    suppress(kernel, 0)
    suppress(kernel, 1)
    assert suppressed(root) == ("1", "5000", "77")
    kernel, count = left(root, tmp_path)
    assert count == 3
    assert suppressed(root) == ("1", "5000", "77")
    suppress(kernel, 0)  # it decides, and holds others
    assert suppressed(root) == ("0", "5000", "77")
    kernel, count = left(root, tmp_path)
    assert count == 3
    kernel.door.undo(lambda write: write.writer in HURTS)
    assert suppressed(root) == ("0-3", "-1", "77")  # what sizes pods stays as it was written
    # What was given back at a stop is nobody's to give back again.
    kernel, count = left(root, tmp_path)
    assert count == 0
    suppress(kernel, 2)
    kernel.door.undo(lambda write: write.writer in HURTS)
    assert left(root, tmp_path)[1] == 0


@pytest.mark.parametrize("spoiled", ["boot", "torn", "nonsense", "gone", "endless"])
def test_a_journal_that_means_nothing_changes_nothing(spoiled: str, tmp_path: Path) -> None:
    root = site()
    kernel, _count = left(root, tmp_path)
    suppress(kernel, 0)
    journal = tmp_path / "undo.jsonl"
    if spoiled == "boot":
        root.plain[BOOT] = "two\n"
    elif spoiled == "torn":
        journal.write_bytes(journal.read_bytes()[:-20])
    elif spoiled == "nonsense":
        first = journal.read_text().splitlines()[0]
        strange = [
            *("{", "[]", "7", '{"key": 3}', '{"key": "a"}'),
            '{"key": "a", "file": "cpuset.cpus", "target": "../..", "writer": "cpu-suppress", "value": {"cpus": [1]}, "original": "1"}',
            '{"key": "b", "file": "cpuset.cpus", "target": "kubepods", "writer": "system", "value": 3, "original": "1"}',
            '{"key": "c", "file": "no.such", "target": "", "writer": "cpu-suppress", "value": 3, "original": "1"}',
        ]
        journal.write_text("\n".join([first, *strange]))
    elif spoiled == "gone":
        for tree in root.trees.values():
            tree.root.children.clear()
    else:
        journal.unlink()
        journal.mkdir()
    kernel, count = left(root, tmp_path)
    assert count == {"torn": 2, "gone": 3, "nonsense": 1}.get(spoiled, 0)
    assert spoiled == "gone" or suppressed(root)[0] == "0"
    if spoiled != "gone":
        suppress(kernel, 3)  # it goes on, journal or not
        assert suppressed(root)[0] == "3"


def test_the_journal_stays_small(tmp_path: Path) -> None:
    root = site()
    kernel, _count = left(root, tmp_path)
    sizes = []
    for turn in range(12_000):
        kernel.door.write([FileWrite("cpu.cfs_quota_us", 5000 + turn, FileWriter.CPU_SUPPRESS, BATCH)])
        kernel.door.undo(lambda _write: True)
        if turn % 4000 == 3999:
            sizes.append((tmp_path / "undo.jsonl").stat().st_size)
    assert max(sizes) < 4 << 20


# --- killed in a storm of writes, on this machine's kernel --------------------------------------------

STORM = """
    import asyncio, os, sys
    from pathlib import Path
    sys.path.insert(0, {repository!r})
    from tests.unit.agent import storm

    storm.main(*sys.argv[1:])
"""


@pytest.mark.soak
def test_killed_twenty_times_files_end_as_policy_says(tmp_path: Path) -> None:
    needed = ("cpu", "cpuacct", "cpuset", "memory")
    if not all(os.access(f"{CGROUPS}/{one}", os.W_OK) for one in needed):
        pytest.skip("this machine's control groups (version 1) cannot be written")
    code = textwrap.dedent(STORM).format(repository=str(REPOSITORY))
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path), f"koordpolicy-test-storm-{os.getpid()}"],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    assert done.stdout.strip() == "as policy says after 20 kills, and given back at the stop"
