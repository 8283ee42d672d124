"""Sets of CPUs in the kernel's list format: `0-3,8,10-11`. The empty set is empty text."""

import re
from collections.abc import Iterable
from typing import Final

HIGHEST_CPU: Final = 65_535
"""No machine has more; it keeps a hostile `0-4000000000` from eating memory."""

_RANGE: Final = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9}))?", re.ASCII)
_LONGEST: Final = 1 << 16


def parse_cpuset(source: str) -> frozenset[int]:
    """The CPUs of a list. Raises ValueError for anything the kernel would not write."""
    source = source.strip()
    if not source:
        return frozenset()
    if len(source) > _LONGEST:
        raise ValueError(f"a CPU list of more than {_LONGEST} characters")
    cpus: set[int] = set()
    for part in source.split(","):
        match = _RANGE.fullmatch(part.strip())
        if match is None:
            raise ValueError(f"`{part[:32]}` is not a CPU or a range of CPUs such as `0-3`")
        first = int(match[1])
        last = int(match[2]) if match[2] is not None else first
        if last < first:
            raise ValueError(f"the CPU range `{part}` runs backwards")
        if last > HIGHEST_CPU:
            raise ValueError(f"CPU {last} is beyond the highest possible, {HIGHEST_CPU}")
        cpus.update(range(first, last + 1))
    return frozenset(cpus)


def cpuset_text(cpus: Iterable[int]) -> str:
    """The CPUs as the kernel writes them: `{0, 1, 2, 8}` is `0-2,8`."""
    parts: list[list[int]] = []
    for cpu in sorted(set(cpus)):
        if parts and cpu == parts[-1][1] + 1:
            parts[-1][1] = cpu
        else:
            parts.append([cpu, cpu])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in parts)
