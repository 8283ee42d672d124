"""What a runtime is asked for a container, when a hook has answered: its record, with what the answer says over it.

Names and numbers are those of the CRI's LinuxContainerResources.
"""

from collections.abc import Mapping
from typing import Any, Final

_POSITIVE: Final = ("cpu_period", "cpu_shares", "memory_limit_in_bytes", "memory_swap_limit_in_bytes")
_WORDS: Final = ("cpuset_cpus", "cpuset_mems")
_LEAST_OOM_SCORE: Final = -1000
_MOST_OOM_SCORE: Final = 1000


def merged_resources(record: Mapping[str, Any], answer: Mapping[str, Any] | None) -> dict[str, Any]:
    """The record of a container with a hook's answer over it; without an answer, the record.

    An answer says nothing by 0, but for the score of the OOM killer, and clears CPU sets by empty ones. It cannot lift a
    limit of memory.
    """
    merged = dict(record)
    if answer is None:
        return merged
    for name in _POSITIVE:
        said = answer.get(name, 0)
        if said > 0:
            merged[name] = said
    if answer.get("cpu_quota", 0) != 0:
        merged["cpu_quota"] = answer["cpu_quota"]
    score = answer.get("oom_score_adj", 0)
    if _LEAST_OOM_SCORE <= score <= _MOST_OOM_SCORE:
        merged["oom_score_adj"] = score
    for name in _WORDS:
        merged[name] = answer.get(name, "")
    if answer.get("unified"):
        merged["unified"] = {**record.get("unified", {}), **answer["unified"]}
    return merged
