"""What a span belongs to, and what is said of it."""

from collections.abc import Mapping
from typing import Final, NamedTuple

SAMPLED: Final = 1
"""The bit of a trace's flags that says that its spans are made."""

Attributes = Mapping[str, str | int]


class TraceContext(NamedTuple):
    """What a span belongs to: its trace, and the span above it, 0 for none."""

    trace: int
    parent: int = 0

    def __str__(self) -> str:
        """As W3C writes it."""
        return f"00-{self.trace:032x}-{self.parent:016x}-{SAMPLED:02x}"
