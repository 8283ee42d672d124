"""What rounds read and write on this machine's kernel, in groups of the test's own: pressure, waiting, limits of disks."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from koordpolicy.agent.apply import apply
from koordpolicy.agent.collectors.kernel_signals import KernelSignals
from koordpolicy.agent.rounds.disks import DiskRounds
from koordpolicy.linux.host_root import HostRoot
from koordpolicy.linux.readings.block import read_block_devices
from koordpolicy.linux.root import CGROUPS
from tests.contract.kernel.kernels import remove_groups
from tests.unit.agent.frames import FakeNode, pod
from tests.vectors.policies import document, graph

NEEDED = ("cpu", "cpuset", "memory", "cpuacct", "blkio")
BATCH = pod("batch", "BE")
BUSY = "import sys\nsys.stdout.write('x'); sys.stdout.flush()\nwhile True: pass"

pytestmark = pytest.mark.skipif(
    not all(os.access(f"{CGROUPS}/{one}", os.W_OK) for one in NEEDED),
    reason="this machine's control groups (version 1, with blkio) cannot be written",
)


@pytest.fixture
def node() -> Iterator[FakeNode]:
    parent = f"koordpolicy-test-rounds-{os.getpid()}"
    root = HostRoot()
    node = FakeNode([BATCH], root=root, parent=parent)
    paths = [f"{parent}", f"{parent}/kubepods", f"{parent}/kubepods/besteffort"]
    for group in (*paths, node.group(BATCH), f"{node.group(BATCH)}/main"):
        for controller in ("blkio", "perf_event"):  # the latter is version 2's here
            root.make_directory(node.hierarchy.directory(controller, group))
    try:
        yield node
    finally:
        for controller in (*NEEDED, "perf_event"):
            remove_groups(root, node.hierarchy.directory(controller, parent))
        root.close()


def test_disks_are_limited_and_given_back(node: FakeNode) -> None:
    disks = [one for one in read_block_devices(node.root).by_name.values() if not one.on and one.number]
    if not disks:
        pytest.skip("this machine has no disks")
    rounds, disk, compiled = DiskRounds(), disks[-1], graph()
    where = Path(CGROUPS, "blkio", node.kernel.parent, "kubepods/besteffort/blkio.throttle.read_bps_device")
    for limit, said in ((1 << 30, f"{disk.number} {1 << 30}"), (0, "")):
        blocks = [{"name": disk.name, "readBPS": limit}] if limit else []
        compiled = graph(
            document("Isolation", "be", {"group": "BE", "disk": {"enabled": True}, "blocks": blocks})
        )
        plan = rounds.plan(node.frame(compiled))
        assert not plan.notes
        apply(plan, node.kernel.door, node.kernel.groups(node.node_pods()))
        assert where.read_text().strip() == said
    assert not rounds.plan(node.frame(compiled)).writes


def test_pressure_and_waiting_are_told_of_groups_with_work(node: FakeNode) -> None:
    group, signals = f"{node.group(BATCH)}/main", KernelSignals(node.root, node.hierarchy)
    with subprocess.Popen([sys.executable, "-c", BUSY], stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None and process.stdout.read(1) == b"x"
            node.root.write(f"{node.hierarchy.directory('cpu', group)}/cgroup.procs", str(process.pid))
            waited = signals.waited(group)
            assert set(waited) == {process.pid}
            if not Path(CGROUPS, "unified", group, "cpu.pressure").exists():
                pytest.skip("this kernel tells no pressure of groups")
            assert 0 <= signals.pressure(group, "cpu").some.average_10 <= 100
        finally:
            process.kill()
