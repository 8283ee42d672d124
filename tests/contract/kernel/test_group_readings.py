"""What groups use, read on the model and on this machine's kernel."""

import subprocess
import sys

import pytest

from koordpolicy.linux.errors import NoSuchFile
from koordpolicy.linux.readings.group_usage import (
    read_cpu_usage,
    read_group_memory,
    read_memory_by_node,
    read_throttling,
)
from tests.contract.kernel.kernels import Kernel

_WORK = "import sys, time; x = bytearray(32 << 20); sys.stdin.readline(); e = time.process_time() + 0.2\nwhile time.process_time() < e: pass"


def test_a_new_group_uses_nothing(kernel: Kernel) -> None:
    group = kernel.make("pod")
    assert read_cpu_usage(kernel.root, kernel.hierarchy, group) == 0
    assert read_throttling(kernel.root, kernel.hierarchy, group).throttled == 0
    memory = read_group_memory(kernel.root, kernel.hierarchy, group)
    assert memory.without_page_cache <= memory.with_page_cache < 1 << 20
    assert sum(read_memory_by_node(kernel.root, kernel.hierarchy, group).values()) < 1 << 20


def test_a_group_that_has_ended_is_named(kernel: Kernel) -> None:
    for read in (read_cpu_usage, read_throttling, read_group_memory, read_memory_by_node):
        with pytest.raises(NoSuchFile) as error:
            read(kernel.root, kernel.hierarchy, f"{kernel.group}/gone")
        assert f"{kernel.group}/gone/" in error.value.path


def test_work_is_seen(kernel: Kernel) -> None:
    if kernel.group.startswith("test-"):
        pytest.skip("the model's work is its own test")
    group = kernel.make("pod")
    with subprocess.Popen([sys.executable, "-c", _WORK], stdin=subprocess.PIPE) as process:
        for mount in dict.fromkeys(
            kernel.hierarchy.directory(one, group) for one in ("cpu", "cpuacct", "memory")
        ):
            kernel.root.write(f"{mount}/cgroup.procs", str(process.pid))
        process.communicate(b"\n", timeout=60)
    assert read_cpu_usage(kernel.root, kernel.hierarchy, group) >= 150_000_000
