"""Room on nodes: one node and all nodes give the same answers, and everything short is named."""

from hypothesis import given
from hypothesis import strategies as st

from koordpolicy.algorithms.fit import Shortage, checked_resources, fit, fit_all, verdict
from koordpolicy.algorithms.verdict import Verdict
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
    for index, node in enumerate(nodes):
        short = fit(request, node.allocatable, node.requested, node.pod_count, ignored, groups)
        assert found.reasons(index) == tuple(one.reason for one in short)
        assert found.verdicts[index] == verdict(short)
        assert found.passes[index] == (not short)


@given(LIST, NODES)
def test_a_pod_that_fits_never_overfills(request: dict[str, int], nodes: list[RandomNode]) -> None:
    for node in nodes:
        if not fit(request, node.allocatable, node.requested, node.pod_count):
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


def test_one_hopeless_shortage_makes_the_node_unresolvable() -> None:
    short = fit({"cpu": 500, "memory": 9}, {"cpu": 600, "memory": 8, "pods": 1}, {"cpu": 200}, 1)
    assert short == (Shortage("pods", 1, 1, 1), Shortage("cpu", 500, 200, 600), Shortage("memory", 9, 0, 8))
    assert [one.verdict for one in short] == [
        Verdict.UNSCHEDULABLE,
        Verdict.UNSCHEDULABLE,
        Verdict.UNRESOLVABLE,
    ]
    assert verdict(short).word == "UnschedulableAndUnresolvable"
    assert verdict(()) is Verdict.PASS


def test_no_nodes() -> None:
    found = fit_all({"cpu": 1}, columns([]), columns([]), amount())
    assert (found.passes.shape, found.verdicts.shape) == ((0,), (0,))
