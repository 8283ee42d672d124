"""Events of CPUs that groups cause, counted by the kernel: cycles and instructions, of which CPI is made."""

import ctypes
import errno
import os
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import Final

from koordpolicy.linux.errors import KernelFileError, of_os_error
from koordpolicy.linux.host_root import HostRoot

_SYSTEM_CALLS: Final[Mapping[str, int]] = MappingProxyType({"x86_64": 298, "aarch64": 241})
"""perf_event_open by machine."""
_BY_GROUP: Final = 1 << 2
_CLOSED_ON_EXEC: Final = 1 << 3
_TIMES: Final = 0b11
"""Ask for the time that a counter was there and that it counted: where there are too few, they take turns."""
_ATTRIBUTES: Final = struct.Struct("=IIQQQQQIIQ")
"""struct perf_event_attr in its first form, 64 bytes (include/uapi/linux/perf_event.h)."""
_READ: Final = struct.Struct("=QQQ")


class PerfEvent(Enum):
    """An event, as the kernel numbers it: its type, and which of that type."""

    CYCLES = (0, 0)
    INSTRUCTIONS = (0, 1)
    TASK_CLOCK = (1, 1)
    """Nanoseconds on a CPU: counted by the kernel itself, so there on virtual machines too."""


@dataclass(frozen=True, slots=True)
class PerfCount:
    """How often an event was counted; where counters took turns, what that stands for. `share` of the time it counted."""

    value: int
    share: float


class GroupCounters:
    """Counters of one group on some CPUs, from now until they are closed.

    `directory` is the group's in the hierarchy that counts: `perf_event` of version 1, or version 2. Raises
    `KernelFileError` where the kernel, the machine or this process' rights do not allow it; nothing is left open
    then.
    """

    def __init__(
        self, root: HostRoot, directory: str, events: Sequence[PerfEvent], cpus: Iterable[int]
    ) -> None:
        self._directory = directory
        self._handles: list[tuple[PerfEvent, int]] = []
        group = root.open_directory(directory)
        try:
            for cpu in cpus:
                for event in events:
                    self._handles.append((event, _open(directory, event, group, cpu)))
        except KernelFileError:
            self.close()
            raise
        finally:
            os.close(group)

    def read(self) -> Mapping[PerfEvent, PerfCount]:
        """What was counted on all CPUs together. Raises `KernelFileError`."""
        sums: dict[PerfEvent, tuple[float, int, int]] = {}
        for event, handle in self._handles:
            try:
                value, there, counted = _READ.unpack(os.read(handle, _READ.size))
            except (OSError, struct.error) as error:
                raise KernelFileError(self._directory, f"its counters cannot be read: {error}") from error
            before = sums.get(event, (0.0, 0, 0))
            scaled = value * there / counted if counted else 0.0
            sums[event] = (before[0] + scaled, before[1] + there, before[2] + counted)
        return {
            event: PerfCount(round(value), counted / there if there else 0.0)
            for event, (value, there, counted) in sums.items()
        }

    def close(self) -> None:
        """Count no longer."""
        while self._handles:
            os.close(self._handles.pop()[1])


def _open(directory: str, event: PerfEvent, group: int, cpu: int) -> int:
    number = _SYSTEM_CALLS.get(os.uname().machine)
    if number is None:
        raise KernelFileError(directory, f"counters are not known on {os.uname().machine}", errno.ENOSYS)
    kind, config = event.value
    attributes = _ATTRIBUTES.pack(kind, _ATTRIBUTES.size, config, 0, 0, _TIMES, 0, 0, 0, 0)
    libc = ctypes.CDLL(None, use_errno=True)
    handle = libc.syscall(
        ctypes.c_long(number),
        ctypes.c_char_p(attributes),
        ctypes.c_long(group),
        ctypes.c_long(cpu),
        ctypes.c_long(-1),
        ctypes.c_ulong(_BY_GROUP | _CLOSED_ON_EXEC),
    )
    if handle < 0:
        error = of_os_error(directory, OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno())))
        raise KernelFileError(directory, f"no counter of {event.name.lower()}: {error.problem}", error.number)
    return int(handle)
