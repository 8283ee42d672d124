"""Plugins asked node by node say what they say of all nodes at once, and of a few of them."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from koordpolicy.algorithms.fit_score import Strategy
from koordpolicy.cluster.nodes import KINDS, TAINTS, NodeView, node_schema
from koordpolicy.cluster.pods import PodView, view_of
from koordpolicy.model.pod import Container, Pod
from koordpolicy.model.protocol import BATCH_CPU
from koordpolicy.model.table import NodeTable
from koordpolicy.scheduler.plugins import PLUGINS, Parameters, Plugin
from tests.unit.algorithms.clusters import LIST, NODE, RESOURCES, RandomNode
from tests.vectors.policies import graph

NAMES = st.lists(st.sampled_from(RESOURCES), unique=True, max_size=5)
WEIGHTS = st.dictionaries(st.sampled_from(RESOURCES), st.integers(0, 100), max_size=5)
RATIO = st.one_of(
    st.none(), st.sampled_from([-1.0, 0.0, 0.5, 1.0, 1.5, 2.0, 3.7, 1e30, float("inf"), float("nan")])
)

PARAMETERS: dict[str, dict[str, st.SearchStrategy[Any]]] = {
    "NodeResourcesFit": {
        "ignoredResources": NAMES,
        "ignoredResourceGroups": st.lists(st.sampled_from(["nvidia.com", "kubernetes.io"])),
        "strategy": st.sampled_from([str(one) for one in Strategy]),
        "weights": WEIGHTS,
        "shape": st.dictionaries(
            st.integers(0, 100).map(lambda use: f"{use}%"), st.integers(0, 10), min_size=1
        ),
    },
    "NodeResourcesBalancedAllocation": {
        "resources": st.one_of(st.just(["cpu", "memory"]), NAMES),
        "variant": st.sampled_from(["classic", "delta"]),
    },
    "NodeResourcesFitPlus": {
        "strategies": st.dictionaries(
            st.sampled_from(RESOURCES), st.sampled_from(["LeastAllocated", "MostAllocated"])
        ),
        "weights": WEIGHTS,
    },
    "AmplifiedCPU": {"owns": st.booleans()},
}


REQUIRED = {"shape"}
"""Without a shape there is no score by a curve."""


@st.composite
def tables(draw: st.DrawFn) -> NodeTable:
    """Nodes of which some are amplified; a resource that nobody has or requests may stand at none."""
    table = NodeTable(node_schema())
    nodes = draw(st.lists(NODE, min_size=1, max_size=6))
    amplified = draw(st.booleans())
    for number, node in enumerate(nodes):
        ratio = draw(RATIO) if amplified else None
        table.put(f"node-{number}", facts(node, ratio, draw(st.integers(0, 12))))
    return table


def facts(node: RandomNode, ratio: float | None, owned: int) -> dict[str, object]:
    return {
        TAINTS: "",
        KINDS: "",
        "resources.allocatable": node.allocatable,
        "resources.requested": node.requested,
        "resources.nonzeroRequested": node.nonzero,
        "requested.pods": node.pod_count,
        "ownedCPU": owned,
        **({} if ratio is None else {"amplification.cpu": ratio}),
    }


@st.composite
def pods(draw: st.DrawFn) -> PodView:
    containers = tuple(
        Container(f"container-{number}", requests=request)
        for number, request in enumerate(draw(st.lists(LIST, min_size=1, max_size=2)))
    )
    pod_level = draw(st.one_of(st.just({}), LIST))
    pod = Pod(
        "pod", containers=containers, pod_requests=pod_level, overhead=draw(st.one_of(st.just({}), LIST))
    )
    return view_of(pod, graph().catalogue, lambda _facts: None)


@pytest.mark.parametrize("name", [*PARAMETERS])
@given(data=st.data())
def test_each_node_has_the_answer_that_it_has_among_all(name: str, data: st.DataObject) -> None:
    plugin = PLUGINS[name]
    said = PARAMETERS[name]
    always = {key: values for key, values in said.items() if key in REQUIRED}
    optional = {key: values for key, values in said.items() if key not in REQUIRED}
    parameters = Parameters(data.draw(st.fixed_dictionaries(always, optional=optional)))
    table, pod = data.draw(tables()), data.draw(pods())
    agree(plugin, pod, table, parameters)
    for number, node in data.draw(st.lists(st.tuples(st.integers(0, 7), NODE), max_size=3)):
        table.put(f"node-{number}", facts(node, None, 0))
        agree(plugin, pod, table, parameters)


def agree(plugin: Plugin, pod: PodView, table: NodeTable, parameters: Parameters) -> None:
    """Of all nodes, and of the same nodes as a few and as many rows of the table."""
    every = np.arange(len(table))
    for nodes in (NodeView(table), NodeView(table, every)):
        refusals_agree(plugin, pod, table, nodes, parameters)
        scores_agree(plugin, pod, table, nodes, parameters)
    many = NodeView(table, np.tile(every, 13))
    refusals_agree(plugin, pod, table, many, parameters)


def refusals_agree(
    plugin: Plugin, pod: PodView, table: NodeTable, nodes: NodeView, parameters: Parameters
) -> None:
    if plugin.filter is None or plugin.filter_one is None:
        assert plugin.filter_one is None
        return
    verdicts = plugin.filter(pod, nodes, parameters)
    reasons, ask = plugin.filter_one(pod, parameters)
    assert reasons == verdicts.reasons
    for row in range(len(table)):
        found = ask(table.row(row))
        refused, unresolvable = (
            (False,) * len(reasons) if found is None else found[0],
            bool(found and found[1]),
        )
        assert found is None or any(refused)
        assert refused == tuple(verdicts.refused[:, row].tolist())
        assert unresolvable == bool(verdicts.unresolvable[row])


def scores_agree(
    plugin: Plugin, pod: PodView, table: NodeTable, nodes: NodeView, parameters: Parameters
) -> None:
    if plugin.score is None or plugin.score_one is None:
        assert plugin.score_one is None
        return
    scores = plugin.score(pod, nodes, parameters)
    score = plugin.score_one(pod, parameters)
    if scores is None or score is None:
        assert (scores is None) == (score is None)
        return
    assert scores.tolist() == [score(table.row(row)) for row in range(len(table))]


def test_the_example_of_a_full_node() -> None:
    view = view_of(
        Pod("pod", containers=(Container("c", requests={"cpu": 9}),)), graph().catalogue, lambda _: None
    )
    full = RandomNode({"cpu": 8, "pods": 1, BATCH_CPU: 1}, {}, {}, 1)
    ask = PLUGINS["NodeResourcesFit"].filter_one
    assert ask is not None
    reasons, refused = ask(view, Parameters({}))
    assert reasons == ("Too many pods", "Insufficient cpu")
    assert refused(facts(full, None, 0)) == ((True, True), True)
    assert refused(facts(RandomNode({"cpu": 9, "pods": 2}, {"cpu": 1}, {}, 1), None, 0)) == (
        (False, True),
        False,
    )
    assert refused(facts(RandomNode({"cpu": 9, "pods": 2}, {}, {}, 1), None, 0)) is None
