"""What is measured on nodes, and how often."""

from typing import Annotated

from koordpolicy.language.cel.types import BOOL, DURATION, STRING, list_of
from koordpolicy.language.kinds.base import PolicySpec
from koordpolicy.language.kinds.slots import Slot, Value

_NODE = frozenset({"node", "now"})


class MetricCollectionSpec(PolicySpec):
    """What a node's agent measures, and how often it reports."""

    enabled: Annotated[
        Value,
        Slot(
            BOOL,
            "Whether the node has a NodeMetric object as policies say; otherwise it is left to others.",
            roots=_NODE,
            default=True,
        ),
    ] = None
    every: Annotated[
        Value, Slot(DURATION, "How often the agent reports, in whole seconds.", roots=_NODE, default="60s")
    ] = None
    averages_over: Annotated[
        Value, Slot(DURATION, "Window of averages, in whole seconds.", roots=_NODE, default="300s")
    ] = None
    percentiles_over: Annotated[
        Value,
        Slot(list_of(DURATION), "Windows of percentiles.", roots=_NODE, default=["5m", "10m", "30m"]),
    ] = None
    memory: Annotated[
        Value,
        Slot(
            STRING,
            "What counts as used memory of the node.",
            choices=("usageWithoutPageCache", "usageWithHotPageCache", "usageWithPageCache"),
            roots=_NODE,
            default="usageWithoutPageCache",
        ),
    ] = None
