"""What a pod asks for as a whole: containers, init containers, sidecars, pod level and overhead.

Containers and sidecars run together and add up; each ordinary init container runs beside the sidecars
declared before it, and the pod needs the largest of these moments. Pod-level resources then replace
the sum for their keys, and overhead comes on top. What a pod asks for stops at the end of int64.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from koordpolicy.model.amounts import add_to, all_within, within
from koordpolicy.model.facts.pod import PodDemand
from koordpolicy.model.pod import Container, Pod, larger
from koordpolicy.model.protocol import CPU, HUGEPAGES_PREFIX, MEMORY
from koordpolicy.model.reading import NOTHING, Amounts

STOCK_UNSTATED: Final[Amounts] = MappingProxyType({CPU: 100, MEMORY: 200 * 2**20})
"""What kube-scheduler puts in when it spreads pods, for a container that does not state a key."""


def effective_requests(pod: Pod, *, pod_level: bool = True) -> Amounts:
    """The pod's request a resource, as a node must have it free.

    Without `pod_level` the pod-level requests are left out, as kube-scheduler's fit score does for the
    incoming pod.
    """
    return _whole(pod, _requests, pod.pod_requests if pod_level else None)


def occupied_requests(pod: Pod) -> Amounts:
    """What an assigned pod takes from its node: like `effective_requests`, resizes considered.

    While a container is resized it takes the largest of its spec, what it was granted, and what it
    has; a resize that the node refused for good does not count.
    """
    return _whole(pod, _held_requests(pod), pod.pod_requests)


def effective_limits(pod: Pod) -> Amounts:
    """The pod's limit a resource. Overhead is added only to keys that have a limit above zero."""
    limits = _whole(pod, _limits, pod.pod_limits, overhead=NOTHING)
    if not pod.overhead:
        return limits
    more = {name: extra for name, extra in pod.overhead.items() if limits.get(name, 0) > 0}
    return {**limits, **{name: within(limits[name] + extra) for name, extra in more.items()}}


def nonzero_requests(pod: Pod, unstated: Amounts = STOCK_UNSTATED, *, pod_level: bool = True) -> Amounts:
    """Like `effective_requests`, with `unstated` put in for each container that lacks one of its keys.

    An explicit zero stays zero.
    """
    declared = pod.pod_requests if pod_level else None
    return _whole(pod, lambda container: {**unstated, **container.requests}, declared)


def occupied_nonzero_requests(pod: Pod, unstated: Amounts = STOCK_UNSTATED) -> Amounts:
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
    if _is_one_container(pod) and pod.pod_requests is None and pod.pod_limits is None:  # as nearly always
        (one,) = pod.containers
        return PodDemand(dict(one.requests), dict(one.limits), {**unstated, **one.requests})
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
) -> Amounts:
    """The rule of the module's docstring over one kind of resource list."""
    if declared is None and _is_one_container(pod):
        return dict(part(pod.containers[0]))
    total: dict[str, int] = {}
    for container in pod.containers:
        add_to(total, part(container))
    sidecars: dict[str, int] = {}
    peak: dict[str, int] = {}
    for container in pod.init_containers:
        if container.sidecar:
            add_to(total, part(container))
            add_to(sidecars, part(container))
        else:
            moment = dict(part(container))
            add_to(moment, sidecars)
            peak = larger(peak, moment)
    total = larger(total, peak) if peak else total
    for resource, value in (declared or {}).items():
        if resource in (CPU, MEMORY) or resource.startswith(HUGEPAGES_PREFIX):
            total[resource] = value
    add_to(total, pod.overhead if overhead is None else overhead)
    return all_within(total)


def _is_one_container(pod: Pod) -> bool:
    """Whether a pod is one container and nothing more."""
    return len(pod.containers) == 1 and not pod.init_containers and not pod.overhead
