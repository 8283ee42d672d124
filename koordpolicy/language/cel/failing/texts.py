"""What conversions take: texts that a test has tried, patterns whose texts are numbers."""

import re
from typing import Final

from koordpolicy.language.cel import ir

TESTED: Final = {
    "quantity(string)": "isQuantity(string)",
    "ip(string)": "isIP(string)",
    "ip.isCanonical(string)": "isIP(string)",
    "cidr(string)": "isCIDR(string)",
    "url(string)": "isURL(string)",
}
"""Conversions of texts, and the test that tells whether a text can be converted."""

_NUMBER: Final = re.compile(
    r"""\^ (?P<sign>-\?|\[\+-\]\?|\[-\+\]\?|)
        (?P<first>\[1-9\]|)
        (?:\[0-9\]|\\d)
        (?:\{(?:[1-9][0-9]*,)?(?P<most>1[0-7]|[1-9])\}|) \$""",
    re.VERBOSE,
)
"""Patterns of texts that are whole numbers of at most 18 digits, such as `^[0-9]{1,9}$`."""

_BY_PATTERN: Final = frozenset(
    ("int(string)", "double(string)", "uint(string)", "quantity(string)", "cpu(string)", "memory(string)", "bandwidth(string)")
)  # fmt: skip


def conversions_after(test: ir.Call) -> tuple[str, ...]:
    """The conversions that take a text of which a test is true."""
    if test.overload in TESTED.values():
        return tuple(made for made, by in TESTED.items() if by == test.overload)
    if test.overload in ("matches(string,string)", ".matches(string,string)"):
        pattern = test.args[1]
        found = (
            _NUMBER.fullmatch(pattern.value)
            if isinstance(pattern, ir.Const) and isinstance(pattern.value, str)
            else None
        )
        if found is not None:
            unsigned = not found["sign"]
            return tuple(
                made for made in sorted(_BY_PATTERN) if unsigned or made in ("int(string)", "double(string)")
            )
    return ()
