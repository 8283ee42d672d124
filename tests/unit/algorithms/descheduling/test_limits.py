"""How many pods may go: of a workload, and in a cycle."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from koordpolicy.algorithms.descheduling.eviction_limiter import EvictionLimiter, EvictionLimits
from koordpolicy.algorithms.descheduling.workload_limits import max_pods
from koordpolicy.model.eviction_cost import read_eviction_cost

REPLICAS = st.integers(0, 10_000)
SHARES = st.none() | st.integers(0, 20_000) | st.integers(0, 200).map("{}%".format)
LIMITS = st.none() | st.integers(0, 4)
PODS = st.lists(st.tuples(st.sampled_from(["", "a", "b"]), st.sampled_from(["x", "y"])), max_size=40)


@given(REPLICAS, SHARES)
def test_some_pods_of_a_workload_may_always_go_and_never_more_than_it_has(
    replicas: int, share: int | str | None
) -> None:
    assert min(1, replicas) <= max_pods(replicas, share) <= replicas


@given(REPLICAS, REPLICAS, st.integers(0, 200))
def test_a_larger_workload_or_percentage_never_allows_fewer(one: int, other: int, percent: int) -> None:
    fewer, more = sorted((one, other))
    assert max_pods(fewer, f"{percent}%") <= max_pods(more, f"{percent}%")
    assert max_pods(one, f"{percent}%") <= max_pods(one, f"{percent + 1}%")


def test_what_is_allowed_without_a_share_is_an_argument() -> None:
    assert max_pods(40, None, ((20, "50%"), (0, 3))) == 20
    assert max_pods(20, None, ((20, "50%"), (0, 3))) == 3


@pytest.mark.parametrize("share", ["ten", "10", "-5%", "1.5%", "%", "٣%"])
def test_a_share_that_is_no_percentage_is_refused(share: str) -> None:
    with pytest.raises(ValueError, match="neither a number of pods nor a percentage"):
        max_pods(10, share)


@given(LIMITS, LIMITS, LIMITS, PODS)
def test_a_cycle_evicts_all_that_its_limits_allow_and_no_more(
    per_node: int | None, per_namespace: int | None, total: int | None, pods: list[tuple[str, str]]
) -> None:
    limiter = EvictionLimiter(EvictionLimits(per_node, per_namespace, total))
    nodes, namespaces = Counter[str](), Counter[str]()
    for node, namespace in pods:
        broken = [
            name
            for name, count, limit in (
                ("node", nodes[node] if node else 0, per_node if node else None),
                ("namespace", namespaces[namespace], per_namespace),
                ("total", namespaces.total(), total),
            )
            if limit is not None and count + 1 > limit
        ]
        assert limiter.refusal(node, namespace) == (broken[0] if broken else None)
        if not broken:
            limiter.charge(node, namespace)
            nodes[node] += 1
            namespaces[namespace] += 1
    limiter.reset()
    assert limiter.refusal("a", "x") == EvictionLimiter(limiter.limits).refusal("a", "x")


@given(st.integers(-(2**33), 2**33))
def test_a_cost_within_32_bits_is_read_as_written(cost: int) -> None:
    assert read_eviction_cost(str(cost)) == (cost if -(2**31) <= cost < 2**31 else 0)


@given(st.text())
def test_any_text_is_a_cost(text: str) -> None:
    assert -(2**31) <= read_eviction_cost(text) < 2**31
