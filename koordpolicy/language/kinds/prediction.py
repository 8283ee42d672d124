"""What pods are predicted to use at most, and how much of their requests will stay unused."""

from typing import Annotated

from koordpolicy.language.cel.types import BOOL, CPU, DURATION, MEMORY, PERCENT, STRING, Type, list_of
from koordpolicy.language.kinds.base import PolicySpec
from koordpolicy.language.kinds.fields import Given, PolicyModel
from koordpolicy.language.kinds.slots import Slot, Value

_NODE = frozenset({"node", "now"})


def _amount(type: Type, meaning: str) -> Slot:
    return Slot(type, meaning, roots=_NODE)


def _share(meaning: str) -> Slot:
    return Slot(PERCENT, meaning, roots=_NODE)


_FIRST = "Size of the first bucket; what is used less is not told apart."
_MOST = "From here on amounts are not told apart."


class PeakCPUBuckets(PolicyModel):
    """The buckets in which samples of CPU are counted."""

    first: Annotated[Value, _amount(CPU, _FIRST)] = None
    growth: Annotated[Value, _share("By how much each bucket is larger than the one before.")] = None
    most: Annotated[Value, _amount(CPU, _MOST)] = None


class PeakMemoryBuckets(PolicyModel):
    """The buckets in which samples of memory are counted."""

    first: Annotated[Value, _amount(MEMORY, _FIRST)] = None
    growth: Annotated[Value, _share("By how much each bucket is larger than the one before.")] = None
    most: Annotated[Value, _amount(MEMORY, _MOST)] = None


class _Peak(PolicyModel):
    """From which use a peak is predicted."""

    half_life: Annotated[
        Value, Slot(DURATION, "Age at which a sample counts half.", roots=_NODE, default="24h")
    ] = None
    percentile: Annotated[Value, _share("Percentile of use that is predicted as its peak.")] = None
    sampled: Annotated[
        Value, _share("Percentile of use since the last sample that is counted as the next one.")
    ] = None


class PeakCPU(_Peak):
    """From which use a peak of CPU is predicted."""

    buckets: Given[PeakCPUBuckets] = None
    """The buckets in which samples are counted."""


class PeakMemory(_Peak):
    """From which use a peak of memory is predicted."""

    buckets: Given[PeakMemoryBuckets] = None
    """The buckets in which samples are counted."""


class PeakCheckpoint(PolicyModel):
    """How histograms are kept on the node, for the next process."""

    interval: Annotated[
        Value, Slot(DURATION, "Age of a checkpoint at which another is due.", roots=_NODE, default="10m")
    ] = None


class PredictionSpec(PolicySpec):
    """What pods of a node are predicted to use at most, and what of their requests may be sold again as mid resources."""

    enabled: Annotated[
        Value, Slot(BOOL, "Whether peaks are predicted on a node.", roots=_NODE, default=True)
    ] = None
    bands: Annotated[
        Value,
        Slot(
            list_of(STRING),
            "Bands whose pods give back what they will not use of their requests; `none` for pods of no band.",
            roots=_NODE,
        ),
    ] = None
    cpu: Given[PeakCPU] = None
    """From which use a peak of CPU is predicted."""
    memory: Given[PeakMemory] = None
    """From which use a peak of memory is predicted."""
    margin: Annotated[Value, _share("What is added to peaks, as a share of them.")] = None
    cold_start: Annotated[
        Value,
        Slot(DURATION, "Age up to which nothing of a pod's requests is reclaimed.", roots=_NODE),
    ] = None
    method: Annotated[
        Value,
        Slot(
            STRING,
            "What is reclaimed: by the peaks of single `Pods`, of whole `Bands` of pods together, or the `Less` of both.",
            choices=("Pods", "Bands", "Less"),
            roots=_NODE,
            default="Less",
        ),
    ] = None
    interval: Annotated[Value, Slot(DURATION, "How often a sample is taken.", roots=_NODE, default="1m")] = (
        None
    )
    forget_after: Annotated[
        Value,
        Slot(DURATION, "How long something is remembered that is not measured.", roots=_NODE, default="30m"),
    ] = None
    checkpoint: Given[PeakCheckpoint] = None
    """How histograms are kept for the next process."""
