"""What must hold for any sequence of operations, not only for those somebody thought of."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from koordpolicy.kube import (
    AlreadyExists,
    Conflict,
    MergePatch,
    NotFound,
    Object,
    ObjectList,
    Rejected,
    TooManyRequests,
    thaw,
)
from koordpolicy.kube.mirror import Key, Mirror, key_of
from koordpolicy.kube.resources import CONFIG_MAPS, PODS
from tests.contract.clusters import Case, World, config, pod, run_on, version

NAMES = ("a", "b", "c")
LABELS = ("web", "db")
NODES = ("node-1", "node-2")


@dataclass(frozen=True, slots=True)
class Step:
    """One thing somebody does to one pod; it may well fail, and that is part of the game."""

    verb: str
    name: str
    value: str

    async def take(self, world: World) -> None:
        cluster, namespace = world.cluster, world.namespace
        patch: dict[str, Any]
        match self.verb:
            case "create":
                draft = pod(self.name)
                draft["metadata"]["labels"] = {"app": self.value}
                await cluster.create(PODS, draft, namespace=namespace)
            case "label":
                patch = {"metadata": {"labels": {"app": self.value}}}
                await cluster.patch(PODS, self.name, MergePatch(patch), namespace=namespace)
            case "hold":
                patch = {"metadata": {"finalizers": ["example.org/wait"]}}
                await cluster.patch(PODS, self.name, MergePatch(patch), namespace=namespace)
            case "release":
                patch = {"metadata": {"finalizers": None}}
                await cluster.patch(PODS, self.name, MergePatch(patch), namespace=namespace)
            case "run":
                patch = {"status": {"phase": "Running"}}
                await cluster.patch(
                    PODS, self.name, MergePatch(patch), namespace=namespace, subresource="status"
                )
            case "bind":
                await cluster.bind(namespace, self.name, self.value)
            case "evict":
                await cluster.evict(namespace, self.name)
            case "delete":
                await cluster.delete(PODS, self.name, namespace=namespace)
            case "kill":
                await cluster.delete(PODS, self.name, namespace=namespace, grace_seconds=0)


def steps() -> st.SearchStrategy[list[Step]]:
    """Sequences in which pods come, change and go."""
    plain = ("hold", "release", "run", "evict", "delete", "kill")
    names = st.sampled_from(NAMES)
    one = st.one_of(
        st.builds(Step, st.sampled_from(("create", "label")), names, st.sampled_from(LABELS)),
        st.builds(Step, st.just("bind"), names, st.sampled_from(NODES)),
        st.builds(Step, st.sampled_from(plain), names, st.just("")),
    )
    return st.lists(one, max_size=30)


SELECTIONS = (("", ""), ("app=web", ""), ("app!=web", ""), ("", "spec.nodeName=node-1"))
"""Label and field selectors."""


def both(prop: Callable[..., None], **strategies: st.SearchStrategy[Any]) -> tuple[Any, Any]:
    """Two tests of a property, which is given a case and what is drawn: in memory, and for fewer draws, for real."""

    @given(**strategies)
    def in_memory(memory: Case, **drawn: Any) -> None:
        prop(memory, **drawn)

    @settings(max_examples=10)
    @given(**strategies)
    def for_real(real: Case, **drawn: Any) -> None:
        prop(real, **drawn)

    return in_memory, for_real


def state(objects: Any) -> dict[Key, Object]:
    return {key_of(obj): obj for obj in objects}


def replaying(case: Case, todo: list[Step], selection: tuple[str, str], resumes: list[int]) -> None:
    labels, fields = selection

    async def scenario(world: World) -> None:
        async def listed() -> ObjectList:
            return await world.cluster.list(
                PODS, namespace=world.namespace, label_selector=labels, field_selector=fields
            )

        begin = await listed()
        mirror = Mirror()
        mirror.replace(begin.items, begin.resource_version)

        async def follow() -> None:
            # Break off after so many events, again and again, and go on from there.
            for count in (*resumes, 0):
                seen = 0
                since = mirror.resource_version
                watch = world.cluster.watch(
                    PODS,
                    namespace=world.namespace,
                    resource_version=since,
                    label_selector=labels,
                    field_selector=fields,
                    bookmarks=True,
                )
                async with watch as events:
                    async for event in events:
                        mirror.apply(event)
                        seen += 1
                        if seen == count:
                            break

        follower = asyncio.create_task(follow())
        for step in todo:
            with suppress(Rejected, NotFound, AlreadyExists, Conflict, TooManyRequests):
                await step.take(world)

        async def agrees() -> bool:
            return state((await listed()).items) == dict(mirror.objects)

        try:
            await world.eventually(agrees, "the replayed state is the listed one")
        finally:
            follower.cancel()
            await asyncio.gather(follower, return_exceptions=True)

    run_on(case, scenario)


test_replaying_a_watch_gives_what_a_list_shows, test_replaying_a_watch_gives_what_a_list_shows_for_real = (
    both(
        replaying,
        todo=steps(),
        selection=st.sampled_from(SELECTIONS),
        resumes=st.lists(st.integers(1, 5), max_size=6),
    )
)


@dataclass(frozen=True, slots=True)
class Move:
    """A client reads an object, or writes what it last read of it, changed."""

    client: int
    name: str
    writes: bool


moves = st.builds(Move, st.integers(0, 2), st.sampled_from(NAMES[:2]), st.booleans())


def updating(case: Case, todo: list[Move]) -> None:
    async def scenario(world: World) -> None:
        current: dict[str, Object] = {}
        held: dict[tuple[int, str], Object] = {}
        for name in NAMES[:2]:
            made = await world.cluster.create(
                CONFIG_MAPS, config(name, {"n": "0"}), namespace=world.namespace
            )
            current[name] = made
            held.update({(client, name): made for client in range(3)})
        for number, move in enumerate(todo):
            key = (move.client, move.name)
            if not move.writes:
                held[key] = await world.cluster.get(CONFIG_MAPS, move.name, namespace=world.namespace)
                assert held[key] == current[move.name]
                continue
            draft = thaw(held[key])
            draft["data"] = {"n": f"{number}"}
            fresh = version(held[key]) == version(current[move.name])
            try:
                current[move.name] = await world.cluster.update(CONFIG_MAPS, draft)
            except Conflict:
                assert not fresh
            else:
                assert fresh
                assert current[move.name]["data"] == {"n": f"{number}"}

    run_on(case, scenario)


(
    test_an_update_succeeds_exactly_when_nobody_wrote_since_it_was_read,
    test_an_update_succeeds_exactly_when_nobody_wrote_since_it_was_read_for_real,
) = both(
    updating,
    todo=st.lists(moves, max_size=30),
)


def competing(case: Case, writers: int, rounds: int) -> None:
    async def scenario(world: World) -> None:
        made = await world.cluster.create(CONFIG_MAPS, config("one"), namespace=world.namespace)
        for _ in range(rounds):

            async def write(writer: int, base: Object = made) -> Object:
                return await world.cluster.update(
                    CONFIG_MAPS, {**thaw(base), "data": {"by": f"{writer} {version(base)}"}}
                )

            results = await asyncio.gather(*map(write, range(writers)), return_exceptions=True)
            won = [result for result in results if not isinstance(result, BaseException)]
            assert len(won) == 1
            assert sum(isinstance(result, Conflict) for result in results) == writers - 1
            made = await world.cluster.get(CONFIG_MAPS, "one", namespace=world.namespace)
            assert made == won[0]

    run_on(case, scenario)


test_of_writers_of_one_version_exactly_one_wins, test_of_writers_of_one_version_exactly_one_wins_for_real = (
    both(
        competing,
        writers=st.integers(2, 6),
        rounds=st.integers(1, 5),
    )
)


def refusing(case: Case, todo: list[Step]) -> None:
    async def scenario(world: World) -> None:
        for step in todo:
            before = await world.cluster.list(PODS, namespace=world.namespace)
            try:
                await step.take(world)
            except (NotFound, Conflict):
                after = await world.cluster.list(PODS, namespace=world.namespace)
                assert state(after.items) == state(before.items)
            except (Rejected, AlreadyExists, TooManyRequests):
                continue

    run_on(case, scenario)


test_refused_requests_leave_no_trace, test_refused_requests_leave_no_trace_for_real = both(
    refusing,
    todo=steps(),
)
