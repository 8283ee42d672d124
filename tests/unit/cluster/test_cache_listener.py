"""A cache that event handlers feed by themselves has the rows of a scheduler's, whatever happens."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from koordpolicy.cluster.cache import ClusterCache
from koordpolicy.cluster.cache_listener import CacheListener
from koordpolicy.cluster.event_handlers import EVENT_HANDLERS, handle
from koordpolicy.cluster.loads import LoadPolicy
from koordpolicy.cluster.pods import view_of
from koordpolicy.kube.resources import PODS
from koordpolicy.model.table import NodeTable
from tests.unit.scheduler.events import STEPS, Step
from tests.unit.scheduler.test_consistency import GRAPH
from tests.unit.scheduler.world import PROFILE, World, node, pod


def fed(world: World) -> tuple[ClusterCache, CacheListener]:
    policy = LoadPolicy(GRAPH, PROFILE)
    cache = ClusterCache(policy, GRAPH.catalogue, world.scheduler.profile.node_facts)
    view = lambda one: view_of(one, GRAPH.catalogue, policy.estimate)  # noqa: E731
    return cache, CacheListener(cache, view, lambda: world.now)


def rows(table: NodeTable) -> dict[str, object]:
    return {name: dict(table.row(table.index(name))) for name in table.names}


# Each example makes a scheduler, which compiles its programs.
@settings(max_examples=15)
@given(st.lists(STEPS, max_size=25))
def test_its_rows_are_the_schedulers(steps: list[Step]) -> None:
    world = World(GRAPH)
    cache, listener = fed(world)
    told = World(GRAPH)
    told.scheduler = listener  # type: ignore[assignment]
    for step in steps:
        step.act(world)
        told.now = world.now
        if step.name != "time":
            step.act(told)
    assert rows(cache.table) == rows(world.scheduler.cache.table)


def test_who_is_over_or_waits_is_on_no_node() -> None:
    world = World(GRAPH)
    cache, listener = fed(world)
    listener.set_node(node("n0", {}))
    (handler,) = (one for one in EVENT_HANDLERS if one.resource == PODS)
    for name, said, spec, there in (
        ("a", {"node": "n0", "phase": "Running"}, {}, 1),
        ("b", {"node": "n0", "phase": "Running"}, {}, 2),
        ("a", {"node": "n0", "phase": "Succeeded"}, {}, 1),
        ("c", {}, {}, 1),
        ("b", {}, {"nodeName": "n0", "containers": 1}, 1),  # cannot be read, and takes what it can have
        ("b", {}, {"containers": 1}, 0),
    ):
        raw: dict[str, Any] = dict(pod(name, said).raw)
        unreadable = handle(handler, listener, {**raw, "spec": {**raw["spec"], **spec}})
        assert (unreadable is not None) is ("containers" in spec)
        assert cache.pod_count == there
