"""Whole numbers written as text in labels and annotations, read as strictly as Go reads them."""

import re
from typing import Final

_PREFIXED: Final = re.compile(
    r"([+-]?)(?:0[xX](_?[0-9a-fA-F](?:_?[0-9a-fA-F])*)|0[bB](_?[01](?:_?[01])*)"
    r"|0[oO]?(_?[0-7](?:_?[0-7])*)|(0|[1-9](?:_?[0-9])*))",
    re.ASCII,
)
_LONGEST: Final = 64


def parse_int_any_base(source: str, bits: int = 64) -> int:
    """An integer whose base shows in its prefix: `17`, `0x11`, `0o21`, `021`, `0b1_0001`.

    Raises ValueError when it is none or does not fit into so many bits.
    """
    match = _PREFIXED.fullmatch(source) if len(source) <= _LONGEST else None
    if match is None:
        raise ValueError(f"`{source[:_LONGEST]}` is not a whole number")
    for digits, base in zip(match.groups()[1:], (16, 2, 8, 10), strict=True):
        if digits is not None:
            number = int(digits.replace("_", ""), base)
            return _fitting(-number if match[1] == "-" else number, bits)
    raise AssertionError("one alternative of the pattern always matches")


def _fitting(number: int, bits: int) -> int:
    if not -(1 << bits - 1) <= number < 1 << bits - 1:
        raise ValueError(f"{number} does not fit into {bits} bits")
    return number
