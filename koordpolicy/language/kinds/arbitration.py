"""Who decides about a kernel file that several strategies of the agent want."""

from typing import Annotated

from koordpolicy.language.cel.types import STRING, list_of
from koordpolicy.language.kinds.base import PolicySpec
from koordpolicy.language.kinds.fields import Text
from koordpolicy.language.kinds.slots import Slot, Value


class ArbitrationSpec(PolicySpec):
    """Which of several strategies decides about a kernel file."""

    file: Annotated[str, Text("a name of a kernel file", least=1, most=253)]
    """Name of the file as in cgroup v1, such as `cpu.cfs_quota_us`, or `any` for all files that no document names."""
    order: Annotated[
        Value,
        Slot(
            list_of(STRING),
            "Strategies, such as `cpu-burst`, the first going before all others; those that are not named come last.",
        ),
    ] = None
    rule: Annotated[
        Value,
        Slot(
            STRING,
            "`First` in that order, or the `Smallest` or `Largest` value, of which no limit is the largest; the order decides "
            "where values do not compare.",
            choices=("First", "Smallest", "Largest"),
            default="First",
        ),
    ] = None
