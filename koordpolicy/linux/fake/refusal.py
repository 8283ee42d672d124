"""How the model says no: by the kernel's numbers."""

import errno
from typing import Final


class KernelRefusal(Exception):
    """What a write to a file of the model fails with; `number` is the errno."""

    def __init__(self, number: int) -> None:
        super().__init__(errno.errorcode.get(number, str(number)))
        self.number = number


_MOST_DIGITS: Final = 20


def number(text: str) -> int:
    """A number as the kernel reads one; EINVAL for anything else."""
    text = text.strip()
    if not text.removeprefix("-").isdecimal() or len(text) > _MOST_DIGITS or not text.isascii():
        raise KernelRefusal(errno.EINVAL)
    return int(text)


def number_or_max(text: str) -> int:
    """A number, or -1 for `max`."""
    if text.strip() == "max":
        return -1
    found = number(text)
    if found < 0:
        raise KernelRefusal(errno.EINVAL)
    return found
