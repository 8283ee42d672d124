"""What the built-in pack asks of all nodes at once has a column form throughout."""

from koordpolicy.graph import Layer, compile_policies
from koordpolicy.graph.plan import Way, plans
from koordpolicy.resources import policies

ASKED_OF_ALL_NODES = {"SchedulingProfile", "Overcommit"}
"""Other kinds are asked node by node, when something happens to one."""

WHEN_WRITTEN = ("onMissing", "publish")
"""What nodes have a say in, and is asked of a node when something is written to it: what it says is checked one by one."""


def test_nothing_that_looks_at_all_nodes_looks_at_them_one_by_one() -> None:
    root = policies()
    files = {str(path.relative_to(root)): path.read_text() for path in root.rglob("*.yaml")}
    graph = compile_policies(Layer("koordinator", files)).graph
    assert graph is not None
    over_nodes = [
        plan
        for plan in plans(graph)
        if plan.way in (Way.COLUMNS, Way.MIXED) and plan.decision.partition("/")[0] in ASKED_OF_ALL_NODES
    ]
    assert {plan.decision.partition("/")[0] for plan in over_nodes} == ASKED_OF_ALL_NODES
    assert [
        (plan.decision, plan.reasons)
        for plan in over_nodes
        if plan.way is Way.MIXED and plan.decision.split(".")[1] not in WHEN_WRITTEN
    ] == []
