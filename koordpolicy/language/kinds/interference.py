"""What is done for pods that others on their node hold up."""

from typing import Annotated

from koordpolicy.language.cel.types import BOOL, DURATION, PERCENT, STRING
from koordpolicy.language.kinds.base import PolicySpec
from koordpolicy.language.kinds.slots import Slot, Value

_NODE = frozenset({"node", "now"})


class InterferenceSpec(PolicySpec):
    """When a pod suffers from others on its node, and what is done then."""

    enabled: Annotated[
        Value, Slot(BOOL, "Whether pods of a node are watched for that.", roots=_NODE, default=True)
    ] = None
    when: Annotated[
        Value,
        Slot(BOOL, "Whether a pod suffers now: by pressure, cycles per instruction, waiting for a CPU."),
    ] = None
    after: Annotated[Value, Slot(DURATION, "How long that has to hold.", roots=_NODE, default="0s")] = None
    reaction: Annotated[
        Value,
        Slot(
            STRING,
            "`Report` it, `SuppressBestEffort` work by `share`, or `EvictBestEffort` pods, one after the other in the order of "
            "`CPUEviction.bestEffort` and within its limits.",
            choices=("Report", "SuppressBestEffort", "EvictBestEffort"),
            roots=_NODE,
            default="Report",
        ),
    ] = None
    share: Annotated[
        Value,
        Slot(
            PERCENT,
            "CPU that best-effort work has less while a pod suffers, as a share of the node's.",
            roots=_NODE,
        ),
    ] = None
    lasts: Annotated[
        Value,
        Slot(
            DURATION, "How long the reaction stays when no pod suffers any more.", roots=_NODE, default="0s"
        ),
    ] = None
