"""How containers may use CPU beyond their limits for a while."""

from typing import Annotated

from koordpolicy.language.cel.types import BOOL, DURATION, PERCENT, STRING
from koordpolicy.language.kinds.base import PolicySpec
from koordpolicy.language.kinds.fields import Given, PolicyModel
from koordpolicy.language.kinds.slots import Slot, Value

_NODE = frozenset({"node", "now"})


class QuotaBurst(PolicyModel):
    """How the quota of a throttled container grows, and how it shrinks again."""

    ceiling: Annotated[
        Value, Slot(PERCENT, "The largest quota, as a share of the container's limit.", roots=_NODE)
    ] = None
    period: Annotated[
        Value,
        Slot(
            DURATION,
            "How long a container may use its largest quota, time that it used less counting back; negative: as long as "
            "it likes.",
            roots=_NODE,
        ),
    ] = None
    spends_from: Annotated[
        Value,
        Slot(
            PERCENT,
            "Use of its limit from which a container spends what it has left of that time.",
            roots=_NODE,
            default="100%",
        ),
    ] = None
    saves_below: Annotated[
        Value,
        Slot(
            PERCENT,
            "Use of its limit below which it saves some up.",
            roots=_NODE,
            default="60%",
        ),
    ] = None
    growth: Annotated[
        Value,
        Slot(
            PERCENT, "The next quota of a container that is throttled, as a share of the last.", roots=_NODE
        ),
    ] = None
    shrinkage: Annotated[
        Value,
        Slot(PERCENT, "The next quota of one that has to give way, as a share of the last.", roots=_NODE),
    ] = None


class SharePool(PolicyModel):
    """When the CPUs that containers share are too busy for bursts."""

    threshold: Annotated[
        Value, Slot(PERCENT, "Use of the shared CPUs from which quotas shrink.", roots=_NODE)
    ] = None
    cooling: Annotated[
        Value, Slot(PERCENT, "Share of that threshold from which quotas cease to grow.", roots=_NODE)
    ] = None


class CPUBurstSpec(PolicySpec):
    """Which containers may use CPU beyond their limits, by how much, and when not."""

    policy: Annotated[
        Value,
        Slot(
            STRING,
            "`none`, `cpuBurstOnly` (what was not used before), `cfsQuotaBurstOnly` (a larger quota), or `auto` for both.",
            choices=("none", "cpuBurstOnly", "cfsQuotaBurstOnly", "auto"),
            roots=_NODE,
        ),
    ] = None
    eligible: Annotated[Value, Slot(BOOL, "Whether the containers of a pod may burst.")] = None
    burst: Annotated[
        Value,
        Slot(
            PERCENT, "Unused CPU time that may be saved up, as a share of the container's limit.", roots=_NODE
        ),
    ] = None
    quota: Given[QuotaBurst] = None
    """How quotas grow and shrink."""
    share_pool: Given[SharePool] = None
    """When the node is too busy for that."""
    interval: Annotated[Value, Slot(DURATION, "How often it is decided.", roots=_NODE)] = None
