"""What /proc says of the node's CPU time and memory, and of single processes."""

from collections.abc import Mapping
from dataclasses import dataclass

from koordpolicy.linux.errors import Malformed
from koordpolicy.linux.readings.fields import is_number, lines, need, numbers
from koordpolicy.linux.root import PROC, SYS, KernelRoot

STAT = f"{PROC}/stat"
MEMINFO = f"{PROC}/meminfo"

_KIBIBYTE = 1024


@dataclass(frozen=True, slots=True)
class CpuTicks:
    """Time of one CPU, or all, since boot in ticks (`USER_HZ`, 100 a second). `busy` is neither idle, waiting for I/O, nor stolen."""

    busy: int
    total: int
    stolen: int = 0


@dataclass(frozen=True, slots=True)
class NodeCpuTicks:
    """Ticks of all CPUs together, and by CPU."""

    all: CpuTicks
    by_cpu: Mapping[int, CpuTicks]


def read_cpu_ticks(root: KernelRoot) -> NodeCpuTicks:
    """/proc/stat. Raises `KernelFileError`."""
    return cpu_ticks_of(root.read(STAT))


def cpu_ticks_of(content: str) -> NodeCpuTicks:
    """The same of the file's text; the lines of CPUs stand first. Raises `Malformed`."""
    by_name = {}
    for name, *rest in lines(content.partition("\nintr")[0]):
        if name.startswith("cpu"):
            by_name[name.removeprefix("cpu")] = _ticks(STAT, rest)
    if "" not in by_name:
        raise Malformed(STAT, "there is no line `cpu` in it")
    return NodeCpuTicks(by_name.pop(""), {int(name): one for name, one in by_name.items() if is_number(name)})


def _ticks(path: str, words: list[str]) -> CpuTicks:
    try:
        user, nice, system, idle, wait, irq, soft, steal = map(int, [*words, *"00000000"][:8])
    except ValueError as error:
        raise Malformed(path, f"not as expected: {error}") from error
    busy = user + nice + system + irq + soft
    return CpuTicks(busy, busy + idle + wait + steal, steal)


@dataclass(frozen=True, slots=True)
class MemoryInfo:
    """Memory of the node, or of one NUMA node, in bytes.

    `available` is the kernel's own estimate; of one NUMA node it has none, and what can be freed stands for it.
    """

    total: int
    free: int
    available: int

    @property
    def used(self) -> int:
        """In use without page cache that could be dropped."""
        return max(0, self.total - self.available)

    @property
    def used_with_page_cache(self) -> int:
        """In use, page cache included."""
        return max(0, self.total - self.free)


def read_memory_info(root: KernelRoot) -> MemoryInfo:
    """/proc/meminfo. Raises `KernelFileError`."""
    return memory_info_of(root.read(MEMINFO))


def memory_info_of(content: str) -> MemoryInfo:
    """The same of the file's text. Raises `Malformed`."""
    held = numbers(content)
    total, free, available = (
        need(MEMINFO, held, name) * _KIBIBYTE for name in ("MemTotal", "MemFree", "MemAvailable")
    )
    return MemoryInfo(total, free, available)


def read_node_memory(root: KernelRoot, node: int) -> MemoryInfo:
    """The memory of a NUMA node. Raises `KernelFileError`."""
    return zone_memory_of(node, root.read(zone_memory_path(node)))


def zone_memory_path(node: int) -> str:
    """Where the memory of a NUMA node is told."""
    return f"{SYS}/devices/system/node/node{node}/meminfo"


def zone_memory_of(node: int, content: str) -> MemoryInfo:
    """The memory of a NUMA node by its file's text. Raises `Malformed`."""
    path = zone_memory_path(node)
    held = numbers("\n".join(" ".join(words[2:]) for words in lines(content)))
    total, free = need(path, held, "MemTotal"), need(path, held, "MemFree")
    freeable = sum(held.get(name, 0) for name in ("Active(file)", "Inactive(file)", "SReclaimable"))
    return MemoryInfo(total * _KIBIBYTE, free * _KIBIBYTE, (free + freeable) * _KIBIBYTE)


@dataclass(frozen=True, slots=True)
class ProcessStat:
    """A process: `user` and `system` in ticks, `started` in ticks since boot, which tells two processes of one PID apart."""

    pid: int
    command: str
    state: str
    parent: int
    user: int
    system: int
    threads: int
    started: int


def read_process(root: KernelRoot, pid: int) -> ProcessStat:
    """/proc/PID/stat; a command may hold spaces and brackets. Raises `KernelFileError`."""
    path = f"{PROC}/{pid}/stat"
    head, _, rest = root.read(path).rpartition(")")
    words = rest.split()
    try:
        numbers_ = [int(words[index]) for index in (1, 11, 12, 17, 19)]
    except (IndexError, ValueError) as error:
        raise Malformed(path, f"not as expected: {error}") from error
    parent, user, system, threads, started = numbers_
    return ProcessStat(pid, head.partition("(")[2], words[0], parent, user, system, threads, started)


@dataclass(frozen=True, slots=True)
class ScheduleStat:
    """How long a thread ran and waited for a CPU, in nanoseconds, and how often it was put on one."""

    ran: int
    waited: int
    slices: int


def read_schedule_stat(root: KernelRoot, pid: int) -> ScheduleStat:
    """/proc/PID/schedstat of a thread by its ID; a process' own is its main thread's. Raises `KernelFileError`."""
    path = f"{PROC}/{pid}/schedstat"
    words = root.read(path).split()
    if len(words) != 3 or not all(map(is_number, words)):
        raise Malformed(path, "not three numbers")
    return ScheduleStat(*map(int, words))
