"""Routes: which network device packets leave by that no other route is for."""

from koordpolicy.linux.errors import NoSuchFile
from koordpolicy.linux.readings.fields import is_number
from koordpolicy.linux.root import PROC, KernelRoot

_ANYWHERE = "00000000"
_UP = 1


def read_default_device(root: KernelRoot) -> str:
    """The device of the default route with the smallest metric, as of this process' network.

    Raises `NoSuchFile` where there is no such route, `KernelFileError` where routes cannot be read.
    """
    path = f"{PROC}/self/net/route"
    found: list[tuple[int, str]] = []
    for line in root.read(path).splitlines()[1:]:
        words = line.split()
        if len(words) < 8:
            continue
        device, destination, _gateway, flags, _count, _use, metric, mask = words[:8]
        if destination == mask == _ANYWHERE and is_number(metric) and _is_up(flags):
            found.append((int(metric), device))
    if not found:
        raise NoSuchFile(path, "there is no default route")
    return min(found)[1]


def _is_up(flags: str) -> bool:
    try:
        return bool(int(flags, 16) & _UP)
    except ValueError:
        return False
