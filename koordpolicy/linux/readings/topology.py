"""The machine's CPUs: cores, sockets, NUMA nodes and shared caches, from /sys."""

from koordpolicy.linux.errors import Malformed, NoSuchFile
from koordpolicy.linux.readings.fields import is_number
from koordpolicy.linux.root import PROC, SYS, KernelRoot
from koordpolicy.model.cpuset import parse_cpuset
from koordpolicy.model.topology import Processor

_CPUS = f"{SYS}/devices/system/cpu"
_NODES = f"{SYS}/devices/system/node"


def read_processors(root: KernelRoot) -> tuple[Processor, ...]:
    """All CPUs that are online, by number. Cores count through the machine, as lscpu counts them. Raises `KernelFileError`."""
    nodes = {cpu: node for node, cpus in read_node_cpus(root).items() for cpu in cpus}
    places = {
        cpu: (_number(root, cpu, "physical_package_id"), _number(root, cpu, "core_id"))
        for cpu in sorted(_list(root, f"{_CPUS}/online"))
    }
    cores = {place: core for core, place in enumerate(dict.fromkeys(places.values()))}
    return tuple(
        Processor(cpu, cores[place], max(0, place[0]), nodes.get(cpu, 0)) for cpu, place in places.items()
    )


def read_node_cpus(root: KernelRoot) -> dict[int, frozenset[int]]:
    """The CPUs of each NUMA node that has any; none where the kernel knows no NUMA. Raises `KernelFileError`."""
    try:
        names = root.names(_NODES)
    except NoSuchFile:
        return {}
    numbers = (name.removeprefix("node") for name in names if name.startswith("node"))
    found = {
        int(number): _list(root, f"{_NODES}/node{number}/cpulist") for number in numbers if is_number(number)
    }
    return {node: cpus for node, cpus in sorted(found.items()) if cpus}


def read_last_level_caches(root: KernelRoot) -> dict[int, frozenset[int]]:
    """The CPUs of each third-level cache by its ID, as resctrl counts them; none where there is none. Raises `KernelFileError`."""
    caches: dict[int, frozenset[int]] = {}
    for cpu in sorted(_list(root, f"{_CPUS}/online")):
        directory = f"{_CPUS}/cpu{cpu}/cache/index3"
        try:
            identity = root.read(f"{directory}/id").strip()
            if is_number(identity):
                caches.setdefault(int(identity), _list(root, f"{directory}/shared_cpu_list"))
        except NoSuchFile:
            continue
    return caches


def read_vendor(root: KernelRoot) -> str:
    """Who made the CPU, `GenuineIntel`; empty where the kernel does not say, as on Arm. Raises `KernelFileError`."""
    for line in root.read(f"{PROC}/cpuinfo").splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "vendor_id":
            return value.strip()
    return ""


def _list(root: KernelRoot, path: str) -> frozenset[int]:
    try:
        return parse_cpuset(root.read(path))
    except ValueError as error:
        raise Malformed(path, str(error)) from error


def _number(root: KernelRoot, cpu: int, name: str) -> int:
    path = f"{_CPUS}/cpu{cpu}/topology/{name}"
    try:
        return int(root.read(path))
    except ValueError as error:
        raise Malformed(path, f"not as expected: {error}") from error
