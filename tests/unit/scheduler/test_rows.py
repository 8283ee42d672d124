"""Rows that are kept pod by pod say what rows say that are written whole."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from koordpolicy.cluster.cache import ClusterCache
from koordpolicy.cluster.label_sets import Wanted
from koordpolicy.cluster.loads import LoadPolicy
from koordpolicy.cluster.pods import view_of
from koordpolicy.graph import RuleGraph
from koordpolicy.model.labels import LabelSelector
from koordpolicy.model.neighbours import PodTerm
from koordpolicy.model.protocol import NODE_RESERVATION, ORIGIN_EXTENDED_ALLOCATABLE, RAW_ALLOCATABLE
from koordpolicy.scheduler.profile import profile_of
from tests.unit.scheduler.world import metric, node, pod, policies

GRAPH: RuleGraph = policies({})
PROFILE = "koord-scheduler"
NOW = 1_700_000_000 * 10**9
LOAD = LoadPolicy(GRAPH, PROFILE)
READS = profile_of(GRAPH, PROFILE).node_facts

NODES = ("n0", "n1", "n2")
_AMOUNTS = st.fixed_dictionaries(
    {},
    optional={
        "cpu": st.sampled_from(["0", "100m", "3"]),
        "memory": st.sampled_from(["0", "1Gi"]),
        "kubernetes.io/batch-cpu": st.sampled_from([0, 700]),
        "example.com/gpu": st.integers(0, 2),
        "pods": st.just(1),  # no container may ask for it; if one does, pods are counted all the same
    },
)
_POD = st.fixed_dictionaries(
    {"request": _AMOUNTS, "priority": st.sampled_from([9500, 5500])},
    optional={
        "annotations": st.just(
            {"scheduling.koordinator.sh/resource-status": '{"cpuset": "0-1", "numaNodeResources": []}'}
        )
    },
)
_NODE = st.fixed_dictionaries(
    {
        "allocatable": st.sampled_from(
            [
                {"cpu": 8, "memory": "8Gi"},
                {"cpu": 4, "memory": "1Gi", "example.com/gpu": 4, "pods": 10},
                {"cpu": 8, "memory": "8Gi", "kubernetes.io/batch-cpu": 900},
                {"cpu": 8, "memory": "8Gi", "kubernetes.io/batch-cpu": 0, "kubernetes.io/batch-memory": 5},
                {"cpu": 8, "memory": "8Gi", "kubernetes.io/batch-cpu": 300, "example.com/gpu": 1},
            ]
        )
    },
    optional={
        "thresholds": st.just({"usageThresholds": {"cpu": 40}}),
        "annotations": st.sampled_from(
            [
                {ORIGIN_EXTENDED_ALLOCATABLE: "1"},
                {ORIGIN_EXTENDED_ALLOCATABLE: "2"},
                {RAW_ALLOCATABLE: '{"cpu": "6", "kubernetes.io/batch-cpu": "1"}'},
                {NODE_RESERVATION: '{"resources": {"cpu": "1"}}'},
            ]
        ),
        "labels": st.just({"pool": "a"}),
        "taints": st.just(["a=b:NoSchedule"]),
        "unschedulable": st.just(True),
    },
)
_METRIC = st.fixed_dictionaries(
    {"usage": st.fixed_dictionaries({"cpu": st.integers(0, 6)}), "age": st.sampled_from([0, 400])},
    optional={"pods": st.just({"p0": {"usage": {"cpu": 1}}})},
)
_EVENTS = st.lists(
    st.one_of(
        st.tuples(st.just("place"), st.sampled_from(("p0", "p1", "p2")), st.sampled_from(NODES), _POD),
        st.tuples(st.just("displace"), st.sampled_from(("p0", "p1", "p2"))),
        st.tuples(st.just("node"), st.sampled_from(NODES), _NODE),
        st.tuples(st.just("no node"), st.sampled_from(NODES)),
        st.tuples(st.just("metric"), st.sampled_from(NODES), _METRIC),
        st.tuples(st.just("no metric"), st.sampled_from(NODES)),
        st.tuples(st.just("suppose"), st.sampled_from(NODES)),
    ),
    max_size=25,
)


def act(cache: ClusterCache, event: tuple[Any, ...]) -> None:
    """One event."""
    match event:
        case ("place", name, where, given):
            cache.place(view_of(pod(name, given), GRAPH.catalogue, LOAD.estimate), where, NOW)
        case ("displace", name):
            cache.displace(("default", name))
        case ("node", name, given):
            table = cache.table
            before = {**table.row(table.index(name))} if name in table else {}
            changed = cache.set_node(node(name, given))
            after = table.row(table.index(name))
            assert set(changed) == {
                path for path in before.keys() | after.keys() if before.get(path) != after.get(path)
            }
        case ("no node", name):
            cache.remove_node(name)
        case ("metric", name, given):
            cache.set_metric(metric(name, given, NOW))
        case ("no metric", name):
            cache.remove_metric(name)
        case ("suppose", name):
            if name in cache:
                views = cache.pods_on(name)
                with cache.trial():
                    cache.displace(*views)
                    for view in views.values():
                        cache.place(view, name, NOW)


def rows(cache: ClusterCache) -> dict[str, dict[str, Any]]:
    """The rows, without resources of which nothing is left."""
    found = {}
    for name in cache.table.names:
        facts: dict[str, Any] = dict(cache.table.row(cache.table.index(name)))
        for path in ("resources.requested", "resources.nonzeroRequested"):
            facts[path] = {resource: amount for resource, amount in facts[path].items() if amount}
        found[name] = facts
    return found


@settings(max_examples=60)
@given(_EVENTS)
def test_a_row_kept_pod_by_pod_equals_one_written_whole(events: list[tuple[Any, ...]]) -> None:
    cache = ClusterCache(LOAD, GRAPH.catalogue, READS)
    for event in events:
        act(cache, event)
        kept = rows(cache)
        for column in ("free.cpu", "requested.pods", "load.cpu"):
            values = cache.table.column(column)
            for at, name in enumerate(cache.table.names):
                if values.absent is None or not values.absent[at]:
                    assert values.values[at] == kept[name][column]
        for one in list(cache.nodes()):
            cache.set_node(one)  # which writes the whole row
        assert rows(cache) == kept


@settings(max_examples=60)
@given(_EVENTS)
def test_what_was_read_of_a_row_stays_as_it_was(events: list[tuple[Any, ...]]) -> None:
    """Rows may be copied shallowly: amounts that a row holds are never changed in place."""
    cache = ClusterCache(LOAD, GRAPH.catalogue, READS)
    for event in events:
        taken = [dict(cache.table.row(at)) for at in range(len(cache))]
        deep = [{path: _copied(value) for path, value in row.items()} for row in taken]
        act(cache, event)
        assert taken == deep


def test_others_hear_of_a_pod_only_where_it_becomes_another_to_them() -> None:
    cache = ClusterCache(LOAD, GRAPH.catalogue, READS)
    cache.set_node(node("n0", {"allocatable": {"cpu": 8}}))
    selected = Wanted((PodTerm(LabelSelector(), frozenset({"default"})),))

    def after(**given: Any) -> tuple[Any, int]:
        one = view_of(pod("p0", {"request": {"cpu": 1}, **given}), GRAPH.catalogue, LOAD.estimate)
        cache.place(one, "n0", NOW)
        return cache.state.label_sets.version(selected), cache.state.label_sets.counts(selected).get(0)

    first, count = after()
    assert count == 1
    assert after(phase="Running") == (first, 1)
    changed, count = after(labels={"app": "web"})
    assert changed != first
    assert count == 1
    cache.displace(("default", "p0"))
    assert cache.state.label_sets.counts(selected).get(0) == 0


def _copied(value: Any) -> Any:
    return dict(value) if isinstance(value, dict) else value
