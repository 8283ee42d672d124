"""What goes wrong with kernel files: every error names its file."""

import errno
from typing import Final

_GONE: Final = (errno.ENOENT, errno.ENODEV, errno.ESRCH, errno.ENOTDIR)
"""What reading and writing say of a cgroup, device or process that ended meanwhile."""


class KernelFileError(Exception):
    """A kernel file that cannot be read or written. `problem` is a phrase, `number` the errno where there is one."""

    def __init__(self, path: str, problem: str, number: int = 0) -> None:
        super().__init__(f"{path}: {problem}")
        self.path = path
        self.problem = problem
        self.number = number


class NoSuchFile(KernelFileError):
    """The file is not there: an older kernel, another version of cgroups, or its group, process or device has ended."""


class OutsideRoot(KernelFileError):
    """A path that leads, by its parts or by a link, out of the trees that may be touched."""


class Malformed(KernelFileError):
    """The file is there, and does not say what it is known to say."""


def of_os_error(path: str, error: OSError) -> KernelFileError:
    """The error that tells of what the system said of a path."""
    number = error.errno or 0
    problem = error.strerror or str(error)
    return (NoSuchFile if number in _GONE else KernelFileError)(path, problem, number)
