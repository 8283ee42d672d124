"""Profiles of the cluster, and pods that were there before them."""

from typing import Annotated

from koordpolicy.language.cel.types import BOOL, DURATION, INT
from koordpolicy.language.kinds.base import PolicySpec
from koordpolicy.language.kinds.slots import Slot, Value

_ALONE: frozenset[str] = frozenset()


class ProfileReconciliationSpec(PolicySpec):
    """Which pods that wait for a node get the labels and annotations of ClusterColocationProfile objects, and how fast.

    Scheduler, PriorityClass and resources of a pod stay as they were at its creation, and so does all else of its spec. A
    profile that selects a share of pods draws each of them once.
    """

    enabled: Annotated[
        Value,
        Slot(
            BOOL,
            "Whether a pod that the object selects is kept as it says. One without `selector` selects none.",
            roots=frozenset({"pod", "namespaceObject", "colocationProfile", "now"}),
            default=False,
        ),
    ] = None
    interval: Annotated[
        Value, Slot(DURATION, "How often pods that wait are looked at.", roots=_ALONE, default="30s")
    ] = None
    again_after: Annotated[
        Value,
        Slot(
            DURATION,
            "For how long a pod is left alone whose profiles stay the same, whoever changes it.",
            roots=_ALONE,
            default="5m",
        ),
    ] = None
    most_per_second: Annotated[
        Value,
        Slot(
            INT,
            "Pods that are written in a second at most.",
            roots=_ALONE,
            minimum=1,
            maximum=1_000,
            default=10,
        ),
    ] = None
    burst: Annotated[
        Value,
        Slot(
            INT,
            "Pods that are written one after the other before that counts.",
            roots=_ALONE,
            minimum=1,
            maximum=10_000,
            default=100,
        ),
    ] = None
