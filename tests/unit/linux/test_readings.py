"""Readers: of texts as kernels write them, of texts as they do not, and of this machine."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from koordpolicy.linux.cgroups.hierarchy import Hierarchy, discover_hierarchy
from koordpolicy.linux.errors import KernelFileError, Malformed, NoSuchFile
from koordpolicy.linux.fake.root import FakeRoot
from koordpolicy.linux.files.kernel_file import CgroupVersion
from koordpolicy.linux.host_root import HostRoot
from koordpolicy.linux.readings.block import read_block_devices, read_mounts
from koordpolicy.linux.readings.fields import NumberPicker
from koordpolicy.linux.readings.group_usage import (
    read_cold_memory,
    read_cpu_usage,
    read_group_memory,
    read_memory_by_node,
    read_throttling,
)
from koordpolicy.linux.readings.held import HeldFiles
from koordpolicy.linux.readings.pressure import PressureResource, read_group_pressure, read_node_pressure
from koordpolicy.linux.readings.processes import (
    read_cpu_ticks,
    read_memory_info,
    read_node_memory,
    read_process,
    read_schedule_stat,
)
from koordpolicy.linux.readings.resctrl import read_cache_mask, read_cache_use, read_schemata, resctrl_groups
from koordpolicy.linux.readings.topology import read_last_level_caches, read_node_cpus, read_processors
from koordpolicy.linux.root import KernelRoot
from koordpolicy.model.topology import Processor

CPU = "/sys/devices/system/cpu"
NODE = "/sys/devices/system/node"
V2 = "/sys/fs/cgroup/g"
PRESSURE = (
    "some avg10=1.50 avg60=0.10 avg300=0.00 total=12345\nfull avg10=0.50 avg60=0.00 avg300=0.00 total=99\n"
)


def machine() -> dict[str, str]:
    """Two sockets of two cores with two threads each."""
    files = {
        f"{CPU}/online": "0-7\n",
        f"{NODE}/node0/cpulist": "0-1,4-5\n",
        f"{NODE}/node1/cpulist": "2-3,6-7\n",
    }
    for cpu in range(8):
        socket = cpu % 4 // 2
        files[f"{CPU}/cpu{cpu}/topology/physical_package_id"] = f"{socket}\n"
        files[f"{CPU}/cpu{cpu}/topology/core_id"] = f"{cpu % 2}\n"
        files[f"{CPU}/cpu{cpu}/cache/index3/id"] = f"{socket}\n"
        files[f"{CPU}/cpu{cpu}/cache/index3/shared_cpu_list"] = "0-1,4-5\n" if socket == 0 else "2-3,6-7\n"
    return files


FILES: Mapping[str, str] = {
    **machine(),
    "/proc/stat": "cpu  10 1 5 100 7 2 3 4 0 0\ncpu0 10 1 5 100 7 2 3 4 0 0\nintr 5\n",
    "/proc/meminfo": "MemTotal: 100 kB\nMemFree: 20 kB\nMemAvailable: 60 kB\nHugePages_Total: 0\n",
    f"{NODE}/node0/meminfo": (
        "Node 0 MemTotal: 100 kB\nNode 0 MemFree: 20 kB\nNode 0 Active(file): 10 kB\n"
        "Node 0 Inactive(file): 5 kB\nNode 0 SReclaimable: 1 kB\n"
    ),
    "/proc/7/stat": "7 (a (b) c) S 1 7 7 0 -1 4194560 1 2 3 4 11 12 0 0 20 0 3 0 999 1 1\n",
    "/proc/7/schedstat": "100 20 3\n",
    "/proc/7/mountinfo": "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n2 1 253:0 / /a\\040b rw - ext4 /dev/x rw\n",
    "/proc/pressure/cpu": PRESSURE,
    f"{V2}/cpu.pressure": PRESSURE.splitlines()[0],
    f"{V2}/memory.numa_stat": "anon N0=4096 N1=0\nfile N0=1 N1=8192\nunevictable N0=0 N1=0\nslab N0=7 N1=7\n",
    "/sys/fs/resctrl/schemata": "    MB:0=100;1=100\n    L3:0=fff;1=fff\n",
    "/sys/fs/resctrl/BE/schemata": "L3:0=f;1=f\n",
    "/sys/fs/resctrl/info/L3/cbm_mask": "fff\n",
    "/sys/fs/resctrl/mon_data/mon_L3_00/llc_occupancy": "5\n",
    "/sys/fs/resctrl/mon_data/mon_L3_00/mbm_local_bytes": "6\n",
    "/sys/fs/resctrl/mon_data/mon_L3_00/mbm_total_bytes": "7\n",
    "/sys/fs/resctrl/mon_data/mon_L3_01/llc_occupancy": "Unavailable\n",
    "/sys/block/sda/dev": "8:0\n",
    "/sys/block/sda/sda1/dev": "8:1\n",
    "/sys/block/sda/sda1/partition": "1\n",
    "/sys/block/dm-0/dev": "253:0\n",
    "/sys/block/dm-0/dm/name": "vg-data\n",
    "/sys/block/dm-0/slaves/sda1/dev": "8:1\n",
}


def fake(files: Mapping[str, str] = FILES) -> tuple[FakeRoot, Hierarchy]:
    root = FakeRoot(CgroupVersion.V2, extra=files)
    root.make_directory(V2)
    return root, discover_hierarchy(root)


def test_the_node() -> None:
    root, _ = fake()
    ticks, memory, one = read_cpu_ticks(root), read_memory_info(root), read_node_memory(root, 0)
    assert (ticks.all.busy, ticks.all.total, ticks.by_cpu[0].stolen) == (21, 132, 4)
    assert (memory.used, memory.used_with_page_cache) == (40 << 10, 80 << 10)
    assert (one.used, one.used_with_page_cache) == (64 << 10, 80 << 10)


def test_a_process_whose_name_holds_brackets() -> None:
    root, _ = fake()
    found, schedule = read_process(root, 7), read_schedule_stat(root, 7)
    assert (found.command, found.state, found.parent) == ("a (b) c", "S", 1)
    assert (found.user, found.system, found.threads, found.started) == (11, 12, 3, 999)
    assert (schedule.ran, schedule.waited, schedule.slices) == (100, 20, 3)


def test_cpus_and_caches() -> None:
    root, _ = fake()
    assert read_processors(root)[:4] == (
        Processor(0, 0, 0, 0),
        Processor(1, 1, 0, 0),
        Processor(2, 2, 1, 1),
        Processor(3, 3, 1, 1),
    )
    assert [one.core for one in read_processors(root)] == [0, 1, 2, 3, 0, 1, 2, 3]
    assert read_last_level_caches(root) == read_node_cpus(root)


def test_pressure() -> None:
    root, hierarchy = fake()
    node, group = (
        read_node_pressure(root, PressureResource.CPU),
        read_group_pressure(root, hierarchy, "g", PressureResource.CPU),
    )
    assert node.full is not None and (node.some.average_10, node.full.total) == (1.5, 99)
    assert (group.some, group.full) == (node.some, None)


def test_memory_by_node() -> None:
    root, hierarchy = fake()
    assert read_memory_by_node(root, hierarchy, "g") == {0: 4097, 1: 8192}


def test_cold_memory() -> None:
    content = "# version: 1.0\n  [1,2) [2,5) [5,15)\n  csei 1 2 3\n  dsei 10 20 30\n  slab 9 9 9\n"
    root = FakeRoot(CgroupVersion.V1, extra={"/sys/fs/cgroup/memory/g/memory.idle_page_stats": content})
    hierarchy = discover_hierarchy(root)
    assert read_cold_memory(root, hierarchy, "g", 1) == 2 + 3 + 20 + 30
    assert read_cold_memory(root, hierarchy, "g", 9) == 0
    for group in ("gone", ""):
        with pytest.raises(NoSuchFile, match="idle_page_stats"):
            read_cold_memory(root, hierarchy, group, 1)


def test_resctrl() -> None:
    root, _ = fake()
    assert (read_cache_mask(root), resctrl_groups(root)) == (0xFFF, ["BE"])
    assert read_schemata(root)["MB"] == {0: "100", 1: "100"}
    assert {cache: (one.occupied, one.total) for cache, one in read_cache_use(root).items()} == {0: (5, 7)}


@pytest.mark.parametrize("device", ["sda", "/dev/sda1", "8:1", "vg-data", "dm-0", "253:0"])
def test_the_disk_below_a_device(device: str) -> None:
    root, _ = fake()
    disk = read_block_devices(root).disk(device)
    assert disk is not None and disk.number == "8:0"
    assert read_block_devices(root).disk("sdz") is None
    assert read_mounts(root, 7) == {"/": "8:1", "/a b": "253:0"}


READERS: Mapping[str, Callable[[KernelRoot, Hierarchy], object]] = {
    "/proc/stat": lambda root, _: read_cpu_ticks(root),
    "/proc/meminfo": lambda root, _: read_memory_info(root),
    f"{NODE}/node0/meminfo": lambda root, _: read_node_memory(root, 0),
    "/proc/7/stat": lambda root, _: read_process(root, 7),
    "/proc/7/schedstat": lambda root, _: read_schedule_stat(root, 7),
    "/proc/7/mountinfo": lambda root, _: read_mounts(root, 7),
    "/proc/pressure/cpu": lambda root, _: read_node_pressure(root, PressureResource.CPU),
    f"{CPU}/online": lambda root, _: read_processors(root),
    f"{CPU}/cpu3/topology/core_id": lambda root, _: read_processors(root),
    "/sys/fs/resctrl/schemata": lambda root, _: read_schemata(root),
    "/sys/fs/resctrl/info/L3/cbm_mask": lambda root, _: read_cache_mask(root),
    f"{V2}/cpu.pressure": lambda root, hierarchy: read_group_pressure(
        root, hierarchy, "g", PressureResource.CPU
    ),
}


@pytest.mark.parametrize("path", READERS)
def test_what_is_not_there_is_named(path: str) -> None:
    root, hierarchy = fake({name: text for name, text in FILES.items() if name != path})
    with pytest.raises(NoSuchFile) as error:
        READERS[path](root, hierarchy)
    assert error.value.path == path


@given(st.sampled_from(sorted(READERS)), st.data())
def test_whatever_a_file_says_there_is_a_value_or_an_error(path: str, data: st.DataObject) -> None:
    start, length = data.draw(st.integers(0, 200)), data.draw(st.integers(0, 40))
    text = FILES[path]
    spoiled = text[:start] + data.draw(st.text(max_size=12)) + text[start + length :]
    root, hierarchy = fake({**FILES, path: spoiled})
    named = path
    try:
        READERS[path](root, hierarchy)
    except Malformed as error:
        named = error.path
    assert named == path


def test_this_machine() -> None:
    """Every reader on the real files, where the kernel has them."""
    root = HostRoot()
    ticks, memory = read_cpu_ticks(root), read_memory_info(root)
    assert (
        0 < ticks.all.busy < ticks.all.total and 0 < memory.used < memory.used_with_page_cache <= memory.total
    )
    assert sorted(ticks.by_cpu) == [one.cpu for one in read_processors(root)]
    assert read_process(root, 1).threads >= 1
    assert "/" in read_mounts(root)
    for optional in (
        lambda: read_node_pressure(root, PressureResource.MEMORY),
        lambda: read_schedule_stat(root, 1),
        lambda: read_block_devices(root),
        lambda: read_last_level_caches(root),
        lambda: read_cache_mask(root),
    ):
        with suppress(NoSuchFile):
            optional()
    try:
        hierarchy = discover_hierarchy(root)
        groups: tuple[Callable[[], object], ...] = (
            lambda: read_cpu_usage(root, hierarchy, ""),
            lambda: read_throttling(root, hierarchy, ""),
            lambda: read_group_memory(root, hierarchy, ""),
            lambda: read_memory_by_node(root, hierarchy, ""),
            lambda: read_group_pressure(root, hierarchy, "", PressureResource.IO),
        )
    except KernelFileError:
        pytest.skip("no cgroups are mounted on this machine")
    for read in groups:
        with suppress(NoSuchFile):
            read()
    root.close()


def test_numbers_are_picked_wherever_they_stand() -> None:
    picker = NumberPicker(("b", "d"))
    for content, numbers in (
        (b"a 1\nb 2\nc 3\nd 4\n", [2, 4]),
        (b"a 1\nb 5\nc 3\nd 6\n", [5, 6]),
        (b"d 7\nb 8\n", [8, 7]),
        (b"a 1\nb 2\n", None),
        (b"b x\nd 1\n", None),
        (b"", None),
        (b"b 9\nd 10", [9, 10]),
    ):
        assert picker.pick(content) == numbers


def test_a_file_that_is_in_no_version_is_named_where_it_is_likeliest() -> None:
    """Where both versions are mounted, the names of version 2 say nothing to who runs version 1."""
    root = FakeRoot(CgroupVersion.V1)
    both = replace(discover_hierarchy(root), v2="unified")
    assert len(both.located("memory.stat", "gone")) == 2
    for read in (
        lambda: read_group_memory(root, both, "gone"),
        lambda: HeldFiles(root, both, 10).located("memory.stat", "gone"),
    ):
        with pytest.raises(NoSuchFile) as raised:
            read()
        assert raised.value.path == f"{both.directory('memory', 'gone')}/memory.stat"
