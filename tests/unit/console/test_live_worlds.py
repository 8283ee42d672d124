"""A live cluster between two looks: who came, who is gone and why, by what agents decide."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from koordpolicy.console.frames import COLUMNS
from koordpolicy.console.worlds import live
from koordpolicy.console.worlds.live import LiveWorld
from koordpolicy.console.worlds.pictured import PicturedWorld
from koordpolicy.console.worlds.world import PodBackground
from koordpolicy.kube.errors import Unreachable
from koordpolicy.kube.snapshot import Snapshot
from koordpolicy.model.protocol import RUNS_ANNOTATION
from tests.unit.console.test_pictured import graph, metric, node, pod

SECOND = 10**9
BEGAN = "1970-01-01T00:00:01Z"


async def never() -> Snapshot:
    raise AssertionError


async def nothing(pod: str, picture: Snapshot) -> PodBackground:
    raise AssertionError


def look(at: int, pods: list[dict[str, Any]], jobs: tuple[str, ...] = ()) -> Snapshot:
    migrations = [
        {
            "metadata": {"name": name, "uid": name},
            "spec": {"podRef": {"namespace": "default", "name": name}},
        }
        for name in jobs
    ]
    objects = {
        "nodes": [node("a"), node("b")],
        "pods": pods,
        "podmigrationjobs.scheduling.koordinator.sh": migrations,
    }
    return Snapshot(at * SECOND, objects)


def since(one: dict[str, Any], *, reason: str = "", phase: str = "Running") -> dict[str, Any]:
    conditions = [{"type": "DisruptionTarget", "status": "True", "reason": reason}] if reason else []
    status = {"startTime": BEGAN, "phase": phase, "conditions": conditions}
    return {**one, "metadata": {**one["metadata"], "creationTimestamp": BEGAN}, "status": status}


def test_who_is_gone_is_remembered_with_how_it_ended() -> None:
    evicting = {
        "seized": "PreemptionByScheduler",
        "told": "EvictionByEvictionAPI",
        "moved": "EvictionByEvictionAPI",
    }
    pods = [since(pod(name, "a", "BE", "1"), reason=why) for name, why in evicting.items()]
    pods += [since(pod(name, "a", "BE", "1")) for name in ("done", "broken", "away", "stays")]
    pods.append(since(pod("late", "", "BE", "1"), phase="Pending"))
    world = LiveWorld(graph(), look(5, pods, ("moved",)), "t", never, 1.0, nothing)
    assert all(span.at(5 * SECOND) and not span.at(0) for span in world.spans())
    after = [since(pod("done", "a", "BE", "1"), phase="Succeeded")]
    after += [since(pod("broken", "a", "BE", "1"), phase="Failed"), since(pod("stays", "a", "BE", "1"))]
    after.append(since(pod("late", "b", "BE", "1")))
    world.show(world.read(look(9, after)))
    ended = {span.pod.removeprefix("default/"): span for span in world.spans() if span.end is not None}
    assert {name: span.outcome for name, span in ended.items()} == {
        "seized": "preempted",
        "told": "displaced",
        "moved": "moved",
        "done": "finished",
        "broken": "failed",
        "away": "gone",
        "late": "",  # it only waited, and has a node now
    }
    assert {span.end for span in ended.values()} == {9 * SECOND}
    now = {span.pod: span.node for span in world.spans() if span.at(9 * SECOND)}
    assert now == {"default/stays": "a", "default/late": "b"}
    then = {span.pod for span in world.spans() if span.at(5 * SECOND) and span.node}
    assert "default/away" in then


def test_a_pod_that_says_late_since_when_it_runs_is_the_same() -> None:
    world = LiveWorld(graph(), look(5, [pod("web", "a", "LS", "1")]), "t", never, 1.0, nothing)
    world.show(world.read(look(6, [since(pod("web", "a", "LS", "1"))])))
    assert [(span.start, span.end) for span in world.spans()] == [(SECOND, None)]
    again = since(pod("web", "a", "LS", "1"))
    again["status"]["startTime"] = "1970-01-01T00:00:07Z"  # another pod of that name, as of a StatefulSet
    world.show(world.read(look(8, [again])))
    assert [(span.start, span.end, span.outcome) for span in world.spans()] == [
        (SECOND, 8 * SECOND, "gone"),
        (7 * SECOND, None, ""),
    ]


def test_by_which_revision_an_agent_decides_is_told_by_its_report() -> None:
    def reported(name: str, **runs: str) -> dict[str, Any]:
        told = metric(name, "1", {})
        told["metadata"]["annotations"] = {RUNS_ANNOTATION: json.dumps(runs)}
        return told

    metrics = [
        reported("a", revision="old"),
        reported("b", revision="old", candidate="new", stage="Canary"),
        reported("c", revision="old", candidate="new", stage="Shadow"),
    ]
    nodes = [node(name) for name in "abcd"]
    world = PicturedWorld(
        graph(), Snapshot(SECOND, {"nodes": nodes, "nodemetrics.slo.koordinator.sh": metrics}), "t"
    )
    at = COLUMNS.index("revision")
    codes = world.frames.kept[0].rows[at :: len(COLUMNS)]
    assert [world.names().revisions[code] for code in codes] == ["old", "new", "old", ""]


async def hung() -> Snapshot:
    await asyncio.Event().wait()
    raise AssertionError


async def refused() -> Snapshot:
    raise Unreachable("nobody listens")


async def told_while(world: LiveWorld, until: Callable[[], bool]) -> None:
    """Let the world be followed until something holds."""
    following = asyncio.create_task(world.follow())
    try:
        for _ in range(1000):
            if until():
                return
            await asyncio.sleep(0.005)
        pytest.fail("it never came to that")
    finally:
        following.cancel()


def test_what_is_old_is_never_shown_as_live_though_the_cluster_refuses_nothing() -> None:
    now = [100.0]
    world = LiveWorld(graph(), look(5, []), "t", hung, 30.0, nothing, lambda: now[0])
    now[0] += 35
    assert (world.clock()["asOf"], world.clock()["failure"]) == (None, "")
    now[0] += 10
    assert (world.clock()["asOf"], world.clock()["failure"]) == (5.0, "the cluster does not answer")
    world.show(world.read(look(50, [])))
    assert (world.clock()["asOf"], world.clock()["failure"]) == (None, "")


def test_a_large_cluster_may_take_its_usual_time() -> None:
    now = [0.0]

    async def slowly() -> Snapshot:
        if now[0]:
            return await hung()
        now[0] += 60
        return look(60, [])

    world = LiveWorld(graph(), look(5, []), "t", slowly, 0.001, nothing, lambda: now[0])
    asyncio.run(told_while(world, lambda: len(world.frames.kept) > 1))
    now[0] += 100
    assert world.clock()["asOf"] is None
    now[0] += 100
    assert world.clock()["asOf"] is not None


def test_trouble_is_told_with_the_time_of_what_is_shown_and_ends_by_itself() -> None:
    takes: list[Callable[[], Awaitable[Snapshot]]] = [refused]

    async def take() -> Snapshot:
        return await takes[0]()

    async def back() -> Snapshot:
        return look(9, [])

    async def whole() -> None:
        world = LiveWorld(graph(), look(5, []), "t", take, 0.001, nothing)
        await told_while(world, lambda: world.clock()["asOf"] == 5.0)
        assert world.clock()["failure"] == "the cluster cannot be read: nobody listens"
        takes[0] = back
        await told_while(world, lambda: world.clock()["asOf"] is None)
        assert world.clock()["failure"] == ""

    asyncio.run(whole())


def test_a_look_that_hangs_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "_LONGEST_LOOK", 0.01)

    async def whole() -> None:
        world = LiveWorld(graph(), look(5, []), "t", hung, 0.001, nothing)
        await told_while(world, lambda: bool(world.trouble))
        assert "has not answered within" in world.clock()["failure"]

    asyncio.run(whole())
