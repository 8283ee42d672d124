"""The informer over every cluster: a mirror that follows, whatever happens on the way."""

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest

from koordpolicy.kube import KubeError, MergePatch, NotFound, Object, Rejected
from koordpolicy.kube.backoff import Backoff
from koordpolicy.kube.informer import Informer
from koordpolicy.kube.mirror import Key, Mirror, ObjectChange, key_of
from koordpolicy.kube.resources import PODS
from tests.contract.clusters import World, contract, pod

QUICK = Backoff(jitter=lambda: 0.0, initial=0.01, longest=0.02)


def by_node(obj: Any) -> tuple[str, ...]:
    node = obj["spec"].get("nodeName")
    return (node,) if node else ()


class Following:
    """An informer at work, and what its handler heard."""

    def __init__(self, world: World, field_selector: str) -> None:
        self.heard: list[str] = []
        self.mirror = Mirror(indexes={"node": by_node}, handlers=[self._note])
        self.informer = Informer(
            world.cluster, PODS, self.mirror, QUICK, namespace=world.namespace, field_selector=field_selector
        )
        self._world = world
        self._known: dict[Key, Object] = {}

    def _note(self, change: ObjectChange) -> None:
        assert self._known.pop(change.key, None) == change.old, "nothing is told twice, and nothing left out"
        if change.new is not None:
            self._known[change.key] = change.new
        sign = "+" if change.old is None else "-" if change.new is None else "~"
        self.heard.append(sign + change.key[1])

    async def until(self, question: Callable[[], bool], what: str) -> None:
        async def answer() -> bool:
            return question()

        await self._world.eventually(answer, what)


@asynccontextmanager
async def following(world: World, field_selector: str = "") -> AsyncIterator[Following]:
    follower = Following(world, field_selector)
    task = asyncio.create_task(follower.informer.run())
    try:
        async with asyncio.timeout(15):
            await follower.informer.wait_synced()
        yield follower
        assert not task.done(), "the informer gave up"
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def create(world: World, *names: str) -> None:
    for name in names:
        await world.cluster.create(PODS, pod(name), namespace=world.namespace)


@contract
async def test_the_mirror_shows_what_is_there_and_follows(world: World) -> None:
    await create(world, "a", "b")
    async with following(world) as follower:
        assert follower.heard == ["+a", "+b"]
        await create(world, "c")
        await world.cluster.bind(world.namespace, "c", "node-1")
        await world.cluster.delete(PODS, "a", namespace=world.namespace)
        await follower.until(lambda: follower.heard[2:] == ["+c", "~c", "~a", "-a"], "all changes are heard")
        on_node = follower.mirror.indexed("node", "node-1")
        assert [obj["metadata"]["name"] for obj in on_node] == ["c"]
        assert follower.mirror.get("a", world.namespace) is None
        assert follower.mirror.get("c", world.namespace) == await world.cluster.get(
            PODS, "c", namespace=world.namespace
        )


@contract
async def test_a_selection_is_mirrored_alone(world: World) -> None:
    await create(world, "a", "b")
    await world.cluster.bind(world.namespace, "a", "node-1")
    async with following(world, field_selector="spec.nodeName=node-1") as follower:
        assert follower.heard == ["+a"]
        await world.cluster.bind(world.namespace, "b", "node-1")
        await follower.until(lambda: follower.heard == ["+a", "+b"], "the new pod is heard of")


@contract
async def test_a_broken_stream_is_resumed_without_loss_or_repetition(world: World) -> None:
    if world.disconnect is None:
        pytest.skip("this cluster cannot be disconnected by the test")
    async with following(world) as follower:
        for name in ("a", "b", "c"):
            await world.disconnect()
            await create(world, name)
        await follower.until(lambda: follower.heard == ["+a", "+b", "+c"], "each pod is heard of once")


@contract
async def test_after_a_lost_history_only_the_differences_are_heard(world: World) -> None:
    if world.disconnect is None or world.forget is None:
        pytest.skip("this cluster cannot be made to forget its history")
    await create(world, "a", "b", "c")
    async with following(world) as follower:
        follower.heard.clear()
        # No await lets the informer run between these but those of the requests themselves.
        await world.disconnect()
        await world.cluster.delete(PODS, "a", namespace=world.namespace)
        patch = MergePatch({"metadata": {"labels": {"x": "y"}}})
        await world.cluster.patch(PODS, "b", patch, namespace=world.namespace)
        await world.forget()
        await world.disconnect()
        await create(world, "d")

        async def agrees() -> bool:
            listed = await world.cluster.list(PODS, namespace=world.namespace)
            return {key_of(obj): obj for obj in listed.items} == dict(follower.mirror.objects)

        await world.eventually(agrees, "the mirror shows what is there")
        assert "c" not in "".join(follower.heard)
        assert follower.heard.count("-a") == 1
        assert follower.heard.count("+d") == 1


@contract
async def test_more_than_a_page_is_shown_whole(world: World) -> None:
    await asyncio.gather(*(create(world, f"p{number}") for number in range(520)))
    async with following(world) as follower:
        assert len(follower.heard) == len(follower.mirror.objects) == 520


@contract
async def test_what_is_told_fits_together_however_often_the_stream_breaks(world: World) -> None:
    if world.disconnect is None:
        pytest.skip("this cluster cannot be disconnected by the test")
    chance = random.Random(1)
    async with following(world) as follower:
        for number in range(80):
            name = chance.choice("abcde")
            patch = MergePatch({"metadata": {"labels": {"n": f"{number}"}}})
            try:
                await world.cluster.patch(PODS, name, patch, namespace=world.namespace)
                if chance.random() < 0.4:
                    await world.cluster.delete(PODS, name, namespace=world.namespace)
            except NotFound:
                with suppress(KubeError):  # a broken connection may or may not have made it
                    await create(world, name)
            if chance.random() < 0.1:
                await world.disconnect()

        async def agrees() -> bool:
            listed = await world.cluster.list(PODS, namespace=world.namespace)
            return {key_of(obj): obj for obj in listed.items} == dict(follower.mirror.objects)

        await world.eventually(agrees, "the mirror shows what is there")


@contract
async def test_a_request_nobody_understands_ends_the_informer(world: World) -> None:
    informer = Informer(world.cluster, PODS, Mirror(), QUICK, field_selector="spec.containers=x")
    with pytest.raises(Rejected):
        await informer.run()
