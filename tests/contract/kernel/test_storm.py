"""Killed in a storm of writes, 20 times, and started again: this machine's kernel files end as they are wanted."""

import subprocess
import sys
import textwrap
import time

import pytest

from koordpolicy.linux.files.kernel_file import CgroupVersion, FileWriter
from koordpolicy.linux.readings.value import read_value
from koordpolicy.linux.writes.audit import WriteLog
from koordpolicy.linux.writes.door import DoorLimits, KernelDoor
from koordpolicy.linux.writes.write import ARRIVED, FileWrite
from tests.contract.kernel.kernels import host

LIMITS = DoorLimits(refresh=1 << 40, attempts=3, first_delay=1, longest_delay=1, most_files=1000)
STORM = """
    import sys
    from koordpolicy.linux.cgroups.hierarchy import discover_hierarchy
    from koordpolicy.linux.files.kernel_file import FileWriter
    from koordpolicy.linux.host_root import HostRoot
    from koordpolicy.linux.writes.audit import WriteLog
    from koordpolicy.linux.writes.door import DoorLimits, KernelDoor
    from koordpolicy.linux.writes.write import FileWrite

    pod, container = sys.argv[1:]
    root = HostRoot()
    door = KernelDoor(root, discover_hierarchy(root), lambda: 0, DoorLimits(1, 3, 1, 1, 1000), WriteLog(10))
    sys.stdout.write("ready")
    sys.stdout.flush()
    for turn in range(10_000_000):
        for file, writer, value in (
            ("cpu.cfs_quota_us", FileWriter.CPU_BURST, 10_000 + turn % 90_000),
            ("cpuset.cpus", FileWriter.CPUSET, frozenset({turn % 2})),
            ("cpu.shares", FileWriter.BATCH_RESOURCES, 2 + turn % 1000),
        ):
            door.write_leveled([[FileWrite(file, value, writer, pod)], [FileWrite(file, value, writer, container)]])
"""
WANTED = (
    ("cpu.cfs_quota_us", FileWriter.CPU_BURST, 25_000),
    ("cpuset.cpus", FileWriter.CPUSET, frozenset({0})),
    ("cpu.shares", FileWriter.BATCH_RESOURCES, 333),
)


def test_files_end_as_wanted_after_twenty_kills() -> None:
    with host(CgroupVersion.V1) as kernel:
        if kernel is None or len(kernel.cpus) < 2:
            pytest.skip("cgroups v1 with two CPUs cannot be written on this machine")
        pod, container = kernel.make("pod"), kernel.make("pod/container")
        torn = 0
        for turn in range(20):
            command = [sys.executable, "-c", textwrap.dedent(STORM), pod, container]
            with subprocess.Popen(command, stdout=subprocess.PIPE) as storm:
                assert storm.stdout is not None and storm.stdout.read(5) == b"ready"
                time.sleep(0.003 + turn * 0.001)
                storm.kill()
            states = [
                [read_value(kernel.root, kernel.hierarchy, file, one) for file, _, _ in WANTED]
                for one in (pod, container)
            ]
            torn += states[0] != states[1]
            door = KernelDoor(kernel.root, kernel.hierarchy, lambda: 0, LIMITS, WriteLog(10))
            for file, writer, value in WANTED:
                levels = [[FileWrite(file, value, writer, one)] for one in (pod, container)]
                assert {one.outcome for one in door.write_leveled(levels)} <= ARRIVED
                for one in (pod, container):
                    assert read_value(kernel.root, kernel.hierarchy, file, one) == value
        assert torn > 0, "no storm was cut in the midst of a change"
