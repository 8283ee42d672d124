"""What is particular to pods: defaults, priority, binding, eviction and disruption budgets."""

import asyncio
from typing import Any

from koordpolicy.kube import (
    Conflict,
    Forbidden,
    Invalid,
    KubeError,
    MergePatch,
    NotFound,
    Object,
    Preconditions,
    StrategicPatch,
    TooManyRequests,
    thaw,
)
from koordpolicy.kube.resources import POD_DISRUPTION_BUDGETS, PODS, PRIORITY_CLASSES, REPLICATION_CONTROLLERS
from tests.contract.clusters import World, contract, pod, refused, version


def with_resources(requests: dict[str, str], limits: dict[str, str]) -> dict[str, Any]:
    resources = {"requests": requests, "limits": limits}
    return pod("one", containers=[{"name": "main", "image": "pause", "resources": resources}])


@contract
async def test_a_new_pod_is_completed(world: World) -> None:
    made = await world.cluster.create(PODS, pod("one"), namespace=world.namespace)
    assert made["status"]["phase"] == "Pending"
    assert made["status"]["qosClass"] == "BestEffort"
    expected = {
        "schedulerName": "default-scheduler",
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 30,
        "dnsPolicy": "ClusterFirst",
        "priority": 0,
        "preemptionPolicy": "PreemptLowerPriority",
    }
    assert {field: made["spec"].get(field) for field in expected} == expected


@contract
async def test_requests_default_to_limits(world: World) -> None:
    draft = with_resources({"memory": "1Gi"}, {"cpu": "1", "memory": "2Gi", "kubernetes.io/batch-cpu": "100"})
    made = await world.cluster.create(PODS, draft, namespace=world.namespace)
    requests = made["spec"]["containers"][0]["resources"]["requests"]
    assert requests == {"cpu": "1", "memory": "1Gi", "kubernetes.io/batch-cpu": "100"}


@contract
async def test_the_qos_class_follows_from_the_resources(world: World) -> None:
    for requests, limits, expected in (
        ({}, {"cpu": "1", "memory": "1Gi"}, "Guaranteed"),
        ({"cpu": "1"}, {}, "Burstable"),
        ({"kubernetes.io/batch-cpu": "1k"}, {"kubernetes.io/batch-cpu": "1k"}, "BestEffort"),
    ):
        made = await world.cluster.create(
            PODS, with_resources(requests, limits), namespace=world.namespace, dry_run=True
        )
        assert made["status"]["qosClass"] == expected


@contract
async def test_pods_that_make_no_sense_are_invalid(world: World) -> None:
    for draft in (
        pod("one", containers=[]),
        pod("one", containers=[{"name": "main"}]),
        pod("one", containers=[{"name": "Main", "image": "pause"}]),
        pod("one", containers=[{"name": "main", "image": "pause"}] * 2),
        with_resources({"cpu": "2"}, {"cpu": "1"}),
        with_resources({"cpu": "-1"}, {}),
        with_resources({"example.org/gpu": "1"}, {}),
        with_resources({"example.org/gpu": "500m"}, {"example.org/gpu": "500m"}),
        with_resources({"example.org/gpu": "1"}, {"example.org/gpu": "2"}),
        with_resources({"gpu": "1"}, {"gpu": "1"}),
    ):
        await refused(Invalid, world.cluster.create(PODS, draft, namespace=world.namespace), draft)
    for broken in (
        with_resources({"cpu": "lots"}, {}),
        {"metadata": {"name": "one"}, "spec": {"containers": "x"}},
    ):
        await refused(KubeError, world.cluster.create(PODS, broken, namespace=world.namespace), broken)


@contract
async def test_priority_comes_from_the_class(world: World) -> None:
    name = world.name("batch")
    made = await world.cluster.create(
        PRIORITY_CLASSES, {"metadata": {"name": name}, "value": 5500, "preemptionPolicy": "Never"}
    )
    assert made["preemptionPolicy"] == "Never"
    stored = await world.cluster.create(PODS, pod("one", priorityClassName=name), namespace=world.namespace)
    assert (stored["spec"]["priority"], stored["spec"]["preemptionPolicy"]) == (5500, "Never")
    stored = await world.cluster.create(
        PODS, pod("two", priorityClassName=name, priority=5500), namespace=world.namespace
    )
    assert stored["spec"]["priority"] == 5500
    system = pod("three", priorityClassName="system-node-critical")
    stored = await world.cluster.create(PODS, system, namespace=world.namespace)
    assert stored["spec"]["priority"] == 2_000_001_000
    for spec in (
        {"priorityClassName": world.name("none")},
        {"priorityClassName": name, "priority": 5501},
        {"priorityClassName": name, "preemptionPolicy": "PreemptLowerPriority"},
        {"priority": 100},
    ):
        await refused(
            Forbidden, world.cluster.create(PODS, pod("four", **spec), namespace=world.namespace), spec
        )
    await world.cluster.delete(PRIORITY_CLASSES, name)
    kept = thaw(await world.cluster.get(PODS, "one", namespace=world.namespace))
    kept["metadata"]["labels"] = {"a": "b"}
    del kept["spec"]["priority"], kept["spec"]["preemptionPolicy"]
    stored = await world.cluster.update(PODS, kept)
    assert stored["spec"]["priority"] == 5500


@contract
async def test_binding_places_a_pod_once(world: World) -> None:
    draft = pod("one")
    draft["metadata"]["annotations"] = {"kept": "yes", "changed": "no"}
    made = await world.cluster.create(PODS, draft, namespace=world.namespace)
    await world.cluster.bind(
        world.namespace,
        "one",
        "node-1",
        uid=made["metadata"]["uid"],
        annotations={"changed": "yes", "new": "yes"},
    )
    stored = await world.cluster.get(PODS, "one", namespace=world.namespace)
    assert stored["spec"]["nodeName"] == "node-1"
    assert stored["metadata"]["annotations"] == {"kept": "yes", "changed": "yes", "new": "yes"}
    scheduled = [
        entry["status"] for entry in stored["status"]["conditions"] if entry["type"] == "PodScheduled"
    ]
    assert scheduled == ["True"]
    assert int(version(stored)) > int(version(made))
    for node in ("node-1", "node-2"):
        await refused(Conflict, world.cluster.bind(world.namespace, "one", node))
    assert await world.cluster.get(PODS, "one", namespace=world.namespace) == stored


@contract
async def test_binding_ends_a_nomination(world: World) -> None:
    await world.cluster.create(PODS, pod("one"), namespace=world.namespace)
    patch = MergePatch({"status": {"nominatedNodeName": "node-1"}})
    await world.cluster.patch(PODS, "one", patch, namespace=world.namespace, subresource="status")
    await world.cluster.bind(world.namespace, "one", "node-2")
    stored = await world.cluster.get(PODS, "one", namespace=world.namespace)
    assert "nominatedNodeName" not in stored["status"]


@contract
async def test_of_concurrent_bindings_exactly_one_wins(world: World) -> None:
    await world.cluster.create(PODS, pod("one"), namespace=world.namespace)
    results = await asyncio.gather(
        *(world.cluster.bind(world.namespace, "one", f"node-{n}") for n in range(5)), return_exceptions=True
    )
    assert results.count(None) == 1
    assert sum(isinstance(result, Conflict) for result in results) == 4
    stored = await world.cluster.get(PODS, "one", namespace=world.namespace)
    assert stored["spec"]["nodeName"] == f"node-{results.index(None)}"


@contract
async def test_pods_that_cannot_be_bound(world: World) -> None:
    await refused(NotFound, world.cluster.bind(world.namespace, "none", "node-1"))
    await world.cluster.create(PODS, pod("one"), namespace=world.namespace)
    other = "00000000-0000-0000-0000-000000000000"
    await refused(Conflict, world.cluster.bind(world.namespace, "one", "node-1", uid=other))
    await refused(KubeError, world.cluster.bind(world.namespace, "one", ""))
    gated = pod("gated", schedulingGates=[{"name": "example.org/wait"}])
    await world.cluster.create(PODS, gated, namespace=world.namespace)
    await refused(Conflict, world.cluster.bind(world.namespace, "gated", "node-1"))
    going = pod("going")
    going["metadata"]["finalizers"] = ["example.org/wait"]
    await world.cluster.create(PODS, going, namespace=world.namespace)
    await world.cluster.delete(PODS, "going", namespace=world.namespace)
    await refused(Conflict, world.cluster.bind(world.namespace, "going", "node-1"))


@contract
async def test_a_dry_run_of_a_binding_binds_nothing(world: World) -> None:
    await world.cluster.create(PODS, pod("one"), namespace=world.namespace)
    await world.cluster.bind(world.namespace, "one", "node-1", dry_run=True)
    assert "nodeName" not in (await world.cluster.get(PODS, "one", namespace=world.namespace))["spec"]


async def running(world: World, *names: str, ready: bool = True, owner: Object | None = None) -> None:
    """Pods that run, labelled app=web."""
    for name in names:
        draft = pod(name)
        draft["metadata"]["labels"] = {"app": "web"}
        if owner is not None:
            draft["metadata"]["ownerReferences"] = [
                {
                    "apiVersion": owner["apiVersion"],
                    "kind": owner["kind"],
                    "name": owner["metadata"]["name"],
                    "uid": owner["metadata"]["uid"],
                    "controller": True,
                }
            ]
        await world.cluster.create(PODS, draft, namespace=world.namespace)
        await world.cluster.bind(world.namespace, name, "node-1")
        await set_ready(world, name, ready)


async def set_ready(world: World, name: str, ready: bool) -> None:
    condition = {"type": "Ready", "status": "True" if ready else "False"}
    patch = StrategicPatch({"status": {"phase": "Running", "conditions": [condition]}})
    await world.cluster.patch(PODS, name, patch, namespace=world.namespace, subresource="status")


async def budget(
    world: World, *, expect: dict[str, int], selector: Any = None, name: str = "web", **spec: Any
) -> None:
    """A disruption budget over app=web; waits until its status is as expected."""
    selected = {"matchLabels": {"app": "web"}} if selector is None else selector
    draft = {"metadata": {"name": name}, "spec": {"selector": selected, **spec}}
    await world.cluster.create(POD_DISRUPTION_BUDGETS, draft, namespace=world.namespace)
    await budget_says(world, expect, name)


async def budget_says(world: World, expect: dict[str, int], name: str = "web") -> None:
    async def says() -> bool:
        read = await world.cluster.get(POD_DISRUPTION_BUDGETS, name, namespace=world.namespace)
        status = read.get("status") or {}
        fresh = status.get("observedGeneration") == read["metadata"]["generation"]
        return fresh and all(status.get(field, 0) == value for field, value in expect.items())

    await world.eventually(says, f"the budget's status says {expect}")


async def evict(world: World, name: str, **arguments: Any) -> None:
    await world.cluster.evict(world.namespace, name, **arguments)


async def going(world: World, name: str) -> bool:
    read = await world.cluster.get(PODS, name, namespace=world.namespace)
    return "deletionTimestamp" in read["metadata"]


@contract
async def test_an_eviction_without_budget_is_a_deletion_that_says_why(world: World) -> None:
    await running(world, "a")
    await evict(world, "a", grace_seconds=20)
    read = await world.cluster.get(PODS, "a", namespace=world.namespace)
    assert read["metadata"]["deletionGracePeriodSeconds"] == 20
    [condition] = [entry for entry in read["status"]["conditions"] if entry["type"] == "DisruptionTarget"]
    assert (condition["status"], condition["reason"]) == ("True", "EvictionByEvictionAPI")
    await refused(NotFound, world.cluster.evict(world.namespace, "none"))


@contract
async def test_evictions_stop_when_the_budget_is_used_up(world: World) -> None:
    await running(world, "a", "b", "c")
    await budget(
        world, minAvailable=2, expect={"currentHealthy": 3, "desiredHealthy": 2, "disruptionsAllowed": 1}
    )
    await evict(world, "a")
    assert await going(world, "a")
    await refused(TooManyRequests, world.cluster.evict(world.namespace, "b"))
    assert not await going(world, "b")
    await budget_says(world, {"currentHealthy": 2, "desiredHealthy": 2, "disruptionsAllowed": 0})
    await running(world, "d")
    await budget_says(world, {"currentHealthy": 3, "disruptionsAllowed": 1})
    await evict(world, "b")
    assert await going(world, "b")


@contract
async def test_concurrent_evictions_share_one_budget(world: World) -> None:
    await running(world, "a", "b", "c", "d", "e")
    await budget(world, minAvailable=3, expect={"disruptionsAllowed": 2})
    results = await asyncio.gather(*(evict(world, name) for name in "abcde"), return_exceptions=True)
    assert results.count(None) <= 2
    assert sum([await going(world, name) for name in "abcde"]) <= 2


@contract
async def test_budgets_count_by_the_scale_of_controllers(world: World) -> None:
    # Of a kind that no controller looks after here: it would make pods of its own.
    spec = {
        "replicas": 4,
        "selector": {"app": "web"},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "main", "image": "pause"}]},
        },
    }
    owner = await world.cluster.create(
        REPLICATION_CONTROLLERS, {"metadata": {"name": "web"}, "spec": spec}, namespace=world.namespace
    )
    await running(world, "a", "b", "c", "d", owner=owner)
    await budget(
        world,
        maxUnavailable="30%",
        expect={"expectedPods": 4, "currentHealthy": 4, "desiredHealthy": 2, "disruptionsAllowed": 2},
    )
    await set_ready(world, "d", False)
    await budget_says(world, {"currentHealthy": 3, "disruptionsAllowed": 1})
    await budget(
        world,
        name="other",
        selector={"matchLabels": {"app": "none"}},
        minAvailable="50%",
        expect={"expectedPods": 0},
    )


@contract
async def test_pods_that_serve_nobody_go_without_budget(world: World) -> None:
    await running(world, "a", "b")
    await running(world, "sick", ready=False)
    await world.cluster.create(
        PODS,
        {**pod("pending"), "metadata": {"name": "pending", "labels": {"app": "web"}}},
        namespace=world.namespace,
    )
    await budget(
        world, minAvailable=2, expect={"currentHealthy": 2, "desiredHealthy": 2, "disruptionsAllowed": 0}
    )
    await evict(world, "pending")
    assert await world.gone(PODS, "pending", world.namespace)
    await evict(world, "sick")
    assert await going(world, "sick")
    await refused(TooManyRequests, world.cluster.evict(world.namespace, "a"))


@contract
async def test_unhealthy_pods_are_guarded_while_the_rest_is_short(world: World) -> None:
    await running(world, "a")
    await running(world, "sick", ready=False)
    await budget(
        world, minAvailable=2, expect={"currentHealthy": 1, "desiredHealthy": 2, "disruptionsAllowed": 0}
    )
    await refused(TooManyRequests, world.cluster.evict(world.namespace, "sick"))
    patch = MergePatch({"spec": {"unhealthyPodEvictionPolicy": "AlwaysAllow"}})
    await world.cluster.patch(POD_DISRUPTION_BUDGETS, "web", patch, namespace=world.namespace)
    await budget_says(world, {"disruptionsAllowed": 0})
    await evict(world, "sick")
    assert await going(world, "sick")


@contract
async def test_an_empty_selector_guards_all_and_a_missing_one_nothing(world: World) -> None:
    await running(world, "a")
    draft = {"metadata": {"name": "nothing"}, "spec": {"minAvailable": 1}}
    await world.cluster.create(POD_DISRUPTION_BUDGETS, draft, namespace=world.namespace)
    await budget_says(world, {"expectedPods": 0}, "nothing")
    await budget(
        world, name="all", selector={}, minAvailable=1, expect={"expectedPods": 1, "currentHealthy": 1}
    )
    await refused(TooManyRequests, world.cluster.evict(world.namespace, "a"))


@contract
async def test_two_budgets_over_one_pod_are_a_mistake(world: World) -> None:
    await running(world, "a", "b")
    for name in ("one", "two"):
        await budget(world, name=name, minAvailable=1, expect={"disruptionsAllowed": 1})
    refusal = await refused(KubeError, world.cluster.evict(world.namespace, "a"))
    assert refusal.code == 500
    assert not await going(world, "a")


@contract
async def test_evictions_have_preconditions_and_dry_runs(world: World) -> None:
    await running(world, "a", "b")
    wrong = Preconditions(uid="00000000-0000-0000-0000-000000000000")
    await refused(Conflict, world.cluster.evict(world.namespace, "a", preconditions=wrong))
    assert not await going(world, "a")
    await budget(world, minAvailable=1, expect={"disruptionsAllowed": 1})
    await evict(world, "a", dry_run=True)
    assert not await going(world, "a")
    await evict(world, "a")
    await refused(TooManyRequests, world.cluster.evict(world.namespace, "b", dry_run=True))


@contract
async def test_budgets_that_make_no_sense_are_invalid(world: World) -> None:
    for spec in (
        {"minAvailable": 1, "maxUnavailable": 1},
        {"minAvailable": "half"},
        {"maxUnavailable": -1},
        {
            "minAvailable": 1,
            "selector": {"matchExpressions": [{"key": "a", "operator": "Like", "values": ["b"]}]},
        },
    ):
        draft = {"metadata": {"name": "web"}, "spec": spec}
        await refused(
            Invalid, world.cluster.create(POD_DISRUPTION_BUDGETS, draft, namespace=world.namespace), spec
        )
