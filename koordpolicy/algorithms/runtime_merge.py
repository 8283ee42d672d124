"""What a container's resources are after a hook has answered, and after its runtime was asked to change them.

As Koordinator's runtime proxy merges them, field by field: of most numbers 0 and less say nothing, sets of CPUs and memory nodes are taken as
they are. Amounts are those of CRI: quota and period in microseconds, memory in bytes.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

_SCORES: Final = range(-1000, 1001)


@dataclass(frozen=True, slots=True)
class RuntimeResources:
    """The resources of a container as CRI names them; 0 and empty where nothing is said."""

    cpu_period: int = 0
    cpu_quota: int = 0
    cpu_shares: int = 0
    memory_limit_in_bytes: int = 0
    memory_swap_limit_in_bytes: int = 0
    oom_score_adj: int = 0
    cpuset_cpus: str = ""
    cpuset_mems: str = ""
    unified: Mapping[str, str] = field(default_factory=dict)


def answered(record: RuntimeResources, answer: RuntimeResources) -> RuntimeResources:
    """What a hook's answer makes of a record: an empty set of CPUs or memory nodes clears it, a score of 0 is one."""
    changed: dict[str, Any] = _said(record, answer)
    changed["cpuset_cpus"], changed["cpuset_mems"] = answer.cpuset_cpus, answer.cpuset_mems
    if answer.oom_score_adj in _SCORES:
        changed["oom_score_adj"] = answer.oom_score_adj
    return replace(record, **changed)


def updated(record: RuntimeResources, request: RuntimeResources) -> RuntimeResources:
    """What a request to change resources makes of a record: the score stays."""
    changed: dict[str, Any] = _said(record, request)
    if request.cpuset_cpus:
        changed["cpuset_cpus"] = request.cpuset_cpus
    if request.cpuset_mems:
        changed["cpuset_mems"] = request.cpuset_mems
    return replace(record, **changed)


def _said(record: RuntimeResources, other: RuntimeResources) -> dict[str, Any]:
    changed: dict[str, Any] = {
        name: getattr(other, name)
        for name in ("cpu_period", "cpu_shares", "memory_limit_in_bytes", "memory_swap_limit_in_bytes")
        if getattr(other, name) > 0
    }
    if other.cpu_quota:
        changed["cpu_quota"] = other.cpu_quota
    if other.unified:
        changed["unified"] = {**record.unified, **other.unified}
    return changed
