"""Why a pod may not be evicted, whatever else happens in the cluster."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class PodTraits:
    """What the checks look at. `config_source` is the text of the annotation of that name; `volumes` are types of sources."""

    owner_kinds: tuple[str, ...] = ()
    mirror: bool = False
    config_source: str | None = None
    terminating: bool = False
    phase: str = ""
    priority: int | None = None
    volumes: frozenset[str] = frozenset()
    labels_match: bool = True


@dataclass(frozen=True, slots=True)
class EvictabilityLimits:
    """Which checks hold. `critical_priority`: from here on a pod belongs to the system; None for either priority checks nothing."""

    critical_priority: int | None
    priority_threshold: int | None = None
    bare_pods: bool = False
    failed_bare_pods: bool = False
    local_storage: bool = False
    persistent_volumes: bool = True


Check = Callable[[PodTraits, EvictabilityLimits], bool]

_LOCAL: Final = frozenset({"hostPath", "emptyDir"})

FORBIDDEN_BY: Final[Mapping[str, Check]] = {
    "daemonset": lambda pod, _: "DaemonSet" in pod.owner_kinds,
    "mirror": lambda pod, _: pod.mirror,
    "static": lambda pod, _: pod.config_source is not None and pod.config_source != "api",
    "terminating": lambda pod, _: pod.terminating,
    "bare": lambda pod, limits: (
        not pod.owner_kinds
        and not limits.bare_pods
        and not (limits.failed_bare_pods and pod.phase == "Failed")
    ),
    "critical": lambda pod, limits: _from(pod.priority, limits.critical_priority),
    "priority-threshold": lambda pod, limits: _from(pod.priority, limits.priority_threshold),
    "local-storage": lambda pod, limits: not limits.local_storage and bool(pod.volumes & _LOCAL),
    "pvc": lambda pod, limits: not limits.persistent_volumes and "persistentVolumeClaim" in pod.volumes,
    "label-selector": lambda pod, _: not pod.labels_match,
}
"""What forbids an eviction, in the order in which it is told."""


def forbidden_by(pod: PodTraits, limits: EvictabilityLimits) -> list[str]:
    """The names of all checks that forbid to evict the pod; a pod that asks to be evicted is so all the same."""
    return [name for name, forbids in FORBIDDEN_BY.items() if forbids(pod, limits)]


def _from(priority: int | None, bound: int | None) -> bool:
    return priority is not None and bound is not None and priority >= bound
