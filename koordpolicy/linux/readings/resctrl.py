"""What resctrl can do here, and what its groups have: cache ways, memory bandwidth, use."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from koordpolicy.linux.errors import KernelFileError, Malformed
from koordpolicy.linux.readings.fields import is_number
from koordpolicy.linux.root import RESCTRL, KernelRoot

_NO_GROUPS = frozenset({"info", "mon_data", "mon_groups"})


def read_cache_mask(root: KernelRoot) -> int:
    """The ways of the third-level cache as a mask. Raises `NoSuchFile` where resctrl or the CPU has no such control."""
    path = f"{RESCTRL}/info/L3/cbm_mask"
    try:
        return int(root.read(path).strip(), 16)
    except ValueError as error:
        raise Malformed(path, f"not as expected: {error}") from error


def read_schemata(root: KernelRoot, group: str = "") -> Mapping[str, Mapping[int, str]]:
    """What a group may use: resource → cache → mask or share, as the kernel writes it. Raises `KernelFileError`."""
    path = "/".join(part for part in (RESCTRL, group, "schemata") if part)
    found = {}
    for line in root.read(path).splitlines():
        name, colon, rest = line.strip().partition(":")
        pairs = [part.strip().partition("=") for part in rest.split(";") if part.strip()]
        if not colon or not all(is_number(cache) for cache, _, _ in pairs):
            raise Malformed(path, f"`{line.strip()}` is no line of a resource")
        found[name] = {int(cache): value for cache, _, value in pairs}
    return found


def resctrl_groups(root: KernelRoot) -> Sequence[str]:
    """The names of all groups. Raises `NoSuchFile` where resctrl is not mounted."""
    return [
        name
        for name in root.names(RESCTRL)
        if name not in _NO_GROUPS and root.exists(f"{RESCTRL}/{name}/schemata")
    ]


def read_group_tasks(root: KernelRoot, group: str = "") -> frozenset[int]:
    """The thread IDs in a group. Raises `NoSuchFile` where there is none of that name."""
    path = "/".join(part for part in (RESCTRL, group, "tasks") if part)
    words = root.read(path).split()
    if not all(map(is_number, words)):
        raise Malformed(path, "not a list of tasks")
    return frozenset(map(int, words))


@dataclass(frozen=True, slots=True)
class CacheUse:
    """Of one cache: bytes of it in use, and bytes moved from and to memory since the group began."""

    occupied: int
    local: int
    total: int


def read_cache_use(root: KernelRoot, group: str = "") -> Mapping[int, CacheUse]:
    """What a group uses, by cache; caches that the CPU cannot count now are left out. Raises `NoSuchFile`."""
    directory = "/".join(part for part in (RESCTRL, group, "mon_data") if part)
    found = {}
    for name in root.names(directory):
        cache = name.removeprefix("mon_L3_")
        if is_number(cache):
            try:
                numbers = [
                    int(root.read(f"{directory}/{name}/{file}"))
                    for file in ("llc_occupancy", "mbm_local_bytes", "mbm_total_bytes")
                ]
            except (ValueError, KernelFileError):  # "Unavailable"
                continue
            found[int(cache)] = CacheUse(*numbers)
    return found
