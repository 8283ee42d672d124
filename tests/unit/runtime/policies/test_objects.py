"""Policy objects of a cluster as a source, and what is written into their status."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from koordpolicy.kube import Forbidden, NotFound, Resource, Unreachable
from koordpolicy.kube.backoff import Backoff
from koordpolicy.kube.frozen import thaw
from koordpolicy.kube.memory import MemoryCluster, Store
from koordpolicy.kube.port import MergePatch
from koordpolicy.kube.resources import POLICIES
from koordpolicy.runtime.metrics import Metrics
from koordpolicy.runtime.policies.live import LivePolicies, Options
from koordpolicy.runtime.policies.objects import KNOWN, ClusterSource, Settling
from koordpolicy.runtime.reports.object_status import MANAGER, StatusWriter
from koordpolicy.source.revision import Revision, SourceTrouble
from tests.unit.runtime.scenes import Ticks, running, target, until

BY_KIND = {resource.kind: resource for resource in POLICIES}
API = "koordpolicy.io/v1alpha1"
BACKOFF = Backoff(lambda: 0.0, initial=0.01, longest=0.05)
QUICK = Settling(quiet=0.02, longest=0.2)


class World:
    """A cluster in memory that may refuse requests: `refuse` maps kinds to what they raise."""

    def __init__(self) -> None:
        self.store = Store(lambda: 1_800_000_000.0)
        self.refuse: dict[str, Exception] = {}
        self.cluster = MemoryCluster(self.store, before_request=self._before)

    async def _before(self, verb: str, resource: Resource) -> None:
        error = self.refuse.get(f"{verb} {resource.kind}") or self.refuse.get(resource.kind)
        if error is not None:
            raise error

    def put(self, kind: str, name: str, spec: Any, **metadata: Any) -> dict[str, Any]:
        """Create an object, or change its spec."""
        resource = BY_KIND[kind]
        obj = {"apiVersion": API, "kind": kind, "metadata": {"name": name, **metadata}, "spec": spec}
        try:
            known = thaw(self.store.get(resource, name))
        except NotFound:
            return thaw(self.store.create(resource, obj))
        known["spec"] = spec
        return thaw(self.store.update(resource, known))

    def drop(self, kind: str, name: str) -> None:
        self.store.delete(BY_KIND[kind], name)

    def conditions(self, kind: str, name: str) -> dict[str, tuple[str, str]]:
        """Status and reason of each condition."""
        status = self.status(kind, name)
        return {one["type"]: (one["status"], one["reason"]) for one in status.get("conditions", ())}

    def status(self, kind: str, name: str) -> dict[str, Any]:
        return thaw(self.store.get(BY_KIND[kind], name)).get("status") or {}

    def source(self, resources: Iterable[Resource] = KNOWN) -> ClusterSource:
        return ClusterSource(self.cluster, BACKOFF, settling=QUICK, resources=resources)


class Told:
    """What a source gives, as it comes."""

    def __init__(self) -> None:
        self.items: list[Revision | SourceTrouble] = []

    async def follow(self, source: ClusterSource) -> None:
        async for item in source.revisions():
            self.items.append(item)

    @property
    def last(self) -> Revision:
        item = self.items[-1]
        assert isinstance(item, Revision)
        return item


def suppress_spec(millicores: int) -> dict[str, Any]:
    return {"target": {"cel": f"millicores({millicores})"}}


def test_objects_become_files_by_kind_and_name() -> None:
    async def scene() -> None:
        world, told = World(), Told()
        world.put("PolicyBundle", "fleet", {"extends": []})
        world.put("CPUSuppress", "all", suppress_spec(1))
        async with running(told.follow(world.source())):
            await until(lambda: told.items)
            assert sorted(told.last.files) == ["CPUSuppress/all.yaml", "PolicyBundle/fleet.yaml"]
            assert told.last.files["CPUSuppress/all.yaml"] == (
                f"apiVersion: {API}\nkind: CPUSuppress\nmetadata:\n  name: all\n"
                'spec:\n  target:\n    cel: "millicores(1)"\n'
            )
            world.put("CPUSuppress", "all", suppress_spec(2))
            await until(lambda: len(told.items) == 2)
            world.drop("CPUSuppress", "all")
            await until(lambda: len(told.items) == 3)
            assert sorted(told.last.files) == ["PolicyBundle/fleet.yaml"]

    asyncio.run(scene())


def test_a_burst_is_one_revision_and_a_status_is_none() -> None:
    async def scene() -> None:
        world, told = World(), Told()
        world.put("PolicyBundle", "fleet", {"extends": []})
        settling = Settling(quiet=0.5, longest=60.0)  # a busy machine pauses in a burst, too
        source = ClusterSource(world.cluster, BACKOFF, settling=settling)
        async with running(told.follow(source)):
            await until(lambda: told.items)
            for number in range(50):
                world.put("CPUSuppress", f"s{number}", suppress_spec(number))
                await asyncio.sleep(0.001)
            await until(lambda: len(told.last.files) == 51)
            assert len(told.items) == 2
            before = len(told.items)
            world.store.patch(
                BY_KIND["CPUSuppress"], "s1", MergePatch({"status": {"revision": "x"}}), subresource="status"
            )
            await asyncio.sleep(0.7)
            assert len(told.items) == before

    asyncio.run(scene())


@pytest.mark.parametrize(
    ("said", "commit"),
    [
        (["a" * 40, "a" * 40], "a" * 40),
        (["main@sha1:" + "a" * 40, "a" * 40], "a" * 40),
        (["a" * 40, "b" * 40], ""),
        (["a" * 40, None], ""),
        (["release 7", "release 7"], ""),
    ],
)
def test_the_commit_is_what_all_objects_agree_on(said: list[str | None], commit: str) -> None:
    async def scene() -> None:
        world, told = World(), Told()
        for number, one in enumerate(said):
            annotations = {"koordpolicy.io/revision": one} if one else {}
            world.put("Library", f"l{number}", {}, annotations=annotations)
        async with running(told.follow(world.source())):
            await until(lambda: told.items)
            assert told.last.commit == commit
            assert "koordpolicy.io/revision" not in told.last.files["Library/l0.yaml"]

    asyncio.run(scene())


def test_no_objects_are_a_trouble_and_so_is_a_cluster_that_does_not_answer() -> None:
    async def scene() -> None:
        world, told = World(), Told()
        world.refuse = {"Library": Unreachable("connection refused")}
        async with running(told.follow(world.source())):
            await until(lambda: told.items)
            assert told.items == [SourceTrouble("Unreachable", "connection refused")]
            world.refuse = {}
            await until(lambda: len(told.items) == 2)
            assert told.items[1] == SourceTrouble("NoPolicies", "there are no policy objects in the cluster")
            world.put("Library", "shared", {})
            await until(lambda: len(told.items) == 3)
            assert list(told.last.files) == ["Library/shared.yaml"]

    asyncio.run(scene())


def test_a_kind_without_a_definition_counts_as_empty_until_it_has_one() -> None:
    async def scene() -> None:
        world, told = World(), Told()
        world.put("Library", "shared", {})
        world.put("QoSClass", "ls", {})
        world.refuse = {"QoSClass": NotFound("the server could not find the requested resource")}
        async with running(told.follow(world.source())):
            await until(lambda: told.items)
            assert list(told.last.files) == ["Library/shared.yaml"]
            world.refuse = {}
            await until(lambda: len(told.last.files) == 2)
            # The definition goes, and its objects with it.
            world.refuse = {"QoSClass": NotFound("the server could not find the requested resource")}
            world.store.disconnect()
            await until(lambda: len(told.last.files) == 1)

    asyncio.run(scene())


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 3)), max_size=12))
def test_the_last_revision_is_what_the_cluster_holds(changes: list[tuple[str, int]]) -> None:
    async def scene() -> None:
        world, told = World(), Told()
        world.put("Library", "always", {})
        source = ClusterSource(world.cluster, BACKOFF, settling=Settling(0.0, 0.0))
        async with running(told.follow(source)):
            for name, number in changes:
                if number:
                    world.put("CPUSuppress", name, suppress_spec(number))
                else:
                    with suppress(NotFound):
                        world.drop("CPUSuppress", name)
                await asyncio.sleep(0)
            left = dict(changes)
            held = {f"CPUSuppress/{name}.yaml": number for name, number in left.items() if number}

            def right() -> bool:
                files = told.last.files if told.items else {}
                return files.keys() == {"Library/always.yaml", *held} and all(
                    f"millicores({number})" in files[path] for path, number in held.items()
                )

            await until(right)

    asyncio.run(scene())


# --- status


class Scene:
    """Live policies from objects, and the writer of their status."""

    def __init__(self, grace: float = 0.0) -> None:
        self.world = World()
        self.world.put("PolicyBundle", "fleet", {"extends": []})
        self.metrics = Metrics("manager")
        self.source = self.world.source()
        self.now = Ticks()
        options = Options(packs=lambda name: None, now=self.now)
        self.live = LivePolicies(self.source, self.metrics, options=options)
        self.writer = StatusWriter(
            self.world.cluster, self.source, self.live, self.metrics, BACKOFF, now=self.now, grace=grace
        )

    @asynccontextmanager
    async def played(self) -> AsyncIterator["Scene"]:
        async with running(self.live.run()), running(self.writer.run()):
            yield self

    def ready(self, kind: str, name: str) -> str:
        return self.world.conditions(kind, name).get("Ready", ("", ""))[1]


READY = {"Ready": ("True", "Succeeded")}
STALLED = {"Ready": ("False", "CompileFailed"), "Stalled": ("True", "CompileFailed")}
BLOCKED = {"Ready": ("False", "Blocked"), "Reconciling": ("True", "Blocked")}


def test_what_compiles_becomes_ready() -> None:
    async def play() -> None:
        scene = Scene()
        world = scene.world
        created = world.put("CPUSuppress", "all", suppress_spec(1))
        async with scene.played():
            await until(lambda: world.conditions("CPUSuppress", "all") == READY)
            status = world.status("CPUSuppress", "all")
            assert status["observedGeneration"] == created["metadata"]["generation"] == 1
            assert scene.live.active is not None
            assert status["revision"] == scene.live.active.revision.name
            assert "diagnostics" not in status
            (condition,) = status["conditions"]
            assert condition["observedGeneration"] == 1
            since = condition["lastTransitionTime"]
            world.put("CPUSuppress", "all", suppress_spec(2))
            await until(lambda: world.status("CPUSuppress", "all")["observedGeneration"] == 2)
            await until(lambda: world.conditions("CPUSuppress", "all") == READY)
            assert world.status("CPUSuppress", "all")["conditions"][0]["lastTransitionTime"] >= since
            stored = world.store.get(BY_KIND["CPUSuppress"], "all")
            assert stored["spec"] == suppress_spec(2)
            managers = {
                (entry["manager"], entry.get("subresource")) for entry in stored["metadata"]["managedFields"]
            }
            assert (MANAGER, "status") in managers

    asyncio.run(play())


def test_it_is_reconciling_until_its_revision_decides() -> None:
    async def play() -> None:
        scene = Scene()
        world = scene.world
        world.put("CPUSuppress", "all", suppress_spec(1))
        async with running(scene.writer.run()), running(Told().follow(scene.source)):
            await until(lambda: world.conditions("CPUSuppress", "all"))
            assert world.conditions("CPUSuppress", "all") == {
                "Ready": ("Unknown", "Progressing"),
                "Reconciling": ("True", "Progressing"),
            }

    asyncio.run(play())


def test_the_broken_one_is_stalled_the_unchanged_stay_ready_and_the_changed_wait() -> None:
    async def play() -> None:
        scene = Scene()
        world = scene.world
        for name in ("kept", "changed"):
            world.put(
                "CPUSuppress", name, {"match": {"nodes": {"matchLabels": {"p": name}}}, **suppress_spec(1)}
            )
        async with scene.played():
            await until(lambda: scene.ready("CPUSuppress", "changed") == "Succeeded")
            spec = {"match": {"nodes": {"matchLabels": {"p": "changed"}}}, **suppress_spec(2)}
            world.put("CPUSuppress", "changed", spec)
            broken = {
                "match": {"nodes": {"matchLabels": {"p": "broken"}}},
                "target": {"cel": "node.capacity.nonsense"},
            }
            world.put("CPUSuppress", "broken", broken)
            await until(lambda: world.conditions("CPUSuppress", "broken") == STALLED)
            await until(lambda: world.conditions("CPUSuppress", "changed") == BLOCKED)
            assert world.conditions("CPUSuppress", "kept") == READY
            assert world.conditions("PolicyBundle", "fleet") == READY
            (finding,) = world.status("CPUSuppress", "broken")["diagnostics"]
            assert (finding["severity"], finding["code"]) == ("error", "KP203")
            assert finding["path"] == "CPUSuppress/broken.yaml"
            assert finding["message"].startswith("spec.target.cel: ")
            lines = scene.source.texts()["CPUSuppress/broken.yaml"].split("\n")
            assert "nonsense" in lines[finding["line"] - 1]
            ready = world.status("CPUSuppress", "broken")["conditions"][0]
            assert ready["message"].startswith("KP203 spec.target.cel: ")
            waiting = world.status("CPUSuppress", "changed")["conditions"][0]
            assert "CPUSuppress/broken.yaml" in waiting["message"]
            # The fix heals all.
            world.put("CPUSuppress", "broken", {**broken, "target": 7})
            for name in ("kept", "changed", "broken"):
                await until(lambda name=name: world.conditions("CPUSuppress", name) == READY)  # type: ignore[misc]
            assert "diagnostics" not in world.status("CPUSuppress", "broken")

    asyncio.run(play())


def test_a_deletion_that_breaks_others_is_shown_on_those_it_breaks() -> None:
    async def play() -> None:
        scene = Scene()
        world = scene.world
        world.put("Library", "shared", {"constants": {"base": {"type": "cpu", "value": "2"}}})
        world.put("CPUSuppress", "all", {"target": {"cel": "constants.base"}})
        async with scene.played():
            await until(lambda: world.conditions("CPUSuppress", "all") == READY)
            assert target(scene.live) == 2000
            world.drop("Library", "shared")
            await until(lambda: world.conditions("CPUSuppress", "all") == STALLED)
            assert world.conditions("PolicyBundle", "fleet") == READY
            assert target(scene.live) == 2000

    asyncio.run(play())


def test_what_breaks_halfway_through_an_apply_is_blamed_on_nobody() -> None:
    async def play() -> None:
        scene = Scene(grace=10_000.0)  # the scene's clock runs a second a look
        world = scene.world
        world.put("CPUSuppress", "all", {"target": {"cel": "constants.base"}})
        async with scene.played():
            await until(lambda: scene.live.rejected)
            await until(lambda: scene.ready("CPUSuppress", "all") == "Progressing")
            world.put("Library", "shared", {"constants": {"base": {"type": "cpu", "value": "2"}}})
            await until(lambda: world.conditions("CPUSuppress", "all") == READY)

    asyncio.run(play())


def test_a_status_that_cannot_be_written_is_tried_again() -> None:
    async def play() -> None:
        scene = Scene()
        world = scene.world
        world.put("CPUSuppress", "all", suppress_spec(1))
        world.refuse = {"patch CPUSuppress": Forbidden("not yours")}
        async with scene.played():
            await until(lambda: world.conditions("PolicyBundle", "fleet") == READY)
            assert world.conditions("CPUSuppress", "all") == {}
            world.refuse = {}
            await until(lambda: world.conditions("CPUSuppress", "all") == READY)
        failed = scene.metrics.value(
            "koordpolicy_policy_status_writes_total", kind="CPUSuppress", result="failed"
        )
        assert failed

    asyncio.run(play())


def test_a_status_that_is_right_is_not_written_again() -> None:
    async def play() -> None:
        scene = Scene()
        world = scene.world
        world.put("CPUSuppress", "all", suppress_spec(1))
        async with scene.played():
            await until(lambda: world.conditions("CPUSuppress", "all") == READY)
            await until(lambda: world.conditions("PolicyBundle", "fleet") == READY)
            assert await scene.writer.write() == 0
            version = world.store.get(BY_KIND["CPUSuppress"], "all")["metadata"]["resourceVersion"]
            world.put("CPUSuppress", "pool", {"match": {"nodes": {"matchLabels": {"a": "b"}}}, "target": 3})
            await until(lambda: world.conditions("CPUSuppress", "pool") == READY)
            assert world.store.get(BY_KIND["CPUSuppress"], "all")["metadata"]["resourceVersion"] == version

    asyncio.run(play())


class Behind:
    """A source whose watch has not brought the last changes."""

    def __init__(self, source: ClusterSource, objects: dict[str, Any]) -> None:
        self.texts = source.texts
        self.objects = objects


def test_a_status_is_written_once_though_the_watch_lags_behind() -> None:
    async def play() -> None:
        scene = Scene()
        world = scene.world
        created = world.put("CPUSuppress", "all", suppress_spec(1))
        async with scene.played():
            await until(lambda: world.conditions("CPUSuppress", "all") == READY)
            [path] = [one for one in scene.source.objects if one.startswith("CPUSuppress/")]
            behind: Any = Behind(scene.source, {path: created})
            writer = StatusWriter(
                world.cluster, behind, scene.live, scene.metrics, BACKOFF, now=scene.now, grace=0
            )
            before = world.store.get(BY_KIND["CPUSuppress"], "all")
            assert await writer.write() == 1, "to be looked at again"
            assert world.store.get(BY_KIND["CPUSuppress"], "all") == before

    asyncio.run(play())
