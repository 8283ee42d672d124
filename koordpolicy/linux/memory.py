"""Memory of this process and of the container that it runs in."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

_STATM: Final = Path("/proc/self/statm")
_OOM_SCORE: Final = Path("/proc/self/oom_score_adj")
_ENDED_FIRST: Final = "1000"
_CGROUPS: Final = (
    (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory.current")),
    (
        Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
        Path("/sys/fs/cgroup/memory/memory.usage_in_bytes"),
    ),
)
"""Limit and usage by version 2 and version 1 of cgroups, as a container sees its own."""


def free_in_container() -> int | None:
    """Bytes that this container may still take, None where it has no limit that can be seen."""
    for limit, usage in _CGROUPS:
        try:
            return max(0, int(limit.read_text()) - int(usage.read_text()))
        except (OSError, ValueError):  # the other version; "max"
            continue
    return None


def address_space() -> int | None:
    """Bytes of address space that this process has, None where the system does not say."""
    try:
        return int(_STATM.read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):
        return None


@contextmanager
def ended_first() -> Iterator[None]:
    """Where memory runs short meanwhile, the kernel ends this process before others; nothing where it may not be asked."""
    try:
        before = _OOM_SCORE.read_text()
        _OOM_SCORE.write_text(_ENDED_FIRST)
    except OSError:
        yield
        return
    try:
        yield
    finally:
        with suppress(OSError):
            _OOM_SCORE.write_text(before)
