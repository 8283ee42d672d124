"""From the short forms of vectors to values of the model.

Vectors write amounts as plain integers (cpu in millicores) and Koordinator's own resources without
their domain.
"""

from collections.abc import Mapping

from koordpolicy.model.pod import Container, Pod
from koordpolicy.model.protocol import BATCH_CPU, BATCH_MEMORY, MID_CPU, MID_MEMORY

SHORT_NAMES = {
    "batch-cpu": BATCH_CPU,
    "batch-memory": BATCH_MEMORY,
    "mid-cpu": MID_CPU,
    "mid-memory": MID_MEMORY,
}
_FULL_NAMES = {full: short for short, full in SHORT_NAMES.items()}


def full_name(resource: object) -> str:
    """The name of a resource on the wire."""
    return SHORT_NAMES.get(str(resource), str(resource))


def resources(given: object) -> dict[str, int]:
    """A resource map with full names; empty when absent."""
    assert given is None or isinstance(given, Mapping)
    return {full_name(name): amount for name, amount in (given or {}).items()}


def shortened(amounts: Mapping[str, int]) -> dict[str, int]:
    """A resource map with the names that vectors use."""
    return {_FULL_NAMES.get(name, name): amount for name, amount in amounts.items()}


def pod(given: object) -> Pod:
    """A pod of the scheduler's vectors: containers, init containers, overhead, pod-level requests."""
    assert isinstance(given, Mapping)
    level = given.get("pod_level_requests")
    return Pod(
        name=str(given.get("name", "pod")),
        containers=tuple(_container(one) for one in given.get("containers", ())),
        init_containers=tuple(_container(one) for one in given.get("init_containers", ())),
        overhead=resources(given.get("overhead")),
        pod_requests=None if level is None else resources(level),
    )


def _container(given: Mapping[str, object]) -> Container:
    return Container(
        name=str(given.get("name", "")),
        requests=resources(given.get("requests")),
        limits=resources(given.get("limits")),
        sidecar=bool(given.get("sidecar")),
    )
