"""What a machine's CPUs are, from /proc/cpuinfo, /sys and resctrl."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from koordpolicy.linux.errors import KernelFileError
from koordpolicy.linux.root import PROC, RESCTRL, SYS, KernelRoot
from koordpolicy.model.topology import Processor

_INFO: Final = f"{PROC}/cpuinfo"
_CPUS: Final = f"{SYS}/devices/system/cpu"
_TURBO: Final = ((f"{_CPUS}/intel_pstate/no_turbo", "0"), (f"{_CPUS}/cpufreq/boost", "1"))
"""Files that tell of faster clocks, by what they say where these are on."""
_MASK: Final = f"{RESCTRL}/info/L3/cbm_mask"


@dataclass(frozen=True, slots=True)
class CPUFacts:
    """Model, vendor and abilities; `cache_mask` is the mask of all ways of the third-level cache, "" where resctrl is not."""

    model: str = ""
    vendor: str = ""
    hyper_threading: bool = False
    turbo: bool = False
    cache_mask: str = ""


def read_cpu_facts(root: KernelRoot, processors: Sequence[Processor]) -> CPUFacts:
    """What these CPUs are. What the kernel does not tell is empty or false. Raises `KernelFileError`."""
    said: dict[str, str] = {}
    for line in root.read(_INFO).splitlines():
        name, _, value = line.partition(":")
        said.setdefault(name.strip(), value.strip())
    cores = {(one.socket, one.core) for one in processors}
    return CPUFacts(
        said.get("model name", ""),
        said.get("vendor_id", ""),
        len(cores) < len(processors),
        any(_read(root, path) == on for path, on in _TURBO),
        _read(root, _MASK),
    )


def _read(root: KernelRoot, path: str) -> str:
    try:
        return root.read(path).strip()
    except KernelFileError:
        return ""
