"""Amounts up to the end of int64 and sums far beyond it: nothing wraps, nothing is raised, what leaves frees its room."""

from collections.abc import Callable, Mapping

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from koordpolicy.algorithms import balanced
from koordpolicy.algorithms.amplified import short_of_cpu, short_of_cpu_one
from koordpolicy.algorithms.columns import Amount, total
from koordpolicy.algorithms.fit import fit_all, fit_one
from koordpolicy.algorithms.fit_score import FitScore, Strategy
from koordpolicy.algorithms.pod_request import effective_limits, effective_requests, nonzero_requests
from koordpolicy.graph import RuleGraph
from koordpolicy.model.amounts import all_within, within
from koordpolicy.model.quantity import INT64_MAX, INT64_MIN
from koordpolicy.model.table.kinds import ScalarFact, Storage
from tests.unit.scheduler.world import PROFILE, World, node, pod, policies

GRAPH: RuleGraph = policies({})

_NUMBERS = st.one_of(
    st.sampled_from([0, 1, 100, 2**46, 2**53, 2**55, 2**56, 2**62, INT64_MAX - 1, INT64_MAX]),
    st.integers(0, INT64_MAX),
)
_TEXTS = st.sampled_from(["0", "1", "1Gi", "4Ei", "5Ei", "8Ei", "9Ei", "9e18", "99E", str(INT64_MAX)])
_REQUESTS = st.fixed_dictionaries({}, optional={"cpu": _TEXTS, "memory": _TEXTS, "example.com/gpu": _TEXTS})
_PODS = st.dictionaries(st.sampled_from([f"p{n}" for n in range(6)]), _REQUESTS, min_size=1)


def column(values: list[int]) -> Amount:
    numbers = np.array(values, np.int64)
    return Amount(numbers, min(values), max(values))


@given(st.dictionaries(st.sampled_from("ab"), st.integers(-(2**70), 2**70)))
def test_what_is_shown_lies_within_int64(amounts: dict[str, int]) -> None:
    shown = all_within(amounts)
    assert shown == {name: max(INT64_MIN, min(INT64_MAX, number)) for name, number in amounts.items()}
    assert all(within(number) == shown[name] for name, number in amounts.items())


@given(st.lists(_REQUESTS, min_size=1, max_size=4), st.lists(_REQUESTS, max_size=3), _REQUESTS)
def test_what_a_pod_asks_for_stops_at_the_end_of_int64(
    containers: list[dict[str, str]], first: list[dict[str, str]], overhead: dict[str, str]
) -> None:
    def written(lists: list[dict[str, str]], head: str) -> list[dict[str, object]]:
        return [
            {"name": f"{head}{at}", "resources": {"requests": one, "limits": one}}
            for at, one in enumerate(lists)
        ]

    whole = pod(
        "p",
        {"containers": written(containers, "c"), "initContainers": written(first, "i"), "overhead": overhead},
    )
    for found in (effective_requests(whole), effective_limits(whole), nonzero_requests(whole)):
        assert all(0 <= number <= INT64_MAX for number in found.values())


@given(_PODS, st.permutations([f"p{n}" for n in range(6)]), st.integers(0, 6))
def test_pods_leave_a_node_as_they_found_it(
    pods: dict[str, dict[str, str]], order: list[str], stay: int
) -> None:
    """The ledger is exact beyond int64: only what is shown of it stops there."""
    world = World(GRAPH)
    scheduler = world.scheduler
    scheduler.set_node(node("n0", {}))
    scheduler.set_node(node("n1", {}))
    table = scheduler.cache.table
    for path in ("requested.memory", "free.memory", "requested.cpu", "nonzeroRequested.cpu"):
        table.column(path)
    empty = dict(table.row(0))
    for name, request in pods.items():
        scheduler.set_pod(pod(name, {"request": request, "node": "n0"}))
        for path, kind in table.schema.items():
            value = table.row(0).get(path)
            if isinstance(kind, ScalarFact) and kind.storage is Storage.INT and isinstance(value, int):
                assert INT64_MIN <= value <= INT64_MAX
                assert table.column(path).values[0] == value
    leaving = [name for name in order if name in pods][stay:]
    for name in leaving:
        scheduler.remove_pod(("default", name))
    expected: dict[str, int] = {}
    for name in pods.keys() - set(leaving):
        for resource, number in effective_requests(pod(name, {"request": pods[name]})).items():
            expected[resource] = expected.get(resource, 0) + number
    row = table.row(0)
    assert row["requested.memory"] == within(expected.get("memory", 0))
    assert row["requested.cpu"] == within(expected.get("cpu", 0))
    assert row["requested.pods"] == len(pods) - len(leaving)
    if len(leaving) == len(pods):
        changed = {path for path in empty if empty[path] != row[path]} - {
            "resources.requested", "resources.nonzeroRequested"
        }  # fmt: skip
        assert not changed


@given(st.lists(st.tuples(_NUMBERS, _NUMBERS), min_size=1, max_size=5), _NUMBERS)
def test_plugins_say_the_same_of_one_node_and_of_all(nodes: list[tuple[int, int]], asked: int) -> None:
    has, used, count = [one for one, _ in nodes], [one for _, one in nodes], len(nodes)
    request = {"memory": asked}
    columns: Mapping[str, Amount] = {"memory": column(has), "pods": column([110] * count)}
    taken: Mapping[str, Amount] = {"memory": column(used)}

    _, lacking = fit_one(request)
    found = fit_all(request, columns, taken, column([0] * count), ())
    refused = [lacking({"memory": one, "pods": 110}, {"memory": two}, 0) for one, two in nodes]
    short = [False] * count if found.short is None else found.short[1:].any(axis=0).tolist()
    assert short == [one is not None for one in refused]

    for strategy, shape in (
        (Strategy.LEAST_ALLOCATED, ()),
        (Strategy.MOST_ALLOCATED, ()),
        (Strategy.REQUESTED_TO_CAPACITY_RATIO, ((0, 10), (100, 0))),
    ):
        score = FitScore.of(strategy, (("memory", 1),), shape)
        one_by_one = score.score_one(request, request)
        expected = [one_by_one({"memory": one}, {"memory": two}, {"memory": two}) for one, two in nodes]
        assert score.score_all(request, request, columns, taken, taken, count).tolist() == expected

    if asked:
        balance = balanced.classic_one(("memory",), request)
        together = balanced.classic_all(("memory",), request, columns, taken, count)
        assert together.tolist() == [balance({"memory": one}, {"memory": two}) for one, two in nodes]


@given(
    st.lists(
        st.tuples(_NUMBERS, _NUMBERS, st.integers(0, 65_536_000), st.floats(0.5, 1e300)),
        min_size=1,
        max_size=4,
    ),
    _NUMBERS,
    st.booleans(),
)
def test_amplified_cpu_says_the_same_of_one_node_and_of_all(
    nodes: list[tuple[int, int, int, float]], asked: int, binds: bool
) -> None:
    has, used, bound, ratio = (np.array(values) for values in zip(*nodes, strict=True))
    short: Callable[[float, int, int, int], bool] = short_of_cpu_one(asked, binds=binds)
    found = short_of_cpu(asked, binds=binds, ratio=ratio, allocatable=has, requested=used, bound=bound)
    assert found.tolist() == [short(r, one, two, own) for one, two, own, r in nodes]


@given(st.lists(_NUMBERS))
def test_sums_over_nodes_are_exact(numbers: list[int]) -> None:
    assert total(np.array(numbers, np.int64)) == sum(numbers)


def test_a_pod_of_8ei_beside_another_one_takes_no_more_than_its_node() -> None:
    world = World(GRAPH)
    for name in ("n0", "n1"):
        world.scheduler.set_node(node(name, {}))
    world.scheduler.set_pod(pod("first", {"node": "n0"}))
    world.scheduler.set_pod(pod("large", {"node": "n0", "request": {"memory": "8Ei"}}))
    world.submit("next")
    decision = world.scheduler.schedule_one()
    assert decision is not None
    assert (decision.node, world.scheduler.profile.name) == ("n1", PROFILE)
