"""What the annotation says of what it costs to evict a pod."""

import re
from typing import Final

FORBIDDEN: Final = 2**31 - 1
"""The cost by which a pod says that it must not be moved."""

_FORM: Final = re.compile(r"0|-[0-9]+|[1-9][0-9]*")


def read_eviction_cost(text: str | None) -> int:
    """The cost: an integer of 32 bits without `+`, blanks or leading zeros; 0 where it is absent or something else, as in Kubernetes."""
    # The length goes first: no text of a user's makes an integer of a million digits.
    if text is None or len(text) > 32 or not _FORM.fullmatch(text):
        return 0
    cost = int(text)
    return cost if -(2**31) <= cost < 2**31 else 0
