"""What a pod asks for as a whole: containers, init containers, sidecars, pod level and overhead.

Containers and sidecars run together and add up; each ordinary init container runs beside the sidecars
declared before it, and the pod needs the largest of these moments. Pod-level resources then replace
the sum for their keys, and overhead comes on top.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from koordpolicy.model.facts_pod import PodDemand
from koordpolicy.model.pod import Container, Pod, larger
from koordpolicy.model.protocol import CPU, HUGEPAGES_PREFIX, MEMORY
from koordpolicy.model.reading import NOTHING, Amounts

STOCK_UNSTATED: Final[Amounts] = MappingProxyType({CPU: 100, MEMORY: 200 * 2**20})
"""What kube-scheduler puts in when it spreads pods, for a container that does not state a key."""


def effective_requests(pod: Pod, *, pod_level: bool = True) -> dict[str, int]:
    """The pod's request a resource, as a node must have it free.

    Without `pod_level` the pod-level requests are left out, as kube-scheduler's fit score does for the
    incoming pod.
    """
    return _whole(pod, _requests, pod.pod_requests if pod_level else None)


def occupied_requests(pod: Pod) -> dict[str, int]:
    """What an assigned pod takes from its node: like `effective_requests`, resizes considered.

    While a container is resized it takes the largest of its spec, what it was granted, and what it
    has; a resize that the node refused for good does not count.
    """
    return _whole(pod, _held_requests(pod), pod.pod_requests)


def effective_limits(pod: Pod) -> dict[str, int]:
    """The pod's limit a resource. Overhead is added only to keys that have a limit above zero."""
    limits = _whole(pod, _limits, pod.pod_limits, overhead=NOTHING)
    for resource, extra in pod.overhead.items():
        if limits.get(resource, 0) > 0:
            limits[resource] += extra
    return limits


def nonzero_requests(
    pod: Pod, unstated: Amounts = STOCK_UNSTATED, *, pod_level: bool = True
) -> dict[str, int]:
    """Like `effective_requests`, with `unstated` put in for each container that lacks one of its keys.

    An explicit zero stays zero.
    """
    declared = pod.pod_requests if pod_level else None
    return _whole(pod, lambda container: {**unstated, **container.requests}, declared)


def occupied_nonzero_requests(pod: Pod, unstated: Amounts = STOCK_UNSTATED) -> dict[str, int]:
    """What an assigned pod adds to its node's non-zero totals.

    Like `occupied_requests` with `unstated` put in as in `nonzero_requests`; but where the pod itself
    declares requests, only for keys that its effective request does not have at all.
    """
    held = _held_requests(pod)
    if pod.pod_requests:
        whole = _whole(pod, held, pod.pod_requests)
        unstated = {resource: value for resource, value in unstated.items() if resource not in whole}
    return _whole(pod, lambda container: {**unstated, **held(container)}, pod.pod_requests)


def pod_demand(pod: Pod, unstated: Amounts = STOCK_UNSTATED) -> PodDemand:
    """All three at once, for the pod's facts."""
    return PodDemand(effective_requests(pod), effective_limits(pod), nonzero_requests(pod, unstated))


def requests_anything(requests: Mapping[str, int]) -> bool:
    """Whether any amount is above zero."""
    return any(value > 0 for value in requests.values())


def _requests(container: Container) -> Amounts:
    return container.requests


def _limits(container: Container) -> Amounts:
    return container.limits


def _held_requests(pod: Pod) -> Callable[[Container], Amounts]:
    refused = pod.resize_infeasible

    def held(container: Container) -> Amounts:
        if container.running is None:
            return container.requests
        return container.running if refused else larger(container.requests, container.running)

    return held


def _whole(
    pod: Pod,
    part: Callable[[Container], Amounts],
    declared: Amounts | None,
    overhead: Amounts | None = None,
) -> dict[str, int]:
    """The rule of the module's docstring over one kind of resource list."""
    if len(pod.containers) == 1 and not pod.init_containers and declared is None and not pod.overhead:
        return dict(part(pod.containers[0]))
    total: dict[str, int] = {}
    for container in pod.containers:
        _add(total, part(container))
    sidecars: dict[str, int] = {}
    peak: dict[str, int] = {}
    for container in pod.init_containers:
        if container.sidecar:
            _add(total, part(container))
            _add(sidecars, part(container))
        else:
            moment = dict(part(container))
            _add(moment, sidecars)
            peak = larger(peak, moment)
    total = larger(total, peak) if peak else total
    for resource, value in (declared or {}).items():
        if resource in (CPU, MEMORY) or resource.startswith(HUGEPAGES_PREFIX):
            total[resource] = value
    _add(total, pod.overhead if overhead is None else overhead)
    return total


def _add(total: dict[str, int], more: Amounts) -> None:
    for resource, value in more.items():
        total[resource] = total.get(resource, 0) + value
