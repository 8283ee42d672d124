"""Watching: every change, in order, from a known version on."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest

from koordpolicy.kube import EventType, Gone, KubeError, MergePatch, Rejected, Resource, WatchEvent, thaw
from koordpolicy.kube.resources import CONFIG_MAPS, PODS
from tests.contract.clusters import World, config, contract, pod, version

LONGEST = 15.0
"""Seconds to wait for events that must come."""


class Seen:
    """The events of one watch, as they come."""

    def __init__(self, events: AsyncIterator[WatchEvent]) -> None:
        self._events = events

    async def next(self, count: int) -> list[WatchEvent]:
        """So many further events, bookmarks left out."""
        found: list[WatchEvent] = []
        async with asyncio.timeout(LONGEST):
            while len(found) < count:
                event = await anext(self._events)
                if event.type is not EventType.BOOKMARK:
                    found.append(event)
        return found

    async def words(self, count: int) -> str:
        """So many further events as text: `ADDED a, DELETED b`."""
        return ", ".join(
            f"{event.type} {event.object['metadata']['name']}" for event in await self.next(count)
        )


@asynccontextmanager
async def watching(world: World, resource: Resource = CONFIG_MAPS, **arguments: Any) -> AsyncIterator[Seen]:
    """A watch in the test's namespace."""
    async with world.cluster.watch(resource, namespace=world.namespace, **arguments) as events:
        yield Seen(events)


async def now(world: World, resource: Resource = CONFIG_MAPS) -> str:
    """The present version."""
    return (await world.cluster.list(resource, namespace=world.namespace)).resource_version


async def put(world: World, name: str, **data: str) -> None:
    """Make a ConfigMap or change it."""
    if await world.gone(CONFIG_MAPS, name, world.namespace):
        await world.cluster.create(CONFIG_MAPS, config(name, data), namespace=world.namespace)
    else:
        await world.cluster.patch(CONFIG_MAPS, name, MergePatch({"data": data}), namespace=world.namespace)


@contract
async def test_changes_are_reported_in_order(world: World) -> None:
    async with watching(world, resource_version=await now(world)) as seen:
        await put(world, "a", n="1")
        await put(world, "b", n="1")
        await put(world, "a", n="2")
        await world.cluster.delete(CONFIG_MAPS, "b", namespace=world.namespace)
        events = await seen.next(4)
    assert [(event.type, event.object["metadata"]["name"]) for event in events] == [
        ("ADDED", "a"),
        ("ADDED", "b"),
        ("MODIFIED", "a"),
        ("DELETED", "b"),
    ]
    assert events[2].object["data"] == {"n": "2"}
    versions = [int(event.resource_version) for event in events]
    assert versions == sorted(set(versions))


@contract
async def test_a_deletion_shows_the_last_state_and_its_own_version(world: World) -> None:
    await put(world, "a", n="1")
    made = await world.cluster.get(CONFIG_MAPS, "a", namespace=world.namespace)
    async with watching(world, resource_version=version(made)) as seen:
        await world.cluster.delete(CONFIG_MAPS, "a", namespace=world.namespace)
        [event] = await seen.next(1)
    assert event.type is EventType.DELETED
    assert event.object["data"] == {"n": "1"}
    assert int(event.resource_version) > int(version(made))


@contract
async def test_a_watch_goes_on_where_a_list_ended(world: World) -> None:
    await put(world, "a", n="1")
    since = await now(world)
    await put(world, "b", n="1")
    await put(world, "a", n="2")
    async with watching(world, resource_version=since) as seen:
        assert await seen.words(2) == "ADDED b, MODIFIED a"
        await put(world, "c")
        assert await seen.words(1) == "ADDED c"


@contract
async def test_without_a_version_the_present_objects_come_first(world: World) -> None:
    for name in ("b", "a"):
        await world.cluster.create(PODS, pod(name), namespace=world.namespace)
    async with watching(world, PODS) as seen:
        assert sorted((await seen.words(2)).split(", ")) == ["ADDED a", "ADDED b"]
        await world.cluster.create(PODS, pod("c"), namespace=world.namespace)
        assert await seen.words(1) == "ADDED c"


@contract
async def test_other_namespaces_and_resources_are_not_seen(world: World) -> None:
    async with watching(world, resource_version=await now(world)) as seen:
        await world.cluster.create(CONFIG_MAPS, config(world.name("x")), namespace="default")
        await world.cluster.create(PODS, pod("p"), namespace=world.namespace)
        await put(world, "a")
        assert await seen.words(1) == "ADDED a"
    await world.cluster.delete(CONFIG_MAPS, world.name("x"), namespace="default")


async def label(world: World, name: str, **labels: str | None) -> None:
    await world.cluster.patch(
        PODS, name, MergePatch({"metadata": {"labels": labels}}), namespace=world.namespace
    )


@contract
async def test_objects_enter_and_leave_a_selection_by_their_labels(world: World) -> None:
    await world.cluster.create(PODS, pod("a"), namespace=world.namespace)
    since = await now(world, PODS)
    async with watching(world, PODS, resource_version=since, label_selector="app=web") as seen:
        await world.cluster.create(PODS, pod("other"), namespace=world.namespace)
        await label(world, "a", app="web")
        await label(world, "a", tier="front")
        await label(world, "a", app="db")
        await label(world, "a", app="web")
        await world.cluster.delete(PODS, "a", namespace=world.namespace)
        events = await seen.next(6)
    # A pod is always seen going, with its deletionTimestamp, before it is gone.
    assert [event.type for event in events] == [
        "ADDED",
        "MODIFIED",
        "DELETED",
        "ADDED",
        "MODIFIED",
        "DELETED",
    ]
    left = events[2]
    assert left.object["metadata"]["labels"] == {"app": "web", "tier": "front"}, "the last state that matched"
    assert int(left.resource_version) > int(events[1].resource_version)


@contract
async def test_a_watch_of_a_nodes_pods_sees_them_arrive(world: World) -> None:
    since = await now(world, PODS)
    selector = "spec.nodeName=node-1"
    async with watching(world, PODS, resource_version=since, field_selector=selector) as seen:
        for name in ("a", "b"):
            await world.cluster.create(PODS, pod(name), namespace=world.namespace)
        await world.cluster.bind(world.namespace, "a", "node-2")
        await world.cluster.bind(world.namespace, "b", "node-1")
        assert await seen.words(1) == "ADDED b"
        await label(world, "b", x="y")
        await world.cluster.delete(PODS, "b", namespace=world.namespace, grace_seconds=0)
        assert await seen.words(3) == "MODIFIED b, MODIFIED b, DELETED b"


@contract
async def test_a_watch_of_one_name_sees_that_alone(world: World) -> None:
    since = await now(world)
    async with watching(world, resource_version=since, field_selector="metadata.name=b") as seen:
        for name in ("a", "b", "c"):
            await put(world, name)
        await put(world, "b", n="1")
        assert await seen.words(2) == "ADDED b, MODIFIED b"


@contract
async def test_all_watchers_see_the_same(world: World) -> None:
    since = await now(world)
    async with watching(world, resource_version=since) as one, watching(world, resource_version=since) as two:
        for name in ("a", "b", "c"):
            await put(world, name)
        assert await one.words(3) == await two.words(3) == "ADDED a, ADDED b, ADDED c"


@contract
async def test_a_version_out_of_reach_is_gone(world: World) -> None:
    if world.forget is None or not world.forgets_watches:
        pytest.skip("this cluster cannot be made to forget what it tells watches")
    await put(world, "a")
    await world.forget()
    with pytest.raises(Gone):
        async with watching(world, resource_version="1") as seen:
            await seen.next(1)


@contract
async def test_a_version_that_is_none_is_rejected(world: World) -> None:
    with pytest.raises(KubeError):
        async with watching(world, resource_version="yesterday") as seen:
            await seen.next(1)
    with pytest.raises(Rejected):
        async with watching(world, PODS, field_selector="spec.containers=x") as seen:
            await seen.next(1)


@contract
async def test_what_a_watch_shows_is_not_what_is_stored(world: World) -> None:
    async with watching(world, resource_version=await now(world)) as seen:
        await put(world, "a", n="1")
        [event] = await seen.next(1)
    with suppress(TypeError):  # refusing is as good
        event.object["data"]["n"] = "changed"
    assert (await world.cluster.get(CONFIG_MAPS, "a", namespace=world.namespace))["data"] == {"n": "1"}
    assert thaw(event.object)["metadata"]["name"] == "a"


@contract
async def test_a_stream_that_ends_can_be_resumed_without_loss(world: World) -> None:
    if world.disconnect is None:
        pytest.skip("this cluster cannot be disconnected by the test")
    async with watching(world, resource_version=await now(world)) as seen:
        await put(world, "a")
        [event] = await seen.next(1)
        await world.disconnect()
        with pytest.raises(StopAsyncIteration):
            await seen.next(1)
    await put(world, "b")
    async with watching(world, resource_version=event.resource_version) as seen:
        await put(world, "c")
        assert await seen.words(2) == "ADDED b, ADDED c"
