"""How full and how uneven nodes are."""

from hypothesis import given
from hypothesis import strategies as st

from koordpolicy.algorithms.descheduling.fragmentation import NodeRequests
from koordpolicy.algorithms.descheduling.node_score import usage_score

NAMES = ("cpu", "memory", "gpu")
AMOUNTS = st.fixed_dictionaries(dict.fromkeys(NAMES, st.integers(0, 1_000)))
CAPACITIES = st.fixed_dictionaries(dict.fromkeys(NAMES, st.integers(0, 2_000)))


@given(AMOUNTS, CAPACITIES, AMOUNTS)
def test_a_score_is_a_mean_of_shares_and_grows_with_usage(
    usage: dict[str, int], capacity: dict[str, int], weights: dict[str, int]
) -> None:
    score = usage_score(usage, capacity, weights)
    assert 0 <= score <= 1000
    for name in NAMES:
        assert usage_score({**usage, name: usage[name] + 1}, capacity, weights) >= score


@given(st.lists(AMOUNTS, max_size=8), CAPACITIES, st.floats(0, 0.5), st.floats(0, 0.2))
def test_the_best_pod_leaves_the_least_imbalance(
    pods: list[dict[str, int]], allocatable: dict[str, int], threshold: float, least: float
) -> None:
    requested = {name: sum(pod[name] for pod in pods) for name in NAMES}
    node = NodeRequests(allocatable, requested, NAMES)
    left = [node.imbalance(pod) for pod in pods]
    best = node.best(pods, threshold, least)
    if best is not None:
        assert node.imbalance() > threshold
        assert best.candidate == left.index(min(left))
        assert best.gain == node.imbalance() - min(left) > least
    elif pods and node.imbalance() > threshold:
        assert node.imbalance() - min(left) <= least


def test_a_node_without_any_of_the_resources_is_even() -> None:
    assert NodeRequests({}, {"cpu": 5}, NAMES).imbalance() == 0
