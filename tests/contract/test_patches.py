"""Patches of all four forms."""

import asyncio
from typing import Any

from koordpolicy.kube import (
    ApplyPatch,
    Conflict,
    Invalid,
    JsonPatch,
    KubeError,
    MergePatch,
    NotFound,
    Object,
    Rejected,
    StrategicPatch,
)
from koordpolicy.kube.resources import CONFIG_MAPS, NODES, PODS, REPLICA_SETS
from tests.contract.clusters import HOLDS, World, config, contract, pod, refused, version


@contract
async def test_a_merge_patch_merges_maps_and_replaces_lists(world: World) -> None:
    draft = {
        "metadata": {"name": world.name("hold")},
        "spec": {"ttl": "1h", "owners": [1, 2], "template": {"a": {"b": 1}}},
    }
    await world.cluster.create(HOLDS, draft)
    patch = MergePatch({"spec": {"ttl": None, "owners": [3], "template": {"a": {"c": 2}}}})
    stored = await world.cluster.patch(HOLDS, world.name("hold"), patch)
    assert stored["spec"] == {"owners": [3], "template": {"a": {"b": 1, "c": 2}}}


@contract
async def test_a_strategic_patch_merges_lists_by_their_key(world: World) -> None:
    await world.cluster.create(
        PODS,
        pod(
            "one",
            containers=[
                {"name": "a", "image": "pause"},
                {"name": "b", "image": "pause"},
            ],
        ),
        namespace=world.namespace,
    )
    patch = StrategicPatch(
        {"spec": {"containers": [{"name": "b", "image": "other"}]}, "metadata": {"labels": {"x": "y"}}}
    )
    stored = await world.cluster.patch(PODS, "one", patch, namespace=world.namespace)
    assert [(c["name"], c["image"]) for c in stored["spec"]["containers"]] == [("a", "pause"), ("b", "other")]
    assert stored["metadata"]["labels"] == {"x": "y"}
    condition = {"type": "Ready", "status": "True"}
    for status in ("False", "True"):
        patch = StrategicPatch({"status": {"conditions": [{**condition, "status": status}]}})
        stored = await world.cluster.patch(
            PODS, "one", patch, namespace=world.namespace, subresource="status"
        )
    assert [c["status"] for c in stored["status"]["conditions"] if c["type"] == "Ready"] == ["True"]
    gone = StrategicPatch({"status": {"conditions": [{"type": "Ready", "$patch": "delete"}]}})
    stored = await world.cluster.patch(PODS, "one", gone, namespace=world.namespace, subresource="status")
    assert all(c["type"] != "Ready" for c in stored["status"].get("conditions") or ())


@contract
async def test_custom_resources_take_no_strategic_patch(world: World) -> None:
    await world.cluster.create(HOLDS, {"metadata": {"name": world.name("hold")}, "spec": {}})
    patch = world.cluster.patch(HOLDS, world.name("hold"), StrategicPatch({"spec": {"ttl": "1h"}}))
    assert (await refused(Rejected, patch)).code == 415


@contract
async def test_a_json_patch_does_all_or_nothing(world: World) -> None:
    draft = config("one", annotations={"a": "1"})
    await world.cluster.create(CONFIG_MAPS, draft, namespace=world.namespace)
    at = "/metadata/annotations"
    steps = [
        {"op": "test", "path": f"{at}/a", "value": "1"},
        {"op": "add", "path": f"{at}/example.org~1c", "value": "2"},
        {"op": "move", "from": f"{at}/a", "path": f"{at}/d"},
        {"op": "copy", "from": f"{at}/d", "path": f"{at}/e"},
        {"op": "replace", "path": f"{at}/d", "value": "3"},
    ]
    stored = await world.cluster.patch(CONFIG_MAPS, "one", JsonPatch(steps), namespace=world.namespace)
    assert stored["metadata"]["annotations"] == {"example.org/c": "2", "d": "3", "e": "1"}
    failing = [{"op": "remove", "path": f"{at}/d"}, {"op": "test", "path": f"{at}/e", "value": "other"}]
    await refused(
        Invalid, world.cluster.patch(CONFIG_MAPS, "one", JsonPatch(failing), namespace=world.namespace)
    )
    assert await world.cluster.get(CONFIG_MAPS, "one", namespace=world.namespace) == stored


@contract
async def test_a_malformed_json_patch_is_refused(world: World) -> None:
    await world.cluster.create(CONFIG_MAPS, config("one", {"a": "1"}), namespace=world.namespace)
    for operation in (
        {"op": "remove", "path": "/data/none"},
        {"op": "dance", "path": "/data/a"},
        {"op": "add", "path": "/none/deep", "value": "x"},
        {"op": "replace", "path": "/metadata/name", "value": "two"},
        {"op": "add", "path": "/metadata/labels", "value": "text"},
    ):
        request = world.cluster.patch(CONFIG_MAPS, "one", JsonPatch([operation]), namespace=world.namespace)
        await refused(KubeError, request, operation)


@contract
async def test_a_patch_is_conditional_when_it_states_a_version(world: World) -> None:
    made = await world.cluster.create(CONFIG_MAPS, config("one"), namespace=world.namespace)

    def patch(value: str, **metadata: str) -> Any:
        body = MergePatch({"metadata": metadata, "data": {"a": value}})
        return world.cluster.patch(CONFIG_MAPS, "one", body, namespace=world.namespace)

    stored = await patch("1", resourceVersion=version(made))
    await refused(Conflict, patch("2", resourceVersion=version(made)))
    await refused(Invalid, patch("2", uid="00000000-0000-0000-0000-000000000000"))
    assert (await world.cluster.get(CONFIG_MAPS, "one", namespace=world.namespace)) == stored


@contract
async def test_concurrent_patches_of_different_fields_all_hold(world: World) -> None:
    await world.cluster.create(CONFIG_MAPS, config("one"), namespace=world.namespace)
    await asyncio.gather(
        *(
            world.cluster.patch(
                CONFIG_MAPS, "one", MergePatch({"data": {f"k{i}": "v"}}), namespace=world.namespace
            )
            for i in range(4)
        )
    )
    stored = await world.cluster.get(CONFIG_MAPS, "one", namespace=world.namespace)
    assert stored["data"] == {f"k{i}": "v" for i in range(4)}


@contract
async def test_a_patch_that_changes_nothing_writes_nothing(world: World) -> None:
    made = await world.cluster.create(CONFIG_MAPS, config("one", {"a": "1"}), namespace=world.namespace)
    for patch in (MergePatch({"data": {"a": "1"}}), StrategicPatch({}), JsonPatch([])):
        stored = await world.cluster.patch(CONFIG_MAPS, "one", patch, namespace=world.namespace)
        assert version(stored) == version(made)


@contract
async def test_a_patch_of_what_is_not_there_is_not_found(world: World) -> None:
    await refused(
        NotFound, world.cluster.patch(CONFIG_MAPS, "one", MergePatch({}), namespace=world.namespace)
    )


@contract
async def test_a_dry_run_of_a_patch_stores_nothing(world: World) -> None:
    made = await world.cluster.create(CONFIG_MAPS, config("one", {"a": "1"}), namespace=world.namespace)
    patch = MergePatch({"data": {"a": "2"}})
    tried = await world.cluster.patch(CONFIG_MAPS, "one", patch, namespace=world.namespace, dry_run=True)
    assert tried["data"] == {"a": "2"}
    assert await world.cluster.get(CONFIG_MAPS, "one", namespace=world.namespace) == made


@contract
async def test_a_patch_writes_status_only_through_its_subresource(world: World) -> None:
    name = world.name("node")
    await world.cluster.create(NODES, {"metadata": {"name": name}, "status": {"allocatable": {"cpu": "4"}}})
    patch = MergePatch(
        {
            "status": {"allocatable": {"kubernetes.io/batch-cpu": "2500"}},
            "metadata": {"annotations": {"a": "b"}},
        }
    )
    stored = await world.cluster.patch(NODES, name, patch)
    assert stored["status"]["allocatable"] == {"cpu": "4"}
    assert stored["metadata"]["annotations"] == {"a": "b"}
    stored = await world.cluster.patch(NODES, name, patch, subresource="status")
    assert stored["status"]["allocatable"] == {"cpu": "4", "kubernetes.io/batch-cpu": "2500"}


def applying(
    world: World, manager: str, data: dict[str, str], *, force: bool = False, **metadata: Any
) -> Any:
    """Apply a ConfigMap `one` as a manager."""
    metadata = {"name": "one", **metadata}
    obj: Object = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}
    return world.cluster.patch(CONFIG_MAPS, "one", ApplyPatch(obj, manager, force), namespace=world.namespace)


@contract
async def test_apply_makes_changes_and_lets_go(world: World) -> None:
    made = await applying(world, "git", {"a": "1", "b": "2"}, labels={"app": "web"})
    assert made["data"] == {"a": "1", "b": "2"}
    assert made["metadata"]["name"] == "one"
    stored = await applying(world, "git", {"a": "3"}, labels={"app": "web"})
    assert stored["data"] == {"a": "3"}
    assert stored["metadata"]["labels"] == {"app": "web"}
    stored = await applying(world, "git", {"a": "3"})
    assert not stored["metadata"].get("labels")
    [entry] = stored["metadata"]["managedFields"]
    assert (entry["manager"], entry["operation"]) == ("git", "Apply")
    assert entry["fieldsV1"] == {"f:data": {"f:a": {}}}


@contract
async def test_applying_again_writes_nothing(world: World) -> None:
    made = await applying(world, "git", {"a": "1"}, labels={"app": "web"})
    again = await applying(world, "git", {"a": "1"}, labels={"app": "web"})
    assert version(again) == version(made)


@contract
async def test_what_others_own_is_not_taken_without_force(world: World) -> None:
    await applying(world, "git", {"a": "1"})
    refusal = await refused(Conflict, applying(world, "person", {"a": "2"}))
    assert "git" in refusal.message
    assert "a" in refusal.message
    shared = await applying(world, "person", {"a": "1", "b": "2"})  # agreeing is no conflict
    assert shared["data"] == {"a": "1", "b": "2"}
    taken = await applying(world, "person", {"a": "2"}, force=True)
    assert taken["data"] == {"a": "2"}
    await refused(Conflict, applying(world, "git", {"a": "1"}))


@contract
async def test_a_field_goes_only_when_nobody_owns_it_any_more(world: World) -> None:
    await applying(world, "git", {"a": "1", "b": "2"})
    await applying(world, "person", {"b": "2", "c": "3"})
    stored = await applying(world, "git", {"a": "1"})
    assert stored["data"] == {"a": "1", "b": "2", "c": "3"}
    stored = await applying(world, "person", {"c": "3"})
    assert stored["data"] == {"a": "1", "c": "3"}


@contract
async def test_other_writes_under_a_managers_name_own_what_they_change(world: World) -> None:
    await world.cluster.create(
        CONFIG_MAPS, config("one", {"a": "1", "b": "1"}), namespace=world.namespace, field_manager="person"
    )
    await refused(Conflict, applying(world, "git", {"a": "2"}))
    await applying(world, "git", {"a": "1"})
    patch = MergePatch({"data": {"a": "3"}})
    await world.cluster.patch(CONFIG_MAPS, "one", patch, namespace=world.namespace, field_manager="robot")
    refusal = await refused(Conflict, applying(world, "git", {"a": "1"}))
    assert "robot" in refusal.message


@contract
async def test_apply_finds_items_of_keyed_lists(world: World) -> None:
    def applied(manager: str, *containers: dict[str, Any], **spec: Any) -> Any:
        obj = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "one"},
            "spec": {"containers": list(containers), **spec},
        }
        return world.cluster.patch(PODS, "one", ApplyPatch(obj, manager), namespace=world.namespace)

    await applied("git", {"name": "a", "image": "pause"}, {"name": "b", "image": "pause"})
    stored = await applied("robot", {"name": "b", "image": "pause"})
    assert [c["name"] for c in stored["spec"]["containers"]] == ["a", "b"]
    stored = await applied("git", {"name": "a", "image": "other"}, {"name": "b", "image": "pause"})
    assert [c["image"] for c in stored["spec"]["containers"]] == ["other", "pause"]


@contract
async def test_an_item_stays_while_another_owns_it(world: World) -> None:
    def replica_set(*containers: dict[str, Any]) -> dict[str, Any]:
        labels = {"app": "web"}
        template = {"metadata": {"labels": labels}, "spec": {"containers": list(containers)}}
        spec = {"replicas": 0, "selector": {"matchLabels": labels}, "template": template}
        return {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "web"}, "spec": spec}

    async def apply(manager: str, *containers: dict[str, Any]) -> list[Any]:
        patch = ApplyPatch(replica_set(*containers), manager)
        stored = await world.cluster.patch(REPLICA_SETS, "web", patch, namespace=world.namespace)
        return [(entry["name"], entry["image"]) for entry in stored["spec"]["template"]["spec"]["containers"]]

    one, two, three = ({"name": name, "image": "x"} for name in ("one", "two", "three"))
    await apply("git", one, two, three)
    await apply("person", three)
    image = {"spec": {"template": {"spec": {"containers": [{"name": "two", "image": "y"}]}}}}
    await world.cluster.patch(
        REPLICA_SETS, "web", StrategicPatch(image), namespace=world.namespace, field_manager="robot"
    )
    # Owning the image of `two` alone does not keep it; `three` is somebody else's too.
    assert sorted(await apply("git", one)) == [("one", "x"), ("three", "x")]


@contract
async def test_status_is_applied_by_its_own_door(world: World) -> None:
    name = world.name("hold")
    head = {"apiVersion": HOLDS.api_version, "kind": HOLDS.kind, "metadata": {"name": name}}
    patch = ApplyPatch({**head, "spec": {"ttl": "1h"}, "status": {"phase": "Failed"}}, "git")
    stored = await world.cluster.patch(HOLDS, name, patch)
    assert "status" not in stored
    patch = ApplyPatch({**head, "status": {"phase": "Available"}}, "scheduler")
    stored = await world.cluster.patch(HOLDS, name, patch, subresource="status")
    assert (stored["spec"], stored["status"]) == ({"ttl": "1h"}, {"phase": "Available"})
    owners = {entry["manager"]: entry.get("subresource", "") for entry in stored["metadata"]["managedFields"]}
    assert owners == {"git": "", "scheduler": "status"}


@contract
async def test_an_apply_patch_says_what_it_is_and_whose(world: World) -> None:
    whole = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one"}}
    for obj, manager in (
        (whole, ""),
        ({"metadata": {"name": "one"}}, "git"),
        ({**whole, "kind": "Secret"}, "git"),
    ):
        request = world.cluster.patch(CONFIG_MAPS, "one", ApplyPatch(obj, manager), namespace=world.namespace)
        await refused(Rejected, request, (obj, manager))
    assert await world.gone(CONFIG_MAPS, "one", world.namespace)
