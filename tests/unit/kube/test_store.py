"""What is particular to the in-memory cluster: its clock, its history, its order, its stand-ins."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from koordpolicy.kube import (
    Cluster,
    EventType,
    Gone,
    MergePatch,
    NotFound,
    Rejected,
    Resource,
    TooManyRequests,
    Unreachable,
)
from koordpolicy.kube.frozen import FrozenDict
from koordpolicy.kube.memory import MemoryCluster, Store
from koordpolicy.kube.memory.store import finish
from koordpolicy.kube.resources import (
    CONFIG_MAPS,
    NAMESPACES,
    NODES,
    POD_DISRUPTION_BUDGETS,
    PODS,
    PRIORITY_CLASSES,
    RESERVATIONS,
    custom,
)
from tests.unit.kube.builders import NOW, Clock, config, names, pod, store, words


def test_a_new_cluster_has_what_every_cluster_has() -> None:
    cluster = store()
    assert names(cluster.list(NAMESPACES).items) == [
        "default",
        "kube-node-lease",
        "kube-public",
        "kube-system",
    ]
    assert names(cluster.list(PRIORITY_CLASSES).items) == ["system-cluster-critical", "system-node-critical"]


def test_times_are_those_of_the_clock() -> None:
    clock = Clock(0.9)
    cluster = store(clock)
    assert cluster.create(CONFIG_MAPS, config("a"))["metadata"]["creationTimestamp"] == "1970-01-01T00:00:00Z"
    clock.now = 86_400 * 365 + 61.5
    assert cluster.create(CONFIG_MAPS, config("b"))["metadata"]["creationTimestamp"] == "1971-01-01T00:01:01Z"


def drive(cluster: Store) -> list[Any]:
    """Some life, and all that can be seen of it."""
    watch = cluster.watch(PODS)
    for index in range(5):
        cluster.create(PODS, {**pod(""), "metadata": {"generateName": "p-"}})
        cluster.create(CONFIG_MAPS, config(f"c{index}"))
    for obj in cluster.list(PODS).items[::2]:
        cluster.bind("default", obj["metadata"]["name"], "node-1")
        cluster.evict("default", obj["metadata"]["name"])
    return [*watch.take(), *cluster.list(PODS).items, *cluster.list(CONFIG_MAPS).items]


def test_equal_clusters_driven_equally_are_equal() -> None:
    assert drive(store()) == drive(store())
    assert drive(store()) != drive(store(identity="another"))


def test_what_is_handed_out_is_what_is_stored() -> None:
    cluster = store()
    made = cluster.create(CONFIG_MAPS, config("a"))
    assert cluster.get(CONFIG_MAPS, "a") is made
    assert cluster.list(CONFIG_MAPS).items[0] is made
    assert type(made) is FrozenDict


def test_a_new_version_shares_what_did_not_change() -> None:
    cluster = store()
    before = cluster.create(PODS, pod("a", labels={"a": "b"}))
    cluster.bind("default", "a", "node-1")
    after = cluster.get(PODS, "a")
    assert after["spec"]["containers"] is before["spec"]["containers"]
    assert after["metadata"]["labels"] is before["metadata"]["labels"]
    assert "nodeName" not in before["spec"]


def test_an_unserved_resource_is_not_found_until_it_is_served() -> None:
    gizmos = custom("example.org/v1", "Gizmo", namespaced=True)
    with pytest.raises(NotFound, match=r"gizmos\.example\.org"):
        store().list(gizmos)
    cluster = store(extra=(gizmos,))
    cluster.create(gizmos, {"metadata": {"name": "g"}, "spec": {"a": 1}})
    assert names(cluster.list(gizmos).items) == ["g"]


def test_a_second_version_of_a_resource_is_another_resource() -> None:
    with pytest.raises(NotFound):
        store().list(replace(RESERVATIONS, version="v9"))


def test_namespaced_objects_live_in_default_unless_told_otherwise() -> None:
    cluster = store()
    assert cluster.create(CONFIG_MAPS, config("a"))["metadata"]["namespace"] == "default"
    assert cluster.find(CONFIG_MAPS, "a") is not None
    assert cluster.find(CONFIG_MAPS, "a", namespace="kube-system") is None


def test_cluster_scoped_objects_live_in_no_namespace() -> None:
    cluster = store()
    with pytest.raises(Rejected, match="no namespace"):
        cluster.create(NODES, {"metadata": {"name": "n", "namespace": "default"}})
    with pytest.raises(Rejected, match="no namespace"):
        cluster.create(NODES, {"metadata": {"name": "n"}}, namespace="default")


def test_a_list_of_all_namespaces_is_ordered_by_namespace_then_name() -> None:
    cluster = store()
    for namespace in ("kube-system", "default"):
        for name in ("b", "a"):
            cluster.create(CONFIG_MAPS, config(name), namespace=namespace)
    found = [
        (obj["metadata"]["namespace"], obj["metadata"]["name"]) for obj in cluster.list(CONFIG_MAPS).items
    ]
    assert found == sorted(found)
    assert len(found) == 4


def test_pods_of_a_node_are_found_in_order_wherever_they_are() -> None:
    cluster = store()
    for namespace, name in (("kube-system", "b"), ("default", "c"), ("default", "a")):
        cluster.create(PODS, pod(name), namespace=namespace)
        cluster.bind(namespace, name, "node-1")
    cluster.create(PODS, pod("d", nodeName="node-2"))
    on_node = "spec.nodeName=node-1"
    assert names(cluster.list(PODS, field_selector=on_node).items) == ["a", "c", "b"]
    assert names(cluster.list(PODS, namespace="default", field_selector=on_node).items) == ["a", "c"]
    cluster.delete(PODS, "a", grace_seconds=0)
    assert names(cluster.list(PODS, field_selector=on_node).items) == ["c", "b"]


def test_pages_say_how_much_is_left_and_continue_only_their_own_list() -> None:
    cluster = store()
    for index in range(5):
        cluster.create(CONFIG_MAPS, config(f"c{index}", labels={"odd": str(index % 2)}))
    page = cluster.list(CONFIG_MAPS, limit=2)
    assert (names(page.items), page.remaining) == (["c0", "c1"], 3)
    assert cluster.list(CONFIG_MAPS, limit=2, label_selector="odd=0").remaining is None
    again = [cluster.list(CONFIG_MAPS, limit=2, continue_token=page.continue_token) for _ in range(2)]
    assert names(again[0].items) == names(again[1].items) == ["c2", "c3"]
    for arguments in ({"namespace": "default"}, {"label_selector": "odd=0"}):
        with pytest.raises(Rejected, match="other arguments"):
            cluster.list(CONFIG_MAPS, limit=2, continue_token=page.continue_token, **arguments)
    with pytest.raises(Gone):
        cluster.list(CONFIG_MAPS, limit=2, continue_token="nonsense")
    assert cluster.list(CONFIG_MAPS, limit=5).continue_token == ""


def test_unfinished_lists_are_not_kept_for_ever() -> None:
    cluster = store()
    for index in range(3):
        cluster.create(CONFIG_MAPS, config(f"c{index}"))
    first = cluster.list(CONFIG_MAPS, limit=1).continue_token
    for _ in range(1000):
        cluster.list(CONFIG_MAPS, limit=1)
    with pytest.raises(Gone):
        cluster.list(CONFIG_MAPS, limit=1, continue_token=first)


def touch(cluster: Store, name: str, times: int) -> None:
    for number in range(times):
        cluster.patch(CONFIG_MAPS, name, MergePatch({"data": {"n": str(number)}}))


def test_a_watch_goes_back_as_far_as_the_history() -> None:
    cluster = store(history=5)
    versions = [cluster.create(CONFIG_MAPS, config("a"))["metadata"]["resourceVersion"]]
    for number in range(7):
        patch = MergePatch({"data": {"n": str(number)}})
        versions.append(cluster.patch(CONFIG_MAPS, "a", patch)["metadata"]["resourceVersion"])
    assert len(cluster.watch(CONFIG_MAPS, resource_version=versions[-6]).take()) == 5
    with pytest.raises(Gone):
        cluster.watch(CONFIG_MAPS, resource_version=versions[-7])


def test_other_resources_do_not_use_the_history_up() -> None:
    cluster = store(history=3)
    cluster.create(CONFIG_MAPS, config("a"))
    since = cluster.list(PODS).resource_version
    touch(cluster, "a", 20)
    cluster.create(PODS, pod("p"))
    assert words(cluster.watch(PODS, resource_version=since).take()) == "ADDED p"


def test_a_version_to_come_is_gone_too() -> None:
    cluster = store()
    ahead = str(int(cluster.list(PODS).resource_version) + 1)
    with pytest.raises(Gone, match="not reached"):
        cluster.watch(PODS, resource_version=ahead)


def test_version_zero_means_the_present_objects() -> None:
    cluster = store()
    cluster.create(PODS, pod("p"))
    assert words(cluster.watch(PODS, resource_version="0").take()) == "ADDED p"


def test_a_watcher_that_falls_too_far_behind_is_told_so_and_costs_nothing_more() -> None:
    cluster = store(backlog=3)
    cluster.create(CONFIG_MAPS, config("a"))
    watch = cluster.watch(CONFIG_MAPS, resource_version=cluster.list(CONFIG_MAPS).resource_version)
    touch(cluster, "a", 3)
    assert len(watch.take()) == 3
    touch(cluster, "a", 10)
    for _ in range(2):
        with pytest.raises(Gone, match="fell behind"):
            watch.take()
    assert watch.ended


def test_what_a_watch_begins_with_does_not_count_as_falling_behind() -> None:
    cluster = store(backlog=2, history=100)
    for index in range(5):
        cluster.create(CONFIG_MAPS, config(f"c{index}"))
    watch = cluster.watch(CONFIG_MAPS)
    touch(cluster, "c0", 2)
    assert len(watch.take()) == 7


def test_bookmarks_let_a_quiet_watcher_resume_within_the_history() -> None:
    cluster = store(history=8)
    cluster.create(CONFIG_MAPS, config("busy"))
    since = cluster.list(CONFIG_MAPS).resource_version
    select = "metadata.name=quiet"
    quiet = cluster.watch(CONFIG_MAPS, resource_version=since, field_selector=select, bookmarks=True)
    deaf = cluster.watch(CONFIG_MAPS, resource_version=since, field_selector=select)
    touch(cluster, "busy", 40)
    marks = quiet.take()
    assert {event.type for event in marks} == {EventType.BOOKMARK}
    assert deaf.take() == []
    assert cluster.watch(CONFIG_MAPS, resource_version=marks[-1].resource_version).take() is not None
    with pytest.raises(Gone):
        cluster.watch(CONFIG_MAPS, resource_version=since)


def test_a_bookmark_on_demand_shows_the_present_version_once() -> None:
    cluster = store()
    watch = cluster.watch(PODS, bookmarks=True, resource_version=cluster.list(PODS).resource_version)
    cluster.create(CONFIG_MAPS, config("a"))
    cluster.bookmark()
    cluster.bookmark()
    [mark] = watch.take()
    assert mark.resource_version == cluster.list(PODS).resource_version
    assert dict(mark.object) == {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"resourceVersion": mark.resource_version},
    }


def test_one_who_unwatches_hears_nothing_more() -> None:
    cluster = store()
    watch = cluster.watch(PODS)
    cluster.unwatch(watch)
    cluster.unwatch(watch)
    cluster.create(PODS, pod("p"))
    assert watch.take() == []


def test_a_waker_is_called_for_news_and_for_the_end() -> None:
    cluster = store()
    calls: list[str] = []
    watch = cluster.watch(PODS)
    watch.wake = lambda: calls.append("awake")
    cluster.create(PODS, pod("p"))
    cluster.create(CONFIG_MAPS, config("c"))
    cluster.disconnect()
    assert calls == ["awake", "awake"]
    assert words(watch.take()) == "ADDED p"


def test_pods_whose_time_to_stop_is_over_are_reaped_as_by_a_kubelet() -> None:
    clock = Clock()
    cluster = store(clock)
    for name, seconds in (("slow", 60), ("quick", 10), ("held", 10)):
        cluster.create(PODS, pod(name, terminationGracePeriodSeconds=seconds))
        cluster.bind("default", name, "node-1")
    cluster.patch(PODS, "held", MergePatch({"metadata": {"finalizers": ["example.org/wait"]}}))
    for name in ("slow", "quick", "held"):
        cluster.delete(PODS, name)
    assert cluster.reap() == 0
    clock.now = NOW + 10
    assert cluster.reap() == 1
    assert names(cluster.list(PODS).items) == ["held", "slow"]
    clock.now = NOW + 60
    assert cluster.reap() == 1
    assert cluster.reap() == 0
    cluster.patch(PODS, "held", MergePatch({"metadata": {"finalizers": None}}))
    assert names(cluster.list(PODS).items) == []


def test_objects_whose_owners_never_were_are_swept_on_demand() -> None:
    cluster = store()
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "ghost", "uid": "ghost"}
    cluster.create(CONFIG_MAPS, config("a", ownerReferences=[owner]))
    parent = cluster.get(CONFIG_MAPS, "a")["metadata"]
    cluster.create(CONFIG_MAPS, config("b", ownerReferences=[{**owner, "name": "a", "uid": parent["uid"]}]))
    cluster.create(CONFIG_MAPS, config("c"))
    assert cluster.sweep() == 1
    assert names(cluster.list(CONFIG_MAPS).items) == ["c"]
    assert cluster.sweep() == 0


def test_long_chains_of_owners_end() -> None:
    cluster = store()
    uid = cluster.create(CONFIG_MAPS, config("c0"))["metadata"]["uid"]
    for index in range(1, 3000):
        owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": f"c{index - 1}", "uid": uid}
        uid = cluster.create(CONFIG_MAPS, config(f"c{index}", ownerReferences=[owner]))["metadata"]["uid"]
    cluster.delete(CONFIG_MAPS, "c0")
    assert cluster.list(CONFIG_MAPS).items == []


def test_owners_in_a_circle_go_together() -> None:
    cluster = store()
    uids = {name: cluster.create(CONFIG_MAPS, config(name))["metadata"]["uid"] for name in "ab"}
    for name, other in (("a", "b"), ("b", "a")):
        owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": other, "uid": uids[other]}
        cluster.patch(CONFIG_MAPS, name, MergePatch({"metadata": {"ownerReferences": [owner]}}))
    cluster.delete(CONFIG_MAPS, "a")
    assert cluster.list(CONFIG_MAPS).items == []


def test_a_granted_eviction_stops_counting_against_the_budget_when_it_comes_to_nothing() -> None:
    clock = Clock()
    cluster = store(clock)
    ready = {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}
    for name in "abc":
        cluster.create(PODS, pod(name, labels={"app": "web"}, nodeName="node-1"))
        cluster.patch(PODS, name, MergePatch(ready), subresource="status")
    selector = {"matchLabels": {"app": "web"}}
    budget = {"metadata": {"name": "web"}, "spec": {"minAvailable": 2, "selector": selector}}
    cluster.create(POD_DISRUPTION_BUDGETS, budget)
    # Somebody was granted the eviction of `a`, and never deleted it.
    granted = {"status": {"disruptionsAllowed": 0, "disruptedPods": {"a": "2025-06-15T15:06:40Z"}}}
    assert cluster.get(POD_DISRUPTION_BUDGETS, "web")["status"]["disruptionsAllowed"] == 1
    cluster.patch(POD_DISRUPTION_BUDGETS, "web", MergePatch(granted), subresource="status")
    cluster.patch(PODS, "b", MergePatch({"metadata": {"labels": {"x": "y"}}}))
    with pytest.raises(TooManyRequests):
        cluster.evict("default", "c")
    clock.now = NOW + 121
    cluster.evict("default", "c")


def test_a_watcher_of_budgets_hears_of_their_status_without_asking() -> None:
    cluster = store()
    cluster.create(
        POD_DISRUPTION_BUDGETS, {"metadata": {"name": "all"}, "spec": {"minAvailable": 1, "selector": {}}}
    )
    cluster.get(POD_DISRUPTION_BUDGETS, "all")
    watch = cluster.watch(POD_DISRUPTION_BUDGETS, resource_version=cluster.list(PODS).resource_version)
    cluster.create(PODS, pod("p"))
    [event] = watch.take()
    assert event.object["status"]["expectedPods"] == 1


def test_a_client_can_be_made_to_fail() -> None:
    async def fails(verb: str, resource: Resource) -> None:
        raise Unreachable(f"{verb} {resource}")

    client = MemoryCluster(store(), before_request=fails)
    with pytest.raises(Unreachable, match="list pods"):
        asyncio.run(client.list(PODS))
    with pytest.raises(Unreachable, match="evict pods"):
        asyncio.run(client.evict("default", "p"))


def test_code_for_an_event_loop_runs_without_one_as_long_as_it_waits_for_nothing() -> None:
    client: Cluster = MemoryCluster(store())

    async def busy() -> str:
        await client.create(PODS, pod("p"))
        await client.bind("default", "p", "node-1")
        return str((await client.get(PODS, "p"))["spec"]["nodeName"])

    assert finish(busy()) == "node-1"
    with pytest.raises(RuntimeError, match="event loop"):
        finish(asyncio.sleep(0))


def test_a_new_object_names_no_version() -> None:
    with pytest.raises(Rejected, match="resourceVersion"):
        store().create(CONFIG_MAPS, config("a", resourceVersion="5"))
