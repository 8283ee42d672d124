"""How the agent keeps best-effort work out of the way of everything else."""

from typing import Annotated

from pydantic import Field

from koordpolicy.language.cel.types import BOOL, CPU, DURATION, INT, PERCENT, STRING
from koordpolicy.language.kinds.base import PolicySpec
from koordpolicy.language.kinds.fields import Given, Identifier, PolicyModel
from koordpolicy.language.kinds.slots import Slot, Value


class Growth(PolicyModel):
    """How fast suppression gives way."""

    step: Annotated[
        Value, Slot(PERCENT, "Most that best-effort CPU grows at once, as a share of the node's CPUs.")
    ] = None
    deadband: Annotated[
        Value, Slot(PERCENT, "Change that is too small to be written, as a share of the node's CPUs.")
    ] = None


class MissingMeasurement(PolicyModel):
    """What holds while the node's use of CPU is not known."""

    after: Annotated[Value, Slot(DURATION, "Age beyond which a measurement counts as missing.")] = None
    action: Annotated[
        Value,
        Slot(
            STRING,
            "`Keep` the present suppression, or `Recover` all CPUs.",
            choices=("Keep", "Recover"),
            default="Keep",
        ),
    ] = None


class CPUSuppressSpec(PolicySpec):
    """How much CPU best-effort work may use, and by which mechanism it is held there."""

    enabled: Annotated[Value, Slot(BOOL, "Whether best-effort work is suppressed at all.", default=True)] = (
        None
    )
    mechanism: Annotated[
        Value,
        Slot(
            STRING,
            "`cpuset` takes CPUs away, `cfsQuota` limits time on all of them.",
            choices=("cpuset", "cfsQuota"),
        ),
    ] = None
    target: Annotated[Value, Slot(CPU, "CPU that best-effort work may use; negative when there is none.")] = (
        None
    )
    minimum: Annotated[Value, Slot(CPU, "CPU that it may use in any case.")] = None
    figures: dict[Identifier, Annotated[Value, Slot(CPU, "One figure.")]] = Field(default_factory=dict)
    """What is shown beside the target in metrics and explanations, by name."""
    minimum_cpus: Annotated[
        Value, Slot(INT, "Number of CPUs that `cpuset` leaves in any case.", minimum=0, maximum=100_000)
    ] = None
    minimum_quota: Annotated[
        Value, Slot(DURATION, "Time in each 100 ms of one CPU that `cfsQuota` leaves in any case.")
    ] = None
    growth: Given[Growth] = None
    """How fast suppression gives way."""
    on_missing: Given[MissingMeasurement] = None
    """What holds without a recent measurement."""
    interval: Annotated[Value, Slot(DURATION, "How often it is decided.", roots=frozenset({"node"}))] = None
