"""Counters of groups, where this machine's kernel has them."""

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from koordpolicy.linux.cgroups.hierarchy import discover_hierarchy
from koordpolicy.linux.errors import KernelFileError, NoSuchFile
from koordpolicy.linux.host_root import HostRoot
from koordpolicy.linux.readings.perf import GroupCounters, PerfEvent
from koordpolicy.linux.root import CGROUPS

_WORK = "import sys, time; sys.stdin.readline(); e = time.process_time() + 0.1\nwhile time.process_time() < e: pass"


@pytest.fixture
def root() -> Iterator[HostRoot]:
    found = HostRoot()
    yield found
    found.close()


def test_a_group_that_is_not_there_is_named(root: HostRoot) -> None:
    with pytest.raises(NoSuchFile) as error:
        GroupCounters(root, f"{CGROUPS}/nothing-of-this-name", [PerfEvent.TASK_CLOCK], [0])
    assert error.value.path == f"{CGROUPS}/nothing-of-this-name"


def test_work_in_a_group_is_counted(root: HostRoot) -> None:
    hierarchy = discover_hierarchy(root)
    if os.geteuid() != 0 or (hierarchy.v2 is None and "perf_event" not in hierarchy.v1):
        pytest.skip("counting by group needs root, and a hierarchy with perf_event")
    group = hierarchy.directory("perf_event", f"koordpolicy-test-perf-{os.getpid()}")
    root.make_directory(group)
    try:
        counters = GroupCounters(root, group, [PerfEvent.TASK_CLOCK], sorted(os.sched_getaffinity(0)))
    except KernelFileError as error:
        root.remove_directory(group)
        pytest.skip(str(error))
    try:
        with subprocess.Popen([sys.executable, "-c", _WORK], stdin=subprocess.PIPE) as process:
            root.write(f"{group}/cgroup.procs", str(process.pid))
            process.communicate(b"\n", timeout=60)
        found = counters.read()[PerfEvent.TASK_CLOCK]
        assert (found.value > 80_000_000, found.share) == (True, 1.0)
    finally:
        counters.close()
        root.remove_directory(group)
