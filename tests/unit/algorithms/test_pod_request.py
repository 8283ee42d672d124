"""What pods ask for: the rule by examples, and the special cases of assigned pods."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from koordpolicy.algorithms.pod_request import (
    effective_limits,
    effective_requests,
    nonzero_requests,
    occupied_nonzero_requests,
    occupied_requests,
    pod_demand,
    requests_anything,
)
from koordpolicy.model.pod import Container, Pod, PodCondition
from koordpolicy.model.reading import Amounts

LIST = st.dictionaries(st.sampled_from(["cpu", "memory", "x.io/y"]), st.integers(0, 20))
CONTAINERS = st.lists(st.builds(Container, st.just("c"), st.just(""), LIST, LIST, st.booleans()), max_size=4)


@st.composite
def pods(draw: st.DrawFn) -> Pod:
    return Pod(
        "p",
        containers=tuple(replace(one, sidecar=False) for one in draw(CONTAINERS)),
        init_containers=tuple(draw(CONTAINERS)),
        overhead=draw(LIST),
    )


def moments(pod: Pod) -> list[list[Container]]:
    """Who runs together at each moment of the pod's life, written as plainly as possible."""
    sidecars: list[Container] = []
    lives = []
    for container in pod.init_containers:
        if container.sidecar:
            sidecars = [*sidecars, container]
        else:
            lives.append([*sidecars, container])
    return [*lives, [*sidecars, *pod.containers]]


@given(pods())
def test_a_pod_needs_the_largest_moment_of_its_life_and_its_overhead(pod: Pod) -> None:
    expected = {}
    for resource in ("cpu", "memory", "x.io/y"):
        peak = max(sum(one.requests.get(resource, 0) for one in moment) for moment in moments(pod))
        expected[resource] = peak + pod.overhead.get(resource, 0)
    found = effective_requests(pod)
    assert {resource: found.get(resource, 0) for resource in expected} == expected


@given(pods())
def test_what_is_put_in_never_lowers_a_request(pod: Pod) -> None:
    requests, nonzero = effective_requests(pod), nonzero_requests(pod, {"cpu": 3})
    assert all(nonzero[resource] >= value for resource, value in requests.items())
    assert all(nonzero.get(name, 0) == requests.get(name, 0) for name in ("memory", "x.io/y"))


@given(pods())
def test_without_a_resize_an_assigned_pod_takes_what_it_requests(pod: Pod) -> None:
    assert occupied_requests(pod) == effective_requests(pod)
    assert occupied_nonzero_requests(pod) == nonzero_requests(pod)


def one(requests: Amounts, running: Amounts | None = None, limits: Amounts | None = None) -> Pod:
    return Pod("p", containers=(Container("c", requests=requests, limits=limits or {}, running=running),))


def test_a_resize_counts_at_its_largest_unless_it_was_refused() -> None:
    pod = one({"cpu": 5, "memory": 1}, running={"cpu": 3, "memory": 2})
    assert occupied_requests(pod) == {"cpu": 5, "memory": 2}
    refused = replace(pod, conditions=(PodCondition("PodResizePending", "True", "Infeasible"),))
    assert occupied_requests(refused) == {"cpu": 3, "memory": 2}
    deferred = replace(pod, conditions=(PodCondition("PodResizePending", "True", "Deferred"),))
    assert occupied_requests(deferred) == {"cpu": 5, "memory": 2}
    assert effective_requests(pod) == {"cpu": 5, "memory": 1}


def test_pod_level_requests_replace_some_keys() -> None:
    pod = replace(
        one({"cpu": 5, "memory": 1, "x.io/y": 2}),
        pod_requests={"cpu": 9, "hugepages-2Mi": 4, "x.io/y": 7},
        overhead={"cpu": 1},
    )
    assert effective_requests(pod) == {"cpu": 10, "memory": 1, "x.io/y": 2, "hugepages-2Mi": 4}
    assert effective_requests(pod, pod_level=False) == {"cpu": 6, "memory": 1, "x.io/y": 2}


def test_with_pod_level_requests_only_absent_keys_are_put_into_node_totals() -> None:
    pod = Pod("p", containers=(Container("c"), Container("d")), pod_requests={"memory": 7})
    assert occupied_nonzero_requests(pod, {"cpu": 3, "memory": 5}) == {"cpu": 6, "memory": 7}
    with_some = replace(pod, containers=(Container("c", requests={"cpu": 1}), Container("d")))
    assert occupied_nonzero_requests(with_some, {"cpu": 3, "memory": 5}) == {"cpu": 1, "memory": 7}
    assert nonzero_requests(with_some, {"cpu": 3, "memory": 5}) == {"cpu": 4, "memory": 7}


def test_overhead_joins_only_limits_that_exist() -> None:
    pod = replace(one({}, limits={"cpu": 5, "memory": 0}), overhead={"cpu": 1, "memory": 2, "x.io/y": 3})
    assert effective_limits(pod) == {"cpu": 6, "memory": 0}


def test_pod_level_limits_replace_some_keys() -> None:
    pod = replace(one({}, limits={"cpu": 5, "x.io/y": 1}), pod_limits={"cpu": 8, "x.io/y": 9})
    assert effective_limits(pod) == {"cpu": 8, "x.io/y": 1}


def test_all_at_once() -> None:
    demand = pod_demand(one({"cpu": 5}, limits={"cpu": 6}), {"memory": 9})
    assert (demand.request, demand.limit, demand.nonzero) == ({"cpu": 5}, {"cpu": 6}, {"cpu": 5, "memory": 9})
    assert requests_anything(demand.request)
    assert not requests_anything({"cpu": 0})
