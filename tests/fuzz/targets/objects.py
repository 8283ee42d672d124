"""Objects as watches bring them, to a scheduler that goes on deciding."""

import json
from collections.abc import Sequence
from functools import lru_cache

from koordpolicy.cluster.event_handlers import EVERY_RESOURCE, EventHandlers
from koordpolicy.kube import EventType, Resource, WatchEvent
from koordpolicy.kube.unreadable import UnreadableObjects
from koordpolicy.model.unreadable import Unreadable
from koordpolicy.scheduler import Scheduler
from tests.fuzz.mutations import mutate_json
from tests.fuzz.target import Defect, Target
from tests.fuzz.targets.policies import NOW, graph_of_the_pack
from tests.hostile.objects import REAL, node, pod

_RESOURCES = {str(resource): resource for resource in EVERY_RESOURCE}
_WORLDS: list["_World"] = []
_KEPT = 400
"""Inputs after which a world is made anew."""


class _World:
    def __init__(self) -> None:
        self.scheduler = Scheduler(graph_of_the_pack(), lambda: NOW)
        self.inputs = 0
        self.broken: list[Unreadable] = []
        self.handlers = EventHandlers(self.scheduler, unreadable=UnreadableObjects(self._noted))
        for name, obj in REAL.items():
            if name in _RESOURCES:
                self.hear(name, json.loads(json.dumps(obj)))
        self.hear("nodes", node("n2"))

    def _noted(self, _resource: Resource, _obj: object, why: Unreadable) -> None:
        if why.cause is not None:  # not what a reader refuses, but an error that nobody foresaw
            self.broken.append(why)

    def hear(self, resource: str, obj: object) -> None:
        self.inputs += 1
        if isinstance(obj, dict) and isinstance(obj.get("metadata"), dict):
            obj["metadata"]["resourceVersion"] = str(self.inputs)
        self.handlers.mirrors[_RESOURCES[resource]].apply(WatchEvent(EventType.MODIFIED, obj))  # type: ignore[arg-type]


def _seeds() -> Sequence[bytes]:
    waiting = pod("waits", node="")
    waiting["status"] = {"phase": "Pending"}
    objects = [*((name, obj) for name, obj in REAL.items() if name in _RESOURCES), ("pods", waiting)]
    return tuple(json.dumps({"resource": name, "object": obj}).encode() for name, obj in objects)


@lru_cache(maxsize=1)
def _plain() -> str:
    plain = pod("plain", node="")
    plain["metadata"]["annotations"] = {}
    plain["status"] = {"phase": "Pending"}
    return json.dumps(plain)


def _run(data: bytes) -> None:
    told = json.loads(data)
    resource = told.get("resource") if isinstance(told, dict) else None
    if not isinstance(resource, str) or resource not in _RESOURCES:
        return
    if not _WORLDS or _WORLDS[0].inputs > _KEPT:
        _WORLDS[:] = [_World()]
    world = _WORLDS[0]
    try:
        world.hear(resource, told.get("object"))
        world.hear("pods", json.loads(_plain()))
        _decide(world)
    except BaseException:
        _WORLDS.clear()
        raise


def _decide(world: _World) -> None:
    for _ in range(4):
        if (decision := world.scheduler.schedule_one()) is None:
            break
        if decision.problem and "report" in decision.problem:
            raise Defect(decision.problem)
    if world.broken:
        raise Defect(world.broken[0].reason) from world.broken[0].cause


OBJECTS = Target("objects", "objects as watches bring them", _seeds, mutate_json, _run)
