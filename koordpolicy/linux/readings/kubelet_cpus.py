"""Which CPUs the kubelet has given to containers for themselves, as its own state on the node says."""

import json
from collections.abc import Mapping
from typing import Any, Final

from koordpolicy.linux.errors import Malformed
from koordpolicy.linux.root import KUBELET, KernelRoot
from koordpolicy.model.cpuset import parse_cpuset

CPU_MANAGER_STATE: Final = f"{KUBELET}/cpu_manager_state"
_STATIC: Final = "static"


def read_kubelet_cpus(root: KernelRoot) -> dict[str, frozenset[int]]:
    """The CPUs of each pod's containers together, by UID; none where the kubelet gives none. Raises `KernelFileError`."""
    try:
        state = json.loads(root.read(CPU_MANAGER_STATE))
        if _mapping(state).get("policyName") != _STATIC:
            return {}
        found = {
            uid: frozenset().union(*(parse_cpuset(cpus) for cpus in _mapping(containers).values()))
            for uid, containers in _mapping(state.get("entries") or {}).items()
        }
    except (ValueError, RecursionError, AttributeError) as error:
        raise Malformed(CPU_MANAGER_STATE, f"not as kubelets write it: {error}") from error
    return {uid: cpus for uid, cpus in sorted(found.items()) if cpus}


def _mapping(found: Any) -> Mapping[str, Any]:
    if not isinstance(found, Mapping):
        raise ValueError("an object is missing")  # noqa: TRY004 - one error for whatever is none of it
    return found
