"""Ranges of times, in nanoseconds: what can be held, and what clusters have."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from koordpolicy.language.cel import ir
from koordpolicy.language.cel.failing.known import Range

_YEAR: Final = 366 * 86_400 * 1e9

MOMENT: Final = "google.protobuf.Timestamp"
SPAN: Final = "google.protobuf.Duration"

MEASURED_TIMES: Final[Mapping[str, Range]] = MappingProxyType(
    {MOMENT: (-62_135_596_800e9, 253_402_300_800e9), SPAN: (-(2.0**63), 2.0**63)}
)
"""What can be held: the years 1 to 9999, and 292 years."""

USUAL_TIMES: Final[Mapping[str, Range]] = MappingProxyType(
    {MOMENT: (0.0, 130 * _YEAR), SPAN: (-10 * _YEAR, 10 * _YEAR)}
)
"""What facts and parameters are taken to lie within."""

_MADE: Final[Mapping[str, Range]] = MappingProxyType(
    {MOMENT: (-70 * _YEAR, 200 * _YEAR), SPAN: (-140 * _YEAR, 140 * _YEAR)}
)
"""What is made of such times is taken to lie within."""


def within_usual(kind: str, found: Range, args: Sequence[ir.Node], operands: Sequence[Range]) -> Range:
    """The range of a sum or difference: cut to what is made of usual times, unless an operand is none of them."""
    for arg, (low, high) in zip(args, operands, strict=True):
        least, most = _MADE[arg.type.name]
        if low < least or high > most:
            return found
    least, most = _MADE[kind]
    return max(found[0], least), min(found[1], most)
