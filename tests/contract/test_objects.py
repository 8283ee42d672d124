"""Creating, reading and listing."""

import re
from typing import Any

import pytest

from koordpolicy.kube import AlreadyExists, Gone, Invalid, NotFound, Rejected, thaw
from koordpolicy.kube.resources import (
    CONFIG_MAPS,
    EVENTS,
    NAMESPACES,
    NODES,
    PODS,
    REPLICA_SETS,
)
from tests.contract.clusters import HOLDS, SLABS, World, config, contract, names, pod, refused, version


@contract
async def test_what_is_created_can_be_read(world: World) -> None:
    made = await world.cluster.create(CONFIG_MAPS, config("one", {"a": "1"}), namespace=world.namespace)
    read = await world.cluster.get(CONFIG_MAPS, "one", namespace=world.namespace)
    assert read == made
    assert read["data"] == {"a": "1"}
    assert (read["apiVersion"], read["kind"]) == ("v1", "ConfigMap")


@contract
async def test_what_nobody_wants_to_see_is_stored_and_refused_all_the_same(world: World) -> None:
    mine = config("one", {"a": "1"})
    made = await world.cluster.create(CONFIG_MAPS, mine, namespace=world.namespace, echo=False)
    read = await world.cluster.get(CONFIG_MAPS, "one", namespace=world.namespace)
    assert read["data"] == {"a": "1"}
    assert not made or made == read
    with pytest.raises(AlreadyExists):
        await world.cluster.create(CONFIG_MAPS, mine, namespace=world.namespace, echo=False)


@contract
async def test_the_server_sets_what_is_its_own(world: World) -> None:
    mine = pod("one")
    mine["metadata"] |= {"uid": "mine", "creationTimestamp": "1999-01-01T00:00:00Z", "generation": 7}
    made = await world.cluster.create(PODS, mine, namespace=world.namespace)
    metadata = made["metadata"]
    assert metadata["namespace"] == world.namespace
    assert re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", metadata["uid"])
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", metadata["creationTimestamp"])
    assert metadata["creationTimestamp"] > "1999-01-01T00:00:00Z"
    assert int(version(made)) > 0
    assert metadata["generation"] == 1


@contract
async def test_no_two_objects_share_a_uid_and_versions_grow(world: World) -> None:
    made = [
        await world.cluster.create(CONFIG_MAPS, config(f"c{i}"), namespace=world.namespace) for i in range(5)
    ]
    assert len({obj["metadata"]["uid"] for obj in made}) == 5
    versions = [int(version(obj)) for obj in made]
    assert versions == sorted(set(versions))


@contract
async def test_a_name_is_taken_only_once(world: World) -> None:
    await world.cluster.create(CONFIG_MAPS, config("one"), namespace=world.namespace)
    with pytest.raises(AlreadyExists):
        await world.cluster.create(CONFIG_MAPS, config("one"), namespace=world.namespace)


@contract
async def test_one_name_serves_in_two_namespaces(world: World) -> None:
    other = world.name("other")
    await world.cluster.create(NAMESPACES, {"metadata": {"name": other}})
    await world.cluster.create(CONFIG_MAPS, config("one", {"in": "first"}), namespace=world.namespace)
    await world.cluster.create(CONFIG_MAPS, config("one", {"in": "second"}), namespace=other)
    assert (await world.cluster.get(CONFIG_MAPS, "one", namespace=other))["data"] == {"in": "second"}
    listed = await world.cluster.list(
        CONFIG_MAPS, namespace=world.namespace, field_selector="metadata.name=one"
    )
    assert [obj["data"] for obj in listed.items] == [{"in": "first"}]


@contract
async def test_what_is_not_there_is_not_found(world: World) -> None:
    with pytest.raises(NotFound):
        await world.cluster.get(CONFIG_MAPS, "none", namespace=world.namespace)
    with pytest.raises(NotFound):
        await world.cluster.get(NODES, world.name("none"))
    with pytest.raises(NotFound):
        await world.cluster.create(CONFIG_MAPS, config("one"), namespace="no-such-namespace")


@contract
async def test_the_server_makes_names_up(world: World) -> None:
    draft = {"metadata": {"generateName": "job-"}}
    made = [await world.cluster.create(CONFIG_MAPS, draft, namespace=world.namespace) for _ in range(3)]
    assert all(re.fullmatch(r"job-[a-z0-9]{5}", name) for name in names(made))
    assert len(set(names(made))) == 3


BAD_METADATA: tuple[dict[str, Any], ...] = (
    {"name": "Upper"},
    {"name": "under_score"},
    {"name": "-dash"},
    {"name": "x" * 254},
    {"name": ""},
    {"name": "ok", "labels": {"a b": "c"}},
    {"name": "ok", "labels": {"a": "not a value"}},
    {"name": "ok", "labels": {"a": "x" * 64}},
    {"name": "ok", "annotations": {"bad key!": ""}},
    {"name": "ok", "annotations": {"big": "x" * 300_000}},
    {"name": "ok", "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": ""}]},
    {
        "name": "ok",
        "ownerReferences": [
            {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": name, "controller": True}
            for name in ("a", "b")
        ],
    },
    {"name": "ok", "finalizers": ["not a name"]},
)


@contract
async def test_metadata_that_breaks_the_rules_is_invalid(world: World) -> None:
    for metadata in BAD_METADATA:
        request = world.cluster.create(CONFIG_MAPS, {"metadata": metadata}, namespace=world.namespace)
        await refused(Invalid, request, metadata)


@contract
async def test_requests_that_contradict_themselves_are_rejected(world: World) -> None:
    for draft, namespace in (
        ({"kind": "Secret", **config("one")}, world.namespace),
        ({"apiVersion": "v9", **config("one")}, world.namespace),
        (config("one", namespace="elsewhere"), world.namespace),
    ):
        with pytest.raises(Rejected):
            await world.cluster.create(CONFIG_MAPS, draft, namespace=namespace)


@contract
async def test_a_dry_run_answers_and_stores_nothing(world: World) -> None:
    made = await world.cluster.create(
        CONFIG_MAPS, config("one", {"a": "1"}), namespace=world.namespace, dry_run=True
    )
    assert made["data"] == {"a": "1"}
    assert made["metadata"]["uid"]
    assert await world.gone(CONFIG_MAPS, "one", world.namespace)
    with pytest.raises(Invalid):
        await world.cluster.create(CONFIG_MAPS, config("Bad"), namespace=world.namespace, dry_run=True)


@contract
async def test_what_a_caller_holds_is_not_what_is_stored(world: World) -> None:
    draft = config("one", {"a": "1"}, labels={"app": "web"})
    made = await world.cluster.create(CONFIG_MAPS, draft, namespace=world.namespace)
    draft["data"]["a"] = "changed"
    for held in (made, await world.cluster.get(CONFIG_MAPS, "one", namespace=world.namespace)):
        try:
            held["metadata"]["labels"]["app"] = "changed"
            held["data"].clear()
        except TypeError:
            pass  # refusing is as good
    copy = thaw(made)
    copy["data"]["a"] = "changed"
    listed = await world.cluster.list(
        CONFIG_MAPS, namespace=world.namespace, field_selector="metadata.name=one"
    )
    for read in (await world.cluster.get(CONFIG_MAPS, "one", namespace=world.namespace), listed.items[0]):
        assert read["data"] == {"a": "1"}
        assert read["metadata"]["labels"] == {"app": "web"}


@contract
async def test_a_list_is_ordered_and_of_one_moment(world: World) -> None:
    for name in ("c", "a", "b"):
        await world.cluster.create(
            CONFIG_MAPS, config(name, labels={"mine": "yes"}), namespace=world.namespace
        )
    listed = await world.cluster.list(CONFIG_MAPS, namespace=world.namespace, label_selector="mine")
    assert names(listed.items) == ["a", "b", "c"]
    assert int(listed.resource_version) >= max(int(version(obj)) for obj in listed.items)
    assert listed.continue_token == ""
    everywhere = await world.cluster.list(CONFIG_MAPS, label_selector="mine")
    assert {"a", "b", "c"} <= set(names(everywhere.items))


LABELS = {
    "a": {"app": "web", "tier": "front"},
    "b": {"app": "web"},
    "c": {"app": "db", "tier": "back"},
    "d": {},
}


@contract
async def test_label_selectors(world: World) -> None:
    for name, labels in LABELS.items():
        await world.cluster.create(
            PODS, {**pod(name), "metadata": {"name": name, "labels": labels}}, namespace=world.namespace
        )
    for selector, expected in {
        "": "abcd",
        "app=web": "ab",
        "app==web": "ab",
        "app!=web": "cd",
        "app": "abc",
        "!app": "d",
        "app in (web, db),tier": "ac",
        "app notin (web)": "cd",
        "tier,app=web": "a",
        "app=,app": "",
    }.items():
        listed = await world.cluster.list(PODS, namespace=world.namespace, label_selector=selector)
        assert "".join(names(listed.items)) == expected, selector


@contract
async def test_field_selectors(world: World) -> None:
    for name, spec in {
        "a": {"schedulerName": "mine"},
        "b": {"schedulerName": "mine", "nodeName": "node-1"},
        "c": {"nodeName": "node-1"},
        "d": {},
    }.items():
        await world.cluster.create(PODS, pod(name, **spec), namespace=world.namespace)
    for selector, expected in {
        "metadata.name=a": "a",
        "metadata.name!=a": "bcd",
        "spec.nodeName=node-1": "bc",
        "spec.nodeName=": "ad",
        "spec.nodeName!=": "bc",
        "spec.schedulerName=mine": "ab",
        "spec.schedulerName=mine,spec.nodeName=": "a",
        "status.phase=Pending": "abcd",
        "status.phase=Running": "",
        f"metadata.namespace={world.namespace}": "abcd",
        "metadata.namespace=elsewhere": "",
        "metadata.name=none": "",
    }.items():
        listed = await world.cluster.list(PODS, namespace=world.namespace, field_selector=selector)
        assert "".join(names(listed.items)) == expected, selector


@contract
async def test_events_are_found_by_what_they_speak_of(world: World) -> None:
    for name, about in {"e1": "a", "e2": "b"}.items():
        involved = {"kind": "Pod", "namespace": world.namespace, "name": about}
        event = {"metadata": {"name": name}, "involvedObject": involved, "reason": "Seen", "message": "hello"}
        await world.cluster.create(EVENTS, event, namespace=world.namespace)
    listed = await world.cluster.list(
        EVENTS, namespace=world.namespace, field_selector="involvedObject.name=b"
    )
    assert names(listed.items) == ["e2"]


@contract
async def test_selectors_that_cannot_be_read_are_rejected(world: World) -> None:
    for labels, fields in (
        ("app in web", ""),
        ("a=b=c", ""),
        ("=web", ""),
        ("app in (web", ""),
        ("app=not a value", ""),
        ("", "spec.containers=x"),
        ("", "metadata.uid=x"),
        ("", "spec.nodeName"),
    ):
        with pytest.raises(Rejected):
            await world.cluster.list(
                PODS, namespace=world.namespace, label_selector=labels, field_selector=fields
            )


@contract
async def test_pages_show_one_moment_although_objects_come_and_go(world: World) -> None:
    for index in range(7):
        await world.cluster.create(
            CONFIG_MAPS, config(f"c{index}", labels={"mine": "yes"}), namespace=world.namespace
        )
    page = await world.cluster.list(CONFIG_MAPS, namespace=world.namespace, label_selector="mine", limit=3)
    first = page.resource_version
    await world.cluster.delete(CONFIG_MAPS, "c5", namespace=world.namespace)
    await world.cluster.create(CONFIG_MAPS, config("c9", labels={"mine": "yes"}), namespace=world.namespace)
    seen, pages = names(page.items), 1
    while page.continue_token:
        page = await world.cluster.list(
            CONFIG_MAPS,
            namespace=world.namespace,
            label_selector="mine",
            limit=3,
            continue_token=page.continue_token,
        )
        assert page.resource_version == first
        seen += names(page.items)
        pages += 1
    assert seen == [f"c{index}" for index in range(7)]
    assert pages == 3


@contract
async def test_a_continue_token_is_not_good_for_ever_nor_for_anything(world: World) -> None:
    for index in range(3):
        await world.cluster.create(CONFIG_MAPS, config(f"c{index}"), namespace=world.namespace)
    page = await world.cluster.list(CONFIG_MAPS, namespace=world.namespace, limit=1)
    assert page.continue_token
    if world.forget is None:
        pytest.skip("this cluster cannot be made to forget its history")
    await world.cluster.create(CONFIG_MAPS, config("later"), namespace=world.namespace)
    await world.forget()

    async def refused_as_gone() -> bool:
        try:
            await world.cluster.list(
                CONFIG_MAPS, namespace=world.namespace, limit=1, continue_token=page.continue_token
            )
        except Gone:
            return True
        return False

    await world.eventually(refused_as_gone, "the token is too old")


@contract
async def test_status_is_not_taken_from_a_creator_where_it_is_a_subresource(world: World) -> None:
    draft = {**pod("one"), "status": {"phase": "Running", "podIP": "10.0.0.1"}}
    made = await world.cluster.create(PODS, draft, namespace=world.namespace)
    assert made["status"]["phase"] == "Pending"
    assert "podIP" not in made["status"]
    metric = {
        "metadata": {"name": world.name("node")},
        "spec": {},
        "status": {"updateTime": "2026-01-01T00:00:00Z"},
    }
    assert "status" not in await world.cluster.create(HOLDS, metric)
    # Nodes register themselves with their status, and Device has no status subresource.
    status = {"capacity": {"cpu": "4"}, "allocatable": {"cpu": "4"}}
    node = await world.cluster.create(NODES, {"metadata": {"name": world.name("node")}, "status": status})
    assert node["status"]["capacity"] == {"cpu": "4"}
    device = {
        "metadata": {"name": world.name("node")},
        "spec": {"devices": []},
        "status": {"allocations": []},
    }
    assert (await world.cluster.create(SLABS, device))["status"] == {"allocations": []}


@contract
async def test_generations_count_changes_of_the_spec(world: World) -> None:
    name = world.name("hold")
    made = thaw(await world.cluster.create(HOLDS, {"metadata": {"name": name}, "spec": {"ttl": "1h"}}))
    assert made["metadata"]["generation"] == 1
    made["metadata"]["labels"] = {"a": "b"}
    made = thaw(await world.cluster.update(HOLDS, made))
    assert made["metadata"]["generation"] == 1
    made["spec"]["ttl"] = "2h"
    made = thaw(await world.cluster.update(HOLDS, made))
    assert made["metadata"]["generation"] == 2
    made["status"] = {"phase": "Available"}
    made = thaw(await world.cluster.update(HOLDS, made, subresource="status"))
    assert made["metadata"]["generation"] == 2


@contract
async def test_amounts_are_stored_in_canonical_form(world: World) -> None:
    amounts = {"cpu": "1000m", "memory": "1024Mi", "kubernetes.io/batch-cpu": "12000"}
    node = {"metadata": {"name": world.name("node")}, "status": {"capacity": amounts, "allocatable": amounts}}
    made = await world.cluster.create(NODES, node)
    assert made["status"]["allocatable"] == {"cpu": "1", "memory": "1Gi", "kubernetes.io/batch-cpu": "12k"}
    resources = {"requests": {"cpu": "0.5"}, "limits": {"cpu": 2}}
    container = {"name": "main", "image": "pause", "resources": resources}
    made = await world.cluster.create(PODS, pod("one", containers=[container]), namespace=world.namespace)
    assert made["spec"]["containers"][0]["resources"] == {"requests": {"cpu": "500m"}, "limits": {"cpu": "2"}}


@contract
async def test_a_workload_says_by_its_scale_how_many_replicas_it_is_to_have(world: World) -> None:
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"replicas": 3, "selector": {"matchLabels": labels}, "template": template}
    made = await world.cluster.create(
        REPLICA_SETS, {"metadata": {"name": "web"}, "spec": spec}, namespace=world.namespace
    )
    scale = await world.cluster.get(REPLICA_SETS, "web", namespace=world.namespace, subresource="scale")
    assert scale["kind"] == "Scale"
    assert scale["metadata"]["uid"] == made["metadata"]["uid"]
    assert scale["spec"]["replicas"] == 3
    await world.cluster.create(CONFIG_MAPS, config("one"), namespace=world.namespace)
    with pytest.raises(NotFound):
        await world.cluster.get(CONFIG_MAPS, "one", namespace=world.namespace, subresource="scale")
