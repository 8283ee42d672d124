"""Objects going: at once, in time, when their finalizers let them, and with their owners."""

from typing import Any

from koordpolicy.kube import (
    Conflict,
    Forbidden,
    KubeError,
    MergePatch,
    NotFound,
    Object,
    Preconditions,
    Propagation,
    thaw,
)
from koordpolicy.kube.resources import CONFIG_MAPS, LEASES, NAMESPACES, PODS
from tests.contract.clusters import HOLDS, World, config, contract, names, pod, refused, version


@contract
async def test_a_deleted_object_is_gone(world: World) -> None:
    await world.cluster.create(CONFIG_MAPS, config("one"), namespace=world.namespace)
    await world.cluster.delete(CONFIG_MAPS, "one", namespace=world.namespace)
    assert await world.gone(CONFIG_MAPS, "one", world.namespace)
    await refused(NotFound, world.cluster.delete(CONFIG_MAPS, "one", namespace=world.namespace))


@contract
async def test_preconditions_of_a_deletion_must_hold(world: World) -> None:
    made = await world.cluster.create(CONFIG_MAPS, config("one"), namespace=world.namespace)
    patch = MergePatch({"data": {"a": "1"}})
    stored = await world.cluster.patch(CONFIG_MAPS, "one", patch, namespace=world.namespace)
    uid = made["metadata"]["uid"]
    for wrong in (
        Preconditions(uid="00000000-0000-0000-0000-000000000000"),
        Preconditions(resource_version=version(made)),
        Preconditions(uid=uid, resource_version=version(made)),
    ):
        request = world.cluster.delete(CONFIG_MAPS, "one", namespace=world.namespace, preconditions=wrong)
        await refused(Conflict, request, wrong)
    right = Preconditions(uid=uid, resource_version=version(stored))
    await world.cluster.delete(CONFIG_MAPS, "one", namespace=world.namespace, preconditions=right)
    assert await world.gone(CONFIG_MAPS, "one", world.namespace)


@contract
async def test_a_dry_run_of_a_deletion_deletes_nothing(world: World) -> None:
    made = await world.cluster.create(CONFIG_MAPS, config("one"), namespace=world.namespace)
    await world.cluster.delete(CONFIG_MAPS, "one", namespace=world.namespace, dry_run=True)
    assert await world.cluster.get(CONFIG_MAPS, "one", namespace=world.namespace) == made


async def bound_pod(world: World, name: str = "one", **spec: Any) -> Object:
    await world.cluster.create(PODS, pod(name, **spec), namespace=world.namespace)
    await world.cluster.bind(world.namespace, name, "node-1")
    return await world.cluster.get(PODS, name, namespace=world.namespace)


@contract
async def test_a_bound_pod_gets_time_to_stop(world: World) -> None:
    before = await bound_pod(world, terminationGracePeriodSeconds=45)
    await world.cluster.delete(PODS, "one", namespace=world.namespace)
    going = await world.cluster.get(PODS, "one", namespace=world.namespace)
    assert going["metadata"]["deletionGracePeriodSeconds"] == 45
    assert going["metadata"]["deletionTimestamp"] > before["metadata"]["creationTimestamp"]
    assert going["metadata"]["generation"] == before["metadata"]["generation"] + 1
    await world.cluster.delete(PODS, "one", namespace=world.namespace, grace_seconds=0)
    assert await world.gone(PODS, "one", world.namespace)


@contract
async def test_the_time_to_stop_can_only_become_shorter(world: World) -> None:
    await bound_pod(world)

    async def grace_after(seconds: int | None) -> tuple[int, str]:
        await world.cluster.delete(PODS, "one", namespace=world.namespace, grace_seconds=seconds)
        metadata = (await world.cluster.get(PODS, "one", namespace=world.namespace))["metadata"]
        return metadata["deletionGracePeriodSeconds"], metadata["deletionTimestamp"]

    first = await grace_after(40)
    assert first[0] == 40
    assert await grace_after(60) == first
    assert await grace_after(None) == first
    shorter = await grace_after(10)
    assert shorter[0] == 10
    assert shorter[1] < first[1]


@contract
async def test_a_pod_on_no_node_goes_at_once(world: World) -> None:
    await world.cluster.create(PODS, pod("one"), namespace=world.namespace)
    await world.cluster.delete(PODS, "one", namespace=world.namespace, grace_seconds=60)
    assert await world.gone(PODS, "one", world.namespace)


@contract
async def test_a_finished_pod_goes_at_once(world: World) -> None:
    await bound_pod(world)
    patch = MergePatch({"status": {"phase": "Succeeded"}})
    await world.cluster.patch(PODS, "one", patch, namespace=world.namespace, subresource="status")
    await world.cluster.delete(PODS, "one", namespace=world.namespace)
    assert await world.gone(PODS, "one", world.namespace)


@contract
async def test_an_object_stays_until_its_finalizers_are_gone(world: World) -> None:
    draft = config("one", {"a": "1"}, finalizers=["example.org/a", "example.org/b"])
    await world.cluster.create(CONFIG_MAPS, draft, namespace=world.namespace)
    await world.cluster.delete(CONFIG_MAPS, "one", namespace=world.namespace)
    going = thaw(await world.cluster.get(CONFIG_MAPS, "one", namespace=world.namespace))
    assert going["metadata"]["deletionTimestamp"]
    await world.cluster.delete(CONFIG_MAPS, "one", namespace=world.namespace)  # asking twice is no mistake
    del going["metadata"]["deletionTimestamp"]
    going["metadata"]["finalizers"] = ["example.org/b"]
    stored = await world.cluster.update(CONFIG_MAPS, going)
    assert stored["metadata"]["deletionTimestamp"], "nobody can take a deletion back"
    patch = MergePatch({"metadata": {"finalizers": None}})
    last = await world.cluster.patch(CONFIG_MAPS, "one", patch, namespace=world.namespace)
    assert last["data"] == {"a": "1"}
    assert await world.gone(CONFIG_MAPS, "one", world.namespace)


def owned_by(owner: Object, *, controller: bool = False, blocking: bool = False) -> dict[str, Any]:
    """An owner reference to an object."""
    reference = {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
    }
    return (
        reference
        | ({"controller": True} if controller else {})
        | ({"blockOwnerDeletion": True} if blocking else {})
    )


async def family(world: World, *, blocking: bool = False) -> Object:
    """A ConfigMap `owner`, `child` owned by it, and `grandchild` owned by that; returns the owner."""
    owner = await world.cluster.create(CONFIG_MAPS, config("owner"), namespace=world.namespace)
    child = config("child", ownerReferences=[owned_by(owner, blocking=blocking)])
    made = await world.cluster.create(CONFIG_MAPS, child, namespace=world.namespace)
    grandchild = config("grandchild", ownerReferences=[owned_by(made)])
    await world.cluster.create(CONFIG_MAPS, grandchild, namespace=world.namespace)
    return owner


async def all_gone(world: World, *gone: str) -> bool:
    listed = await world.cluster.list(CONFIG_MAPS, namespace=world.namespace)
    return not set(gone) & set(names(listed.items))


@contract
async def test_dependents_follow_their_owner(world: World) -> None:
    await family(world)
    await world.cluster.create(CONFIG_MAPS, config("stranger"), namespace=world.namespace)
    await world.cluster.delete(
        CONFIG_MAPS, "owner", namespace=world.namespace, propagation=Propagation.BACKGROUND
    )
    await world.eventually(lambda: all_gone(world, "owner", "child", "grandchild"), "the family is gone")
    assert not await world.gone(CONFIG_MAPS, "stranger", world.namespace)


@contract
async def test_an_object_of_two_owners_outlives_the_first(world: World) -> None:
    one = await world.cluster.create(CONFIG_MAPS, config("one"), namespace=world.namespace)
    two = await world.cluster.create(CONFIG_MAPS, config("two"), namespace=world.namespace)
    child = config("child", ownerReferences=[owned_by(one), owned_by(two)])
    await world.cluster.create(CONFIG_MAPS, child, namespace=world.namespace)
    background = Propagation.BACKGROUND
    await world.cluster.delete(CONFIG_MAPS, "one", namespace=world.namespace, propagation=background)

    async def disowned() -> bool:
        read = await world.cluster.get(CONFIG_MAPS, "child", namespace=world.namespace)
        return [owner["name"] for owner in read["metadata"]["ownerReferences"]] == ["two"]

    await world.eventually(disowned, "the child names only its living owner")
    await world.cluster.delete(CONFIG_MAPS, "two", namespace=world.namespace, propagation=background)
    await world.eventually(lambda: all_gone(world, "child"), "the child is gone")


@contract
async def test_orphans_stay(world: World) -> None:
    await family(world)
    await world.cluster.delete(
        CONFIG_MAPS, "owner", namespace=world.namespace, propagation=Propagation.ORPHAN
    )
    await world.eventually(lambda: all_gone(world, "owner"), "the owner is gone")
    child = await world.cluster.get(CONFIG_MAPS, "child", namespace=world.namespace)
    assert not child["metadata"].get("ownerReferences")
    assert not await world.gone(CONFIG_MAPS, "grandchild", world.namespace)


@contract
async def test_in_the_foreground_an_owner_waits_for_what_blocks_it(world: World) -> None:
    owner = await world.cluster.create(CONFIG_MAPS, config("owner"), namespace=world.namespace)
    references = [owned_by(owner, blocking=True)]
    child = config("child", ownerReferences=references, finalizers=["example.org/wait"])
    await world.cluster.create(CONFIG_MAPS, child, namespace=world.namespace)
    await world.cluster.delete(
        CONFIG_MAPS, "owner", namespace=world.namespace, propagation=Propagation.FOREGROUND
    )

    async def child_is_going() -> bool:
        read = await world.cluster.get(CONFIG_MAPS, "child", namespace=world.namespace)
        return "deletionTimestamp" in read["metadata"]

    await world.eventually(child_is_going, "the child was asked to go")
    waiting = await world.cluster.get(CONFIG_MAPS, "owner", namespace=world.namespace)
    assert waiting["metadata"]["finalizers"] == ["foregroundDeletion"]
    patch = MergePatch({"metadata": {"finalizers": None}})
    await world.cluster.patch(CONFIG_MAPS, "child", patch, namespace=world.namespace)
    await world.eventually(lambda: all_gone(world, "owner", "child"), "both are gone")


@contract
async def test_what_is_in_a_namespace_goes_with_it(world: World) -> None:
    doomed = world.name("doomed")
    await world.cluster.create(NAMESPACES, {"metadata": {"name": doomed}})
    await world.cluster.create(CONFIG_MAPS, config("one"), namespace=doomed)
    held = config("held", finalizers=["example.org/wait"])
    await world.cluster.create(CONFIG_MAPS, held, namespace=doomed)
    await world.cluster.create(LEASES, {"metadata": {"name": "one"}, "spec": {}}, namespace=doomed)
    await world.cluster.delete(NAMESPACES, doomed)

    async def only_held() -> bool:
        left = await world.cluster.list(
            CONFIG_MAPS, namespace=doomed, field_selector="metadata.name!=kube-root-ca.crt"
        )
        return names(left.items) == ["held"]

    await world.eventually(only_held, "what can go is gone")
    namespace = await world.cluster.get(NAMESPACES, doomed)
    assert namespace["status"]["phase"] == "Terminating"
    refusal = await refused(KubeError, world.cluster.create(CONFIG_MAPS, config("late"), namespace=doomed))
    assert isinstance(refusal, (Forbidden, NotFound))
    await world.cluster.patch(
        CONFIG_MAPS, "held", MergePatch({"metadata": {"finalizers": None}}), namespace=doomed
    )
    await world.eventually(lambda: world.gone(NAMESPACES, doomed), "the namespace is gone")


@contract
async def test_the_namespaces_of_the_system_stay(world: World) -> None:
    for name in ("default", "kube-system"):
        await refused(Forbidden, world.cluster.delete(NAMESPACES, name))


@contract
async def test_namespaces_know_their_own_name(world: World) -> None:
    made = await world.cluster.get(NAMESPACES, world.namespace)
    assert made["metadata"]["labels"]["kubernetes.io/metadata.name"] == world.namespace
    assert made["status"]["phase"] == "Active"


@contract
async def test_a_cluster_scoped_owner_takes_its_dependents_along(world: World) -> None:
    owner = await world.cluster.create(HOLDS, {"metadata": {"name": world.name("hold")}, "spec": {}})
    child = config("child", ownerReferences=[owned_by(owner, controller=True)])
    await world.cluster.create(CONFIG_MAPS, child, namespace=world.namespace)
    await world.cluster.delete(HOLDS, world.name("hold"))
    await world.eventually(lambda: all_gone(world, "child"), "the child is gone")
