"""Whatever arrives, the cluster answers with an object or a clear error, and goes on."""

from contextlib import suppress
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from koordpolicy.kube import ApplyPatch, KubeError, MergePatch, StrategicPatch, thaw
from koordpolicy.kube.resources import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    NODES,
    POD_DISRUPTION_BUDGETS,
    PODS,
    PRIORITY_CLASSES,
    RESERVATIONS,
)
from tests.unit.kube.builders import store

RESOURCES = (PODS, NODES, POD_DISRUPTION_BUDGETS, CONFIG_MAPS, PRIORITY_CLASSES, DEPLOYMENTS, RESERVATIONS)

WHOLE: dict[str, Any] = {
    "metadata": {
        "name": "x",
        "labels": {"app": "web"},
        "annotations": {"a": "b"},
        "finalizers": ["example.org/wait"],
        "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u", "controller": True}],
    },
    "spec": {
        "containers": [
            {
                "name": "main",
                "image": "pause",
                "env": [{"name": "A", "value": "1"}],
                "resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "2"}},
            }
        ],
        "tolerations": [{"key": "a", "operator": "Exists"}],
        "schedulingGates": [{"name": "example.org/wait"}],
        "terminationGracePeriodSeconds": 30,
        "minAvailable": 1,
        "selector": {"matchLabels": {"app": "web"}, "matchExpressions": [{"key": "a", "operator": "Exists"}]},
        "template": {"spec": {"containers": [{"name": "main", "image": "pause"}]}},
    },
    "status": {
        "phase": "Running",
        "capacity": {"cpu": "4"},
        "allocatable": {"cpu": "4"},
        "conditions": [{"type": "Ready", "status": "True"}],
    },
    "data": {"key": "value"},
    "value": 5,
}

Place = tuple[str | int, ...]


def places(value: Any, at: Place = ()) -> list[Place]:
    """The paths of everything in a tree."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [at, *(place for key, item in items for place in places(item, (*at, key)))]


junk = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.text(max_size=5),
    st.sampled_from(["1e999", "-1", "10%", "x" * 300, "../..", "a/b/c", "NaN"]),
    st.lists(st.none() | st.text(max_size=2) | st.integers() | st.just({}), max_size=2),
    st.dictionaries(st.text(max_size=3) | st.just("$patch"), st.none() | st.text(max_size=3), max_size=2),
)
broken = st.lists(st.tuples(st.sampled_from(places(WHOLE)[1:]), junk), max_size=2)


def with_junk(faults: list[tuple[Place, Any]]) -> dict[str, Any]:
    """The whole object with junk in some places."""
    obj = thaw(WHOLE)
    for place, value in faults:
        with suppress(KeyError, IndexError, TypeError):  # the place is gone since the fault before
            parent: Any = obj
            for key in place[:-1]:
                parent = parent[key]
            parent[place[-1]] = value
    return obj


@given(st.sampled_from(RESOURCES), broken, broken)
def test_junk_is_refused_or_stored_and_never_breaks_anything(resource: Any, first: Any, second: Any) -> None:
    cluster = store()
    with suppress(KubeError):
        cluster.create(resource, with_junk(first))
    if cluster.find(resource, "x") is None:
        with suppress(KubeError):
            cluster.create(resource, thaw(WHOLE))
    cluster.create(
        POD_DISRUPTION_BUDGETS, {"metadata": {"name": "all"}, "spec": {"minAvailable": 1, "selector": {}}}
    )
    obj = with_junk(second)
    head = {"apiVersion": resource.api_version, "kind": resource.kind}
    for subresource in ("", "status"):
        with suppress(KubeError):
            cluster.update(resource, obj, subresource=subresource)
        for patch in (MergePatch(obj), StrategicPatch(obj), ApplyPatch({**obj, **head}, "git", force=True)):
            with suppress(KubeError):
                cluster.patch(resource, "x", patch, subresource=subresource)
    with suppress(KubeError):
        cluster.bind("default", "x", "node-1")
    with suppress(KubeError):
        cluster.evict("default", "x")
    with suppress(KubeError):
        cluster.delete(resource, "x")
    cluster.reap()
    cluster.sweep()
    for listed in (PODS, POD_DISRUPTION_BUDGETS, resource):
        cluster.list(listed, label_selector="app=web")


wire = st.text(alphabet="abc=!<>(),\\ /.-_inotex0ä\n", max_size=20)


@given(wire, wire, wire)
def test_any_text_is_a_selector_or_a_clear_error(labels: str, fields: str, since: str) -> None:
    cluster = store()
    with suppress(KubeError):
        cluster.list(PODS, label_selector=labels)
    with suppress(KubeError):
        cluster.list(PODS, field_selector=fields)
    with suppress(KubeError):
        cluster.list(PODS, limit=1, continue_token=since)
    with suppress(KubeError):
        cluster.watch(PODS, resource_version=since)
