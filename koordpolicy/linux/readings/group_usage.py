"""What groups use and wait for: CPU time, throttling, memory with and without page cache, cold memory."""

from collections.abc import Mapping
from dataclasses import dataclass

from koordpolicy.linux.cgroups.hierarchy import Hierarchy, LocatedFile
from koordpolicy.linux.errors import Malformed
from koordpolicy.linux.files.kernel_file import CgroupVersion
from koordpolicy.linux.readings.fields import is_number, lines, need, numbers
from koordpolicy.linux.readings.value import read_located
from koordpolicy.linux.root import KernelRoot

_MICROSECOND = 1000
_PAGE = 4096


def read_cpu_usage(root: KernelRoot, hierarchy: Hierarchy, group: str) -> int:
    """CPU time that a group and all below it used, in nanoseconds. Raises `KernelFileError`."""
    return cpu_usage_of(*read_located(root, hierarchy, "cpuacct.usage", group))


def cpu_usage_of(place: LocatedFile, content: str) -> int:
    """The same of the file's text. Raises `Malformed`."""
    if place.entry is place.file.of(CgroupVersion.V2):
        return need(place.path, numbers(content), "usage_usec") * _MICROSECOND
    if not is_number(content.strip()):
        raise Malformed(place.path, "not a number")
    return int(content)


@dataclass(frozen=True, slots=True)
class Throttling:
    """Periods in which a group had something to run, those in which its quota ran out, and nanoseconds it waited then."""

    periods: int
    throttled: int
    time: int


def read_throttling(root: KernelRoot, hierarchy: Hierarchy, group: str) -> Throttling:
    """cpu.stat. A group without a quota was never throttled. Raises `KernelFileError`."""
    _, content = read_located(root, hierarchy, "cpu.stat", group)
    return throttling_of(content)


def throttling_of(content: str) -> Throttling:
    """The same of the file's text."""
    held = numbers(content)
    time = (
        held["throttled_time"] if "throttled_time" in held else held.get("throttled_usec", 0) * _MICROSECOND
    )
    return Throttling(held.get("nr_periods", 0), held.get("nr_throttled", 0), time)


@dataclass(frozen=True, slots=True)
class GroupMemory:
    """Memory of a group and all below it, in bytes, as memory.stat counts it."""

    inactive_anonymous: int
    active_anonymous: int
    unevictable: int
    inactive_file: int
    active_file: int

    @property
    def without_page_cache(self) -> int:
        """What cannot be dropped."""
        return self.inactive_anonymous + self.active_anonymous + self.unevictable

    @property
    def with_page_cache(self) -> int:
        """All of it, page cache included."""
        return self.without_page_cache + self.inactive_file + self.active_file

    def with_hot_page_cache(self, cold: int) -> int:
        """All of it but `cold` bytes that nobody looked at for long."""
        return max(0, self.with_page_cache - cold)


COUNTED = ("inactive_anon", "active_anon", "unevictable", "inactive_file", "active_file")
"""Lines of memory.stat, in the order of `GroupMemory`'s fields."""


def read_group_memory(root: KernelRoot, hierarchy: Hierarchy, group: str) -> GroupMemory:
    """memory.stat. Raises `KernelFileError`."""
    place, content = read_located(root, hierarchy, "memory.stat", group)
    return group_memory_of(place, content)


def group_memory_of(place: LocatedFile, content: str) -> GroupMemory:
    """The same of the file's text. Raises `Malformed`."""
    held = numbers(content)
    # Version 1 counts the group alone, and what is below it under names of their own.
    prefix = "total_" if "total_inactive_anon" in held else ""
    return GroupMemory(*(need(place.path, held, prefix + name) for name in COUNTED))


def read_memory_by_node(root: KernelRoot, hierarchy: Hierarchy, group: str) -> Mapping[int, int]:
    """Bytes of a group and all below it by NUMA node, page cache included. Raises `KernelFileError`."""
    place, content = read_located(root, hierarchy, "memory.numa_stat", group)
    rows = {words[0].partition("=")[0]: words for words in lines(content)}
    if "anon" in rows and "total" not in {name.removeprefix("hierarchical_") for name in rows}:
        sums: dict[int, int] = {}
        for name in ("anon", "file", "unevictable"):
            for node, amount in _by_node(rows.get(name, [])).items():
                sums[node] = sums.get(node, 0) + amount
        return sums
    row = rows.get("hierarchical_total", rows.get("total"))
    if row is None:
        raise Malformed(place.path, "there is no line `total` in it")
    return {node: pages * _PAGE for node, pages in _by_node(row).items()}


def _by_node(words: list[str]) -> dict[int, int]:
    pairs = (word.partition("=") for word in words)
    return {
        int(name[1:]): int(value)
        for name, _, value in pairs
        if name[:1] == "N" and is_number(name[1:]) and is_number(value)
    }


def read_cold_memory(root: KernelRoot, hierarchy: Hierarchy, group: str, age: int) -> int:
    """Bytes in the ranges of ages from number `age` on, the youngest being 0. Raises `NoSuchFile` on kernels without kidled.

    The file has a column a bucket of ages, headed `[n,m)`; of its rows those count whose names begin with `c`
    (clean) or `d` (dirty), as kidled names pages.
    """
    place, content = read_located(root, hierarchy, "memory.idle_page_stats", group)
    total = found = 0
    for name, *rest in lines(content):
        if name[:1] not in {"c", "d"} or not rest or not all(map(is_number, rest)):
            continue
        found += 1
        total += sum(map(int, rest[age:]))
    if not found:
        raise Malformed(place.path, "there are no ages of pages in it")
    return total
