"""Replacing objects: optimistic concurrency, and who may write what."""

import asyncio
from typing import Any

from koordpolicy.kube import Conflict, Invalid, KubeError, NotFound, Object, Rejected, thaw
from koordpolicy.kube.resources import (
    CONFIG_MAPS,
    LEASES,
    NODES,
    POD_DISRUPTION_BUDGETS,
    PODS,
    PRIORITY_CLASSES,
)
from tests.contract.clusters import HOLDS, World, config, contract, pod, refused, version


def changed(obj: Object, /, **data: str) -> dict[str, Any]:
    """A ConfigMap with other data."""
    return {**thaw(obj), "data": data}


@contract
async def test_an_update_replaces_what_it_was_made_from(world: World) -> None:
    made = await world.cluster.create(
        CONFIG_MAPS, config("one", {"a": "1", "b": "2"}), namespace=world.namespace
    )
    stored = await world.cluster.update(CONFIG_MAPS, changed(made, a="3"))
    assert stored["data"] == {"a": "3"}
    assert int(version(stored)) > int(version(made))
    for field in ("uid", "creationTimestamp", "name", "namespace"):
        assert stored["metadata"][field] == made["metadata"][field]
    assert await world.cluster.get(CONFIG_MAPS, "one", namespace=world.namespace) == stored


@contract
async def test_an_update_of_an_old_version_is_a_conflict(world: World) -> None:
    made = await world.cluster.create(CONFIG_MAPS, config("one"), namespace=world.namespace)
    stored = await world.cluster.update(CONFIG_MAPS, changed(made, a="first"))
    await refused(Conflict, world.cluster.update(CONFIG_MAPS, changed(made, a="second")))
    assert await world.cluster.get(CONFIG_MAPS, "one", namespace=world.namespace) == stored


@contract
async def test_of_concurrent_updates_of_one_version_exactly_one_wins(world: World) -> None:
    made = await world.cluster.create(CONFIG_MAPS, config("one", {"n": "0"}), namespace=world.namespace)
    for attempt in range(1, 6):
        results = await asyncio.gather(
            *(
                world.cluster.update(CONFIG_MAPS, changed(made, n=f"{attempt}.{writer}"))
                for writer in range(8)
            ),
            return_exceptions=True,
        )
        won = [result for result in results if not isinstance(result, BaseException)]
        assert len(won) == 1
        assert all(isinstance(result, Conflict) for result in results if isinstance(result, BaseException))
        made = await world.cluster.get(CONFIG_MAPS, "one", namespace=world.namespace)
        assert made == won[0]


@contract
async def test_counting_by_read_and_retry_loses_nothing(world: World) -> None:
    await world.cluster.create(CONFIG_MAPS, config("count", {"n": "0"}), namespace=world.namespace)

    async def add() -> None:
        while True:
            read = await world.cluster.get(CONFIG_MAPS, "count", namespace=world.namespace)
            try:
                await world.cluster.update(CONFIG_MAPS, changed(read, n=str(int(read["data"]["n"]) + 1)))
            except Conflict:
                continue
            return

    await asyncio.gather(*(add() for _ in range(10)))
    assert (await world.cluster.get(CONFIG_MAPS, "count", namespace=world.namespace))["data"] == {"n": "10"}


@contract
async def test_an_update_without_a_version_overwrites_where_the_kind_permits(world: World) -> None:
    await world.cluster.create(CONFIG_MAPS, config("one", {"a": "1"}), namespace=world.namespace)
    stored = await world.cluster.update(CONFIG_MAPS, config("one", {"a": "2"}, namespace=world.namespace))
    assert stored["data"] == {"a": "2"}
    lease = {"metadata": {"name": "one", "namespace": world.namespace}, "spec": {"holderIdentity": "me"}}
    await world.cluster.create(LEASES, lease, namespace=world.namespace)
    await refused(Invalid, world.cluster.update(LEASES, lease))
    hold = {"metadata": {"name": world.name("hold")}, "spec": {"ttl": "1h"}}
    await world.cluster.create(HOLDS, hold)
    await refused(Invalid, world.cluster.update(HOLDS, hold))
    budget = {
        "metadata": {"name": "one", "namespace": world.namespace},
        "spec": {"minAvailable": 1, "selector": {}},
    }
    await world.cluster.create(POD_DISRUPTION_BUDGETS, budget, namespace=world.namespace)
    await refused(Invalid, world.cluster.update(POD_DISRUPTION_BUDGETS, budget))


@contract
async def test_an_update_that_changes_nothing_writes_nothing(world: World) -> None:
    made = await world.cluster.create(CONFIG_MAPS, config("one", {"a": "1"}), namespace=world.namespace)
    assert version(await world.cluster.update(CONFIG_MAPS, thaw(made))) == version(made)
    assert version(await world.cluster.get(CONFIG_MAPS, "one", namespace=world.namespace)) == version(made)


@contract
async def test_an_update_of_another_object_of_that_name_is_a_conflict(world: World) -> None:
    made = thaw(await world.cluster.create(CONFIG_MAPS, config("one"), namespace=world.namespace))
    await world.cluster.delete(CONFIG_MAPS, "one", namespace=world.namespace)
    await refused(NotFound, world.cluster.update(CONFIG_MAPS, made))
    await world.cluster.create(CONFIG_MAPS, config("one"), namespace=world.namespace)
    del made["metadata"]["resourceVersion"]
    await refused(Conflict, world.cluster.update(CONFIG_MAPS, made))


@contract
async def test_a_dry_run_of_an_update_stores_nothing(world: World) -> None:
    made = await world.cluster.create(CONFIG_MAPS, config("one", {"a": "1"}), namespace=world.namespace)
    tried = await world.cluster.update(CONFIG_MAPS, changed(made, a="2"), dry_run=True)
    assert tried["data"] == {"a": "2"}
    assert await world.cluster.get(CONFIG_MAPS, "one", namespace=world.namespace) == made


@contract
async def test_status_and_the_rest_are_written_apart(world: World) -> None:
    made = thaw(await world.cluster.create(PODS, pod("one"), namespace=world.namespace))
    made["metadata"]["labels"] = {"a": "b"}
    made["status"] = {"phase": "Running"}
    stored = thaw(await world.cluster.update(PODS, made))
    assert stored["metadata"]["labels"] == {"a": "b"}
    assert stored["status"]["phase"] == "Pending"
    stored["spec"]["containers"][0]["image"] = "other"
    stored["status"]["phase"] = "Running"
    stored = thaw(await world.cluster.update(PODS, stored, subresource="status"))
    assert stored["status"]["phase"] == "Running"
    assert stored["status"]["qosClass"] == "BestEffort"
    assert stored["spec"]["containers"][0]["image"] == "pause"


@contract
async def test_a_pods_status_cannot_change_its_owners(world: World) -> None:
    parent = await world.cluster.create(CONFIG_MAPS, config("parent"), namespace=world.namespace)
    uid = parent["metadata"]["uid"]
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "parent", "uid": uid}
    draft = pod("one")
    draft["metadata"]["ownerReferences"] = [owner]
    made = thaw(await world.cluster.create(PODS, draft, namespace=world.namespace))
    for owners in ([], [{**owner, "uid": "another"}]):
        made["metadata"]["ownerReferences"] = owners
        made["status"]["phase"] = "Running"
        stored = await world.cluster.update(PODS, made, subresource="status")
        assert [entry["uid"] for entry in stored["metadata"]["ownerReferences"]] == [uid]
        made = thaw(stored)


@contract
async def test_status_of_custom_resources_is_written_apart_too(world: World) -> None:
    draft = {"metadata": {"name": world.name("hold")}, "spec": {"ttl": "1h"}}
    made = thaw(await world.cluster.create(HOLDS, draft))
    made["spec"]["ttl"] = "2h"
    made["metadata"]["labels"] = {"a": "b"}
    made["status"] = {"phase": "Available"}
    stored = thaw(await world.cluster.update(HOLDS, made, subresource="status"))
    assert stored["status"] == {"phase": "Available"}
    assert stored["spec"] == {"ttl": "1h"}
    assert "labels" not in stored["metadata"]
    stored["spec"]["ttl"] = "3h"
    del stored["status"]
    stored = thaw(await world.cluster.update(HOLDS, stored))
    assert (stored["spec"], stored["status"]) == ({"ttl": "3h"}, {"phase": "Available"})


@contract
async def test_a_resource_without_status_has_none_to_write(world: World) -> None:
    made = await world.cluster.create(CONFIG_MAPS, config("one"), namespace=world.namespace)
    await refused(NotFound, world.cluster.update(CONFIG_MAPS, made, subresource="status"))


@contract
async def test_most_of_a_pods_spec_is_settled_when_it_is_made(world: World) -> None:
    toleration = {"key": "a", "operator": "Exists", "effect": "NoSchedule"}
    draft = pod("one", tolerations=[toleration], schedulingGates=[{"name": "example.org/wait"}])
    made = await world.cluster.create(PODS, draft, namespace=world.namespace)

    def with_spec(**fields: Any) -> dict[str, Any]:
        copy = thaw(made)
        copy["spec"].update(fields)
        return copy

    more = [{"name": "main", "image": "pause"}, {"name": "more", "image": "pause"}]
    resources = [{"name": "main", "image": "pause", "resources": {"limits": {"cpu": "1"}}}]
    refusals: tuple[dict[str, Any], ...] = (
        {"nodeName": "node-1"},
        {"schedulerName": "other"},
        {"priority": 100},
        {"containers": more},
        {"containers": resources},
        {"tolerations": []},
        {"schedulingGates": [*made["spec"]["schedulingGates"], {"name": "example.org/more"}]},
    )
    for forbidden in refusals:
        await refused(KubeError, world.cluster.update(PODS, with_spec(**forbidden)), forbidden)
    other_image = [{**made["spec"]["containers"][0], "image": "other"}]
    added = [toleration, {**toleration, "key": "b"}]
    stored = await world.cluster.update(
        PODS,
        with_spec(containers=other_image, tolerations=added, nodeSelector={"zone": "a"}, schedulingGates=[]),
    )
    assert stored["spec"]["containers"][0]["image"] == "other"
    assert stored["spec"]["nodeSelector"] == {"zone": "a"}
    assert not stored["spec"].get("schedulingGates")
    assert stored["metadata"]["generation"] == 2


@contract
async def test_a_priority_class_keeps_its_value(world: World) -> None:
    draft = {"metadata": {"name": world.name("class")}, "value": 5}
    made = thaw(await world.cluster.create(PRIORITY_CLASSES, draft))
    await refused(Invalid, world.cluster.update(PRIORITY_CLASSES, {**made, "value": 6}))


@contract
async def test_what_is_not_json_never_reaches_the_cluster(world: World) -> None:
    deep: dict[str, Any] = {}
    for _ in range(12_000):
        deep = {"a": deep}
    for data in ({"a": object()}, {1: "a"}, {"a": float("nan")}, deep):
        try:
            await world.cluster.create(HOLDS, {"metadata": {"name": world.name("x")}, "spec": data})
        except (Rejected, KubeError):
            continue
        raise AssertionError(f"accepted: {str(data)[:100]}")
    assert await world.gone(HOLDS, world.name("x"))


@contract
async def test_nodes_take_status_by_its_own_door_after_creation(world: World) -> None:
    name = world.name("node")
    made = thaw(
        await world.cluster.create(NODES, {"metadata": {"name": name}, "status": {"capacity": {"cpu": "4"}}})
    )
    made["status"]["capacity"] = {"cpu": "8"}
    made["spec"] = {"unschedulable": True}
    stored = thaw(await world.cluster.update(NODES, made))
    assert stored["status"]["capacity"] == {"cpu": "4"}
    assert stored["spec"]["unschedulable"] is True
    stored["status"]["capacity"] = {"cpu": "8000m"}
    stored["spec"] = {}
    stored = thaw(await world.cluster.update(NODES, stored, subresource="status"))
    assert stored["status"]["capacity"] == {"cpu": "8"}
    assert stored["spec"]["unschedulable"] is True
    cordoned = await world.cluster.list(NODES, field_selector=f"spec.unschedulable=true,metadata.name={name}")
    assert len(cordoned.items) == 1
