"""What containers should request, by what they used."""

from typing import Annotated

from koordpolicy.language.cel.types import BOOL, CPU, DOUBLE, DURATION, INT, MEMORY, PERCENT, Type
from koordpolicy.language.kinds.base import PolicySpec
from koordpolicy.language.kinds.fields import Given, PolicyModel
from koordpolicy.language.kinds.slots import Slot, Value

_WORKLOAD = frozenset({"workload", "now"})
_POD = _WORKLOAD | {"pod"}
_CONTAINER = _POD | {"container"}
_ALONE: frozenset[str] = frozenset()


def _amount(type: Type, meaning: str) -> Slot:
    return Slot(type, meaning, roots=_WORKLOAD)


def _share(meaning: str) -> Slot:
    return Slot(PERCENT, meaning, roots=_WORKLOAD)


_FIRST = "Size of the first bucket; what is used less is not told apart."
_MOST = "From here on amounts are not told apart."


class CPUBuckets(PolicyModel):
    """The buckets in which samples of CPU are counted."""

    first: Annotated[Value, _amount(CPU, _FIRST)] = None
    growth: Annotated[Value, _share("By how much each bucket is larger than the one before.")] = None
    most: Annotated[Value, _amount(CPU, _MOST)] = None


class MemoryBuckets(PolicyModel):
    """The buckets in which samples of memory are counted."""

    first: Annotated[Value, _amount(MEMORY, _FIRST)] = None
    growth: Annotated[Value, _share("By how much each bucket is larger than the one before.")] = None
    most: Annotated[Value, _amount(MEMORY, _MOST)] = None


class _Recommended(PolicyModel):
    """What is recommended of a resource, and from which use."""

    share: Annotated[
        Value,
        Slot(
            DOUBLE,
            "Share of its pod's use that counts as the container's; asked where a pod has several, since nodes report pods.",
            roots=_CONTAINER,
            minimum=0,
            maximum=1,
        ),
    ] = None
    half_life: Annotated[
        Value, Slot(DURATION, "Age at which a sample counts half.", roots=_WORKLOAD, default="24h")
    ] = None
    lower: Annotated[
        Value, _share("Percentile of use below which a request is too small; never above `target`.")
    ] = None
    target: Annotated[Value, _share("Percentile of use that is recommended.")] = None
    upper: Annotated[
        Value, _share("Percentile of use above which a request is too large; never below `target`.")
    ] = None
    margin: Annotated[Value, _share("What is added to percentiles, as a share of them.")] = None


class CPURecommendation(_Recommended):
    """What CPU is recommended, and from which use."""

    buckets: Given[CPUBuckets] = None
    """The buckets in which samples are counted."""
    minimum: Annotated[Value, _amount(CPU, "The least that is recommended.")] = None
    maximum: Annotated[
        Value, _amount(CPU, "The most that is recommended; no limit where nothing says one.")
    ] = None


class MemoryRecommendation(_Recommended):
    """What memory is recommended, and from which use."""

    buckets: Given[MemoryBuckets] = None
    """The buckets in which samples are counted."""
    minimum: Annotated[Value, _amount(MEMORY, "The least that is recommended.")] = None
    maximum: Annotated[
        Value, _amount(MEMORY, "The most that is recommended; no limit where nothing says one.")
    ] = None


class UsageHistory(PolicyModel):
    """What is kept of the use of containers."""

    weight: Annotated[
        Value,
        Slot(
            DOUBLE,
            "What a sample counts; one is taken whenever a node reports.",
            roots=_POD,
            minimum=0,
            maximum=1_000,
            default=1.0,
        ),
    ] = None
    confident_after: Annotated[
        Value,
        Slot(
            DURATION,
            "How long use has to be known until a recommendation is one to rely on.",
            roots=_WORKLOAD,
        ),
    ] = None
    forget_after: Annotated[
        Value,
        Slot(DURATION, "How long a container is remembered of which nothing is reported.", roots=_WORKLOAD),
    ] = None
    containers: Annotated[
        Value,
        Slot(
            INT,
            "Containers that are remembered at most, of all workloads: each takes about 4 KiB of memory.",
            roots=_ALONE,
            minimum=1,
            maximum=1_000_000,
            default=50_000,
        ),
    ] = None


class Checkpointing(PolicyModel):
    """How histories are kept in the objects, for the next leader."""

    interval: Annotated[
        Value, Slot(DURATION, "Age of a checkpoint at which another is due.", roots=_ALONE, default="10m")
    ] = None
    most_per_minute: Annotated[
        Value,
        Slot(
            INT,
            "Checkpoints that are written in a minute at most, the oldest first.",
            roots=_ALONE,
            minimum=1,
            maximum=60_000,
            default=120,
        ),
    ] = None


class RecommendationPublishing(PolicyModel):
    """When a recommendation is written into its object."""

    interval: Annotated[
        Value, Slot(DURATION, "How often recommendations are computed.", roots=_ALONE, default="5m")
    ] = None
    when_changed_by: Annotated[
        Value,
        Slot(
            PERCENT,
            "Relative change that an amount must exceed for the recommendation to be written; a smaller one waits for "
            "`atLeastEvery`.",
            roots=_WORKLOAD,
        ),
    ] = None
    at_least_every: Annotated[
        Value, Slot(DURATION, "Age beyond which a recommendation is written anyway.", roots=_WORKLOAD)
    ] = None


class RecommendationSpec(PolicySpec):
    """What containers should request, by what they used."""

    enabled: Annotated[
        Value, Slot(BOOL, "Whether a Recommendation object is followed.", roots=_WORKLOAD, default=True)
    ] = None
    counted: Annotated[Value, Slot(BOOL, "Whether the use of a pod counts.", roots=_POD, default=True)] = None
    cpu: Given[CPURecommendation] = None
    """What CPU is recommended, and from which use."""
    memory: Given[MemoryRecommendation] = None
    """What memory is recommended, and from which use."""
    history: Given[UsageHistory] = None
    """What is kept of the use of containers."""
    checkpoint: Given[Checkpointing] = None
    """How histories are kept in the objects."""
    publish: Given[RecommendationPublishing] = None
    """When a recommendation is written."""
