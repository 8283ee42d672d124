"""What is changed in the resources of pods and containers where they are started."""

from typing import Annotated

from koordpolicy.language.cel.types import CPU, DOUBLE, INT, MEMORY, STRING
from koordpolicy.language.kinds.base import PolicySpec
from koordpolicy.language.kinds.fields import Given, PolicyModel
from koordpolicy.language.kinds.slots import Slot, Value

_POD = frozenset({"pod", "node", "now"})


class PodGroupSlots(PolicyModel):
    """The control group of the whole pod."""

    cpu_request: Annotated[
        Value, Slot(CPU, "CPU request that the pod's CPU shares stand for; 0 for the least.", roots=_POD)
    ] = None
    cpu_limit: Annotated[
        Value, Slot(CPU, "CPU that the pod may use at most; 0 and less: without limit.", roots=_POD)
    ] = None
    memory_limit: Annotated[
        Value, Slot(MEMORY, "Memory that the pod may use at most; negative: without limit.", roots=_POD)
    ] = None


class ContainerGroupSlots(PolicyModel):
    """The control group of one container."""

    cpu_request: Annotated[
        Value, Slot(CPU, "CPU request that the container's CPU shares stand for; 0 for the least.")
    ] = None
    cpu_limit: Annotated[
        Value, Slot(CPU, "CPU that the container may use at most; 0 and less: without limit.")
    ] = None
    memory_limit: Annotated[
        Value, Slot(MEMORY, "Memory that the container may use at most; negative: without limit.")
    ] = None
    cpus: Annotated[
        Value,
        Slot(
            STRING,
            "Which CPUs it runs on: the pod's `Owned` ones, those of its zones that are shared or for best-effort work, all `Shared` ones, "
            "those of the `System`, whatever its parents have (`Inherited`), or those it has (`Untouched`).",
            choices=(
                "Owned",
                "SharedOfZones",
                "BestEffortOfZones",
                "Shared",
                "System",
                "Inherited",
                "Untouched",
            ),
        ),
    ] = None
    oom_score: Annotated[
        Value,
        Slot(
            INT,
            "How soon the kernel kills its processes where memory is short (`oom_score_adj`): the highest first.",
            minimum=-1000,
            maximum=1000,
        ),
    ] = None


class ContainerHookSpec(PolicySpec):
    """What pods and containers get from the kernel, in place of what the runtime was asked for."""

    cpu_speed: Annotated[
        Value,
        Slot(
            DOUBLE,
            "How fast the node's CPUs are, compared with those that limits are meant for; quotas become smaller "
            "by that factor where it is above 1.",
            roots=_POD,
            default=1.0,
        ),
    ] = None
    writer: Annotated[
        Value,
        Slot(
            STRING,
            "As whom Arbitration knows what this hook says of shares, quotas and limits. Of hooks of one writer a later name goes over "
            "an earlier one.",
            choices=("batch-resources", "cpu-normalization", "cpuset"),
            roots=_POD,
            default="batch-resources",
        ),
    ] = None
    pod: Given[PodGroupSlots] = None
    """What the pod as a whole gets; what no rule says is left alone."""
    container: Given[ContainerGroupSlots] = None
    """What each of its containers gets; what no rule says is left alone."""
