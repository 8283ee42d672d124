"""Room on nodes: one node and all nodes give the same answers, and everything short is named."""

from hypothesis import given
from hypothesis import strategies as st

from koordpolicy.algorithms.fit import checked_resources, fit_all, fit_one
from tests.unit.algorithms.clusters import LIST, NODES, RESOURCES, RandomNode, amount, columns

IGNORED = st.sets(st.sampled_from(RESOURCES), max_size=2)
GROUPS = st.sets(st.sampled_from(["nvidia.com", "kubernetes.io"]), max_size=1)


@given(LIST, NODES, IGNORED, GROUPS)
def test_all_nodes_at_once_answer_as_one_by_one(
    request: dict[str, int], nodes: list[RandomNode], ignored: set[str], groups: set[str]
) -> None:
    found = fit_all(
        request,
        columns([node.allocatable for node in nodes]),
        columns([node.requested for node in nodes]),
        amount(*(node.pod_count for node in nodes)),
        ignored,
        groups,
    )
    resources, lacking = fit_one(request, ignored, groups)
    assert found.resources == resources
    one_by_one = [lacking(node.allocatable, node.requested, node.pod_count) for node in nodes]
    if found.short is None or found.unresolvable is None:
        assert not any(one_by_one)
        return
    together = list(zip(map(tuple, found.short.T.tolist()), found.unresolvable.tolist(), strict=True))
    assert [one or ((False,) * len(resources), False) for one in one_by_one] == together


@given(LIST, NODES)
def test_a_pod_that_fits_never_overfills(request: dict[str, int], nodes: list[RandomNode]) -> None:
    _, lacking = fit_one(request)
    for node in nodes:
        if lacking(node.allocatable, node.requested, node.pod_count) is None:
            for resource, asked in request.items():
                used = node.requested.get(resource, 0) + asked
                assert resource == "pods" or asked == 0 or used <= node.allocatable.get(resource, 0)
            assert node.pod_count + 1 <= node.allocatable.get("pods", 0)


def test_reasons_come_in_a_fixed_order() -> None:
    request = {"b.io/x": 1, "nvidia.com/gpu": 1, "ephemeral-storage": 1, "memory": 1, "a.io/x": 0, "cpu": 1}
    assert checked_resources(request) == ("cpu", "memory", "ephemeral-storage", "b.io/x", "nvidia.com/gpu")
    assert checked_resources(request, {"cpu", "b.io/x"}, {"nvidia.com"}) == (
        "cpu",
        "memory",
        "ephemeral-storage",
    )


def test_own_resources_cannot_be_ignored() -> None:
    request = {"kubernetes.io/batch-cpu": 1}
    assert checked_resources(request, request, {"kubernetes.io"}) == ("kubernetes.io/batch-cpu",)


def test_a_node_is_unresolvable_where_one_resource_is_short_when_it_is_empty() -> None:
    resources, lacking = fit_one({"cpu": 500, "memory": 9})
    assert resources == ("pods", "cpu", "memory")
    assert lacking({"cpu": 600, "memory": 9, "pods": 2}, {"cpu": 100}, 1) is None
    assert lacking({"cpu": 600, "memory": 9, "pods": 1}, {"cpu": 200}, 1) == ((True, True, False), False)
    assert lacking({"cpu": 600, "memory": 8, "pods": 1}, {"cpu": 200}, 1) == ((True, True, True), True)
    assert lacking({}, {}, 0) == ((True, True, True), True)


def test_no_nodes() -> None:
    assert fit_all({"cpu": 1}, columns([]), columns([]), amount()).short is None
