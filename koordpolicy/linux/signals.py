"""Signals to the processes of a group: only those that are in it when they are asked get one."""

import os
import signal
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Protocol

from koordpolicy.linux.cgroups.hierarchy import Hierarchy
from koordpolicy.linux.errors import KernelFileError
from koordpolicy.linux.readings.members import read_processes, sees_all_processes
from koordpolicy.linux.root import KernelRoot


class GroupSignals(Protocol):
    """Ends what runs in a group."""

    def end(self, group: str, *, at_once: bool) -> int:
        """Ask the processes of a group to end, or end them `at_once`; how many there were.

        Raises `KernelFileError` where they cannot be told, or may not be ended.
        """
        ...


class HostSignals:
    """This machine's processes. A process is held before it is looked for in its group: no other one gets its signal."""

    def __init__(self, root: KernelRoot, hierarchy: Hierarchy) -> None:
        self._root = root
        self._hierarchy = hierarchy

    def end(self, group: str, *, at_once: bool) -> int:
        if not sees_all_processes(self._root, self._hierarchy):
            raise KernelFileError(group, "its processes are in another PID namespace than the agent")
        number = signal.SIGKILL if at_once else signal.SIGTERM
        return signalled(number, lambda: read_processes(self._root, self._hierarchy, group), group)


def signalled(number: signal.Signals, members: Callable[[], Sequence[int]], group: str) -> int:
    """Send a signal to all members, and how many there were. Raises `KernelFileError`."""
    handles: dict[int, int] = {}
    try:
        for pid in members():
            with suppress(ProcessLookupError):
                handles[pid] = os.pidfd_open(pid)
        still = set(members())
        for pid, handle in handles.items():
            if pid in still:
                with suppress(ProcessLookupError):
                    signal.pidfd_send_signal(handle, number)
        return len(still & handles.keys())
    except OSError as error:
        raise KernelFileError(
            group, f"its processes cannot be ended: {error.strerror}", error.errno or 0
        ) from error
    finally:
        for handle in handles.values():
            os.close(handle)
