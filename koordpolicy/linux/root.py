"""The protocol of a kernel's files. Every implementation passes `tests/contract/kernel/`."""

from collections.abc import Sequence
from typing import Protocol

PROC = "/proc"
SYS = "/sys"
CGROUPS = "/sys/fs/cgroup"
RESCTRL = "/sys/fs/resctrl"
KUBELET = "/var/lib/kubelet"
"""No kernel's: what the kubelet says of CPUs, which is read like files of the node and never written."""


class HeldFile(Protocol):
    """A file that is read again and again without being looked for anew."""

    def read(self) -> bytes:
        """What it says now, at most `MOST_READ` bytes. Raises `KernelFileError`, `NoSuchFile` where its group has ended."""
        ...

    def close(self) -> None:
        """Let go of it; it is not read any more."""
        ...


class HeldDirectory(Protocol):
    """A directory that stays open between two looks."""

    def links(self) -> int:
        """A number that grows with each directory made in it, and shrinks with each removed. Raises `KernelFileError`."""
        ...

    def close(self) -> None:
        """Let go of it; it is not looked at any more."""
        ...


class KernelRoot(Protocol):
    """Files by their paths on the node, `/sys/fs/cgroup/...`, wherever the node's trees are mounted here.

    Every method raises `KernelFileError` with the path and nothing else: `NoSuchFile` where there is none (any
    more), `OutsideRoot` where a part of the path is `..` or empty, or a link leads out of the tree.
    """

    def read(self, path: str) -> str:
        """What a file says, at most `MOST_READ` bytes of it; bytes that are no UTF-8 are replaced."""
        ...

    def hold(self, path: str) -> HeldFile:
        """A file that is there, for who reads it often; the caller closes it."""
        ...

    def hold_directory(self, path: str) -> HeldDirectory:
        """A directory that is there, for who looks at it often; the caller closes it."""
        ...

    def write(self, path: str, content: str) -> None:
        """Write the content to a file that is there, in one call. A link anywhere in the path is refused."""
        ...

    def names(self, directory: str) -> Sequence[str]:
        """The names in a directory, sorted."""
        ...

    def exists(self, path: str) -> bool:
        """Whether there is a file or directory; False too where that cannot be seen."""
        ...

    def make_directory(self, path: str) -> None:
        """Make one directory, a cgroup or resctrl group; nothing where it is there. No link may be in the path."""
        ...

    def remove_directory(self, path: str) -> None:
        """Remove an empty group; nothing where it is gone. No link may be in the path."""
        ...


MOST_READ = 16 << 20
"""Bytes. /proc/stat of 1,000 CPUs is a tenth of a percent of it; nothing that the kernel writes comes near."""
