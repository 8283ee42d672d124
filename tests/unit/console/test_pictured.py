"""A cluster at rest, and one that changes between two looks."""

from functools import cache
from typing import Any

from koordpolicy.console.frames import COLUMNS, NOBODY
from koordpolicy.console.worlds.pictured import PicturedWorld
from koordpolicy.graph import Layer, RuleGraph
from koordpolicy.kube.snapshot import Snapshot
from koordpolicy.runtime.policies.pack_cache import pack_remembering


@cache
def graph() -> RuleGraph:
    text = "apiVersion: koordpolicy.io/v1alpha1\nkind: PolicyBundle\nmetadata: {name: a}\nspec: {extends: [koordinator]}\n"
    made = pack_remembering().compile(Layer("bundle", {"koordpolicy.yaml": text})).graph
    assert made is not None
    return made


def node(name: str) -> dict[str, Any]:
    amounts = {"cpu": "10", "memory": "10Gi"}
    return {"metadata": {"name": name}, "status": {"capacity": amounts, "allocatable": amounts}}


def pod(name: str, on: str, qos: str, cpu: str) -> dict[str, Any]:
    requests = {"requests": {"cpu": cpu}}
    return {
        "metadata": {"name": name, "namespace": "default", "labels": {"koordinator.sh/qosClass": qos}},
        "spec": {"nodeName": on, "containers": [{"name": "main", "resources": requests}]},
    }


def metric(name: str, cpu: str, pods: dict[str, str]) -> dict[str, Any]:
    told = [
        {"namespace": "default", "name": one, "podUsage": {"resources": {"cpu": used}}}
        for one, used in pods.items()
    ]
    usage = {"resources": {"cpu": cpu, "memory": "5Gi"}}
    return {
        "metadata": {"name": name},
        "status": {
            "updateTime": "2026-01-01T00:00:00Z",
            "nodeMetric": {"nodeUsage": usage},
            "podsMetric": told,
        },
    }


def picture(pods: list[dict[str, Any]], nodes: tuple[str, ...] = ("a", "b")) -> Snapshot:
    metrics = [metric("a", "6", {"web": "2", "job": "3"})]
    return Snapshot(
        10**9,
        {"nodes": [node(name) for name in nodes], "pods": pods, "nodemetrics.slo.koordinator.sh": metrics},
    )


def row(world: PicturedWorld, frame: int, at: int) -> dict[str, int]:
    rows = world.frames.kept[frame].rows
    return dict(zip(COLUMNS, rows[at * len(COLUMNS) : (at + 1) * len(COLUMNS)], strict=True))


def test_what_a_picture_shows() -> None:
    world = PicturedWorld(
        graph(),
        picture([pod("web", "a", "LS", "4"), pod("job", "a", "BE", "1"), pod("late", "", "LS", "1")]),
        "t",
    )
    told = row(world, 0, 0)
    assert (told["used"], told["bestEffort"], told["services"]) == (120, 60, 60)
    assert (told["memory"], told["requested"], told["pods"]) == (100, 100, 2)
    assert world.names().classes[told["class"]] == "BE"
    other = row(world, 0, 1)
    assert (other["used"], other["class"], other["pods"]) == (0, NOBODY, 0)
    sums = world.frames.kept[0].sums
    assert (sums["used"], sums["running"], sums["pending"]) == (30, 2, 1)


def test_codes_of_earlier_frames_keep_their_meaning() -> None:
    world = PicturedWorld(graph(), picture([pod("web", "a", "LS", "4")]), "t")
    world.show(world.read(picture([pod("job", "a", "BE", "1"), pod("web", "b", "LS", "4")])))
    names = world.names().classes
    assert names[row(world, 0, 0)["class"]] == "LS"
    assert names[row(world, 1, 0)["class"]] == "BE"
    assert names[row(world, 1, 1)["class"]] == "LS"


def test_other_nodes_begin_anew() -> None:
    world = PicturedWorld(graph(), picture([]), "t")
    before = world.frames.generation
    world.show(world.read(picture([], ("a", "c"))))
    assert [one.name for one in world.nodes()] == ["a", "c"]
    assert len(world.frames.kept) == 1
    assert world.frames.generation != before
