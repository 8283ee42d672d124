"""The order in which the pods of a gang are looked at where their places in a network matter."""

import re
from typing import Final

from koordpolicy.model.quantity import INT64_MAX

_INDEX: Final = re.compile(r"\+?0*([0-9]{1,19})", re.ASCII)


def member_key(name: str, index: str) -> tuple[int, int, str]:
    """What pods are sorted by: first those with an index from 0, ascending, then the others; equal ones by name."""
    match = _INDEX.fullmatch(index)
    number = INT64_MAX + 1 if match is None else int(match[1])
    return (0, number, name) if number <= INT64_MAX else (1, 0, name)
