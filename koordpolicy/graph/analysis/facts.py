"""What facts can be: the bounds that readers of objects keep, and the words that Kubernetes has for them.

A proof is about every input within these bounds, an example lies within them. They are as wide as what the readers let
through (`model/`), not as what is usual.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from koordpolicy.language.cel.types import Type, Unit
from koordpolicy.language.cel.values import INT_MAX, INT_MIN
from koordpolicy.language.facts import FACTS, ROOTS, Fact
from koordpolicy.model.facts.pod_spec import EMPTY_DIR, VOLUME_SOURCES

_INT32: Final = (-(2**31), 2**31 - 1)
_COUNT: Final = (0, INT_MAX)
_SHARE: Final = (0, 100)

_BOUNDS: Mapping[tuple[str, str], tuple[int, int]] = MappingProxyType(
    {
        ("node", "cpuNormalization"): _COUNT,
        **{("node", f"overrides.{name}"): _COUNT for name in ("cpuReclaim", "memoryReclaim", "batchCPULimit", "batchMemoryLimit", "midStaticCPU", "midStaticMemory", "changedBy")},
        **{("node", f"overrides.mid{name}"): _SHARE for name in ("CPULimit", "MemoryLimit", "Unallocated")},
        ("pod", "priority"): _INT32,
        ("pod", "numaNodes"): _COUNT,
        ("zone", "index"): _COUNT,
        ("zone", "count"): (1, INT_MAX),
        ("cluster", "nodes"): _COUNT,
        ("cluster", "pods"): _COUNT,
        ("quota", "max"): (INT_MIN, INT_MAX),
        ("quota", "min"): (INT_MIN, INT_MAX),
        ("quota", "sharedWeight"): (INT_MIN, INT_MAX),
        ("quotaGroup", "count"): _COUNT,
        ("quotaGroup", "min"): (INT_MIN, INT_MAX),
        ("candidate", "violations"): _COUNT,
        ("candidate", "victims"): _COUNT,
        ("candidate", "prioritySum"): _COUNT,
        ("candidate", "highestPriority"): _INT32,
        ("rollout", "compared"): _COUNT,
        ("rollout", "disagreements"): _COUNT,
        ("rollout", "failures"): _COUNT,
        ("rollout", "instances.total"): _COUNT,
        ("rollout", "instances.rejected"): _COUNT,
        ("rollout", "instances.canary"): _COUNT,
        **{("rollout", f"agents.{name}"): _COUNT for name in ("due", "running", "behind", "rejected", "silent")},
        ("rollout", "elapsed"): _COUNT,
        ("rollout", "disagreement"): _SHARE,
        ("rollout", "disagreementByKind"): _SHARE,
        **{("node", f"{group}.pods"): _COUNT for group in ("capacity", "allocatable", "physical", "requested", "nonzeroRequested")},
    }
)  # fmt: skip
"""Bounds of numbers without a unit, of elements for lists; in nanoseconds for durations."""

_SIGNED: Final = ("free.",)
"""Amounts that may lie below zero: what is left of something."""

_ABOVE_ZERO: Final = frozenset((("node", "cpuNormalization"),))
"""Doubles that are never zero, though nothing lies between."""

_AMOUNTS: Final = frozenset((Unit.CPU, Unit.BYTES, Unit.BANDWIDTH, Unit.AMOUNT))

_CHOICES: Mapping[tuple[str, str], tuple[str, ...]] = MappingProxyType(
    {
        ("operation", ""): ("CREATE", "UPDATE", "DELETE"),
        ("pod", "kubernetesQoS"): ("Guaranteed", "Burstable", "BestEffort"),
        ("volume", "source"): (*VOLUME_SOURCES, ""),
    }
)
"""Facts that have no other values, whatever stands in an object."""

USUAL_TEXTS: Mapping[tuple[str, str], tuple[str, ...]] = MappingProxyType(
    {
        **_CHOICES,
        ("pod", "phase"): ("Running", "Pending", "Succeeded", "Failed"),
        ("pod", "preemptionPolicy"): ("", "Never", "PreemptLowerPriority"),
        ("pod", "ownerKind"): ("", "ReplicaSet", "DaemonSet", "Job", "StatefulSet"),
        ("pod", "schedulerName"): ("koord-scheduler", "default-scheduler"),
        ("volume", "source"): (EMPTY_DIR, "hostPath", "persistentVolumeClaim"),
        ("toleration", "operator"): ("Equal", "Exists"),
        ("toleration", "effect"): ("", "NoSchedule", "NoExecute"),
        ("containerPort", "protocol"): ("TCP", "UDP", "SCTP"),
        ("container", "imagePullPolicy"): ("IfNotPresent", "Always", "Never"),
    }
)
"""Values that examples take first."""


RAISED: Final = "raised."
"""Stands before the name of a root whose facts are those of the root, higher."""


def fact_at(root: str, path: str) -> Fact | None:
    """The declaration of a fact of a root, or of a record in a list; None for a root that is a fact by itself."""
    record = record_of(root)
    found = FACTS.resolve(record, path) if path else None
    return found if isinstance(found, Fact) else None


def record_of(root: str) -> str:
    """The record that a root, or a list's element of that name, is."""
    root = root.removeprefix(RAISED)
    declared = ROOTS.get(root)
    return (declared.type.record or root) if declared is not None else root


def bounds_of(root: str, path: str, kind: Type) -> tuple[int, int]:
    """The least and the greatest number of a fact, of the elements or values where it is a list or a map."""
    known = _BOUNDS.get((record_of(root), path))
    if known is not None:
        return known
    inner = kind
    while inner.name in ("list", "map", "optional_type") and inner.params:
        inner = inner.params[-1]
    if inner.unit in _AMOUNTS and not path.startswith(_SIGNED):
        return _COUNT
    return (INT_MIN, INT_MAX)


def is_above_zero(root: str, path: str) -> bool:
    """Whether a double is never zero nor below."""
    return (record_of(root), path) in _ABOVE_ZERO


def choices_of(root: str, path: str) -> tuple[str, ...]:
    """All texts that a fact can be; none where it may be any."""
    return _CHOICES.get((record_of(root), path), ())
