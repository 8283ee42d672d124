"""What is told of kernel files that take nothing, and of those that do again; what an agent leaves at its stop."""

import asyncio
from typing import Any, cast

import pytest

from koordpolicy.agent.failing_writes import FAILED
from koordpolicy.agent.node_kernel import NodeKernel
from koordpolicy.kube.memory import MemoryCluster, Store
from koordpolicy.linux.cgroups.hierarchy import discover_hierarchy
from koordpolicy.linux.errors import KernelFileError
from koordpolicy.linux.fake.root import FakeRoot
from koordpolicy.linux.files.kernel_file import CgroupVersion
from koordpolicy.linux.writes.audit import WriteLog
from koordpolicy.linux.writes.door import KernelDoor
from koordpolicy.model.time import NANOSECONDS
from tests.contract.kernel.kernels import make_group
from tests.unit.agent.frames import LIMITS
from tests.unit.agent.nodes import NOW
from tests.unit.agent.whole import pod_object, whole_agent
from tests.vectors.policies import document, graph

CONTAINER = "a" * 64
GROUP = f"kubepods/burstable/poduid-web/{CONTAINER}"
BURSTS = document("CPUBurst", "ours", {"policy": "auto"})


class Recorded:
    """Events, as they were told."""

    def __init__(self) -> None:
        self.told: list[tuple[str, str, str]] = []

    def record(self, regarding: Any, reason: str, message: str, **_more: object) -> None:
        self.told.append((regarding["metadata"]["name"], reason, message))


def test_a_file_that_takes_nothing_is_told_of_until_it_does(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    root = FakeRoot(CgroupVersion.V1)
    hierarchy = discover_hierarchy(root)
    parts = GROUP.split("/")
    for depth in range(1, len(parts) + 1):
        make_group(root, hierarchy, "/".join(parts[:depth]))
    quota, burst = (hierarchy.located(one, GROUP)[0].path for one in ("cpu.cfs_quota_us", "cpu.cfs_burst_us"))
    for group in (GROUP, GROUP.rpartition("/")[0]):
        root.write(hierarchy.located("cpu.cfs_quota_us", group)[0].path, "100000")
    elapsed, really, stuck = 0, root.write, True

    def refusing(path: str, content: str) -> None:
        if path == burst and stuck:
            raise KernelFileError(path, "Invalid argument", 22)
        really(path, content)

    monkeypatch.setattr(root, "write", refusing)
    door = KernelDoor(root, hierarchy, lambda: elapsed, LIMITS, WriteLog(100))
    told = Recorded()

    async def story() -> None:
        nonlocal elapsed, stuck
        limits = {"limits": {"cpu": "1"}, "requests": {"cpu": "1"}}
        async with whole_agent(
            graph(BURSTS),
            NodeKernel(root, hierarchy, door),
            MemoryCluster(Store(lambda: NOW / NANOSECONDS)),
            [pod_object("web", "LS", CONTAINER, limits)],
            capacity={"cpu": "4", "memory": "8Gi", "pods": "110"},
        ) as agent:
            agent.doing.recorder = cast(Any, told)

            async def rounds(count: int) -> dict[str, str]:
                nonlocal elapsed
                for _ in range(count):
                    elapsed += LIMITS.refresh
                    agent.doing.look_again()
                    agent.collect()
                    frame = agent.frame()
                    assert frame is not None
                    await agent.carry_out(agent.strategies, frame)
                found: dict[str, str] = agent.status()["troubles"]
                return {name: why for name, why in found.items() if name.startswith("write")}

            assert not await rounds(1)  # once is no trouble: groups come and go
            assert not told.told
            (why,) = (await rounds(4)).values()
            assert "cpu.cfs_burst_us is not set to 1000000: Invalid argument (CPU burst" in why
            assert [(name, reason) for name, reason, _message in told.told] == [("web", FAILED)]
            assert [one.message for one in caplog.records].count(why) == 1
            stuck = False
            assert not await rounds(1)
            assert root.read(burst).strip() == "100000"
            stuck = True
            really(burst, "50")  # by somebody else; with the pod goes what is wrong with it
            assert await rounds(3)
            agent.watch.pods.replace([], "")
            await asyncio.sleep(0)
            assert not await rounds(1)

            stuck = False
            agent.watch.pods.replace([pod_object("web", "LS", CONTAINER, limits)], "")
            await rounds(2)
            assert root.read(burst).strip() == "100000"
            await agent.stop()
            assert root.read(burst).strip() == "0"
            root.write(quota, "50000")  # as a kubelet does while no agent runs

    asyncio.run(story())
