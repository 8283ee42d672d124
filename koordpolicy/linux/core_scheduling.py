"""Cookies of core scheduling: tasks of one cookie may run beside each other on the siblings of a core, others may not.

The kernel has no file for them: a process asks it by prctl (Documentation/admin-guide/hw-vuln/core-scheduling.rst).
"""

import ctypes
import errno
import os
import threading
from collections.abc import Callable, Sequence
from typing import Final, Protocol

from koordpolicy.linux.errors import KernelFileError, of_os_error

_PRCTL: Final = 62
"""PR_SCHED_CORE."""
_GET, _CREATE, _SHARE_TO, _SHARE_FROM = 0, 1, 2, 3
_THREAD, _PROCESS = 0, 1
"""What a call reaches: one thread, or all threads of its process."""
_SECONDS: Final = 10.0


class CoreScheduling(Protocol):
    """What the kernel does with cookies. Every method raises `KernelFileError`: `NoSuchFile` for a process that has ended."""

    def cookie(self, pid: int) -> int:
        """The cookie of a process' main thread, a number that only tells cookies apart; 0 for none."""
        ...

    def create(self, pid: int) -> None:
        """Give all threads of a process a cookie that nobody else has."""
        ...

    def share(self, source: int, targets: Sequence[int]) -> None:
        """Give processes the cookie of another one."""
        ...

    def clear(self, targets: Sequence[int]) -> None:
        """Take the cookies of processes away."""
        ...


class HostCoreScheduling:
    """This machine's kernel."""

    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)

    def cookie(self, pid: int) -> int:
        found = ctypes.c_ulong(0)
        self._call(_GET, pid, _THREAD, ctypes.byref(found))
        return found.value

    def create(self, pid: int) -> None:
        self._call(_CREATE, pid, _PROCESS)

    def share(self, source: int, targets: Sequence[int]) -> None:
        def pass_on() -> None:
            self._call(_SHARE_FROM, source, _THREAD)
            for target in targets:
                self._call(_SHARE_TO, target, _PROCESS)

        _in_a_thread(pass_on)

    def clear(self, targets: Sequence[int]) -> None:
        def pass_on() -> None:
            for target in targets:
                self._call(_SHARE_TO, target, _PROCESS)

        _in_a_thread(pass_on)

    def _call(self, command: int, pid: int, reach: int, where: object = None) -> None:
        done = self._libc.prctl(
            ctypes.c_int(_PRCTL),
            ctypes.c_ulong(command),
            ctypes.c_ulong(pid),
            ctypes.c_ulong(reach),
            ctypes.c_ulong(0) if where is None else where,
        )
        if done != 0:
            number = ctypes.get_errno()
            where_from = f"process {pid}"
            if number == errno.EINVAL:
                raise KernelFileError(where_from, "this kernel has no core scheduling", number)
            if number == errno.ENODEV:
                raise KernelFileError(where_from, "the cores of this machine have no siblings", number)
            raise of_os_error(where_from, OSError(number, os.strerror(number)))


def _in_a_thread(act: Callable[[], None]) -> None:
    """Act in a thread that ends with it: what it takes a cookie from is passed on, and the process keeps none of it."""
    problems: list[KernelFileError] = []

    def run() -> None:
        try:
            act()
        except KernelFileError as problem:
            problems.append(problem)

    thread = threading.Thread(target=run, name="core-scheduling", daemon=True)
    thread.start()
    thread.join(_SECONDS)
    if thread.is_alive():
        raise KernelFileError("core scheduling", "the kernel does not answer")
    if problems:
        raise problems[0]
