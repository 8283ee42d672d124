"""What kube-scheduler, or anybody who reaches the port, sends to the extender."""

import asyncio
import json
from collections.abc import Sequence
from functools import lru_cache
from random import Random

from koordpolicy.kube.memory import MemoryCluster, Store
from koordpolicy.model.node import read_node
from koordpolicy.runtime.http import Request
from koordpolicy.runtime.metrics import Metrics
from koordpolicy.scheduler import Scheduler
from koordpolicy.scheduler.extender.server import ExtenderServer
from tests.fuzz.mutations import mutate_bytes, mutate_json
from tests.fuzz.target import Defect, Target
from tests.fuzz.targets.policies import NOW, graph_of_the_pack
from tests.hostile.objects import node, pod

_VERBS = ("filter", "prioritize", "preempt", "bind")
_LOOPS: list[asyncio.AbstractEventLoop] = []


@lru_cache(maxsize=1)
def extender_server() -> ExtenderServer:
    scheduler = Scheduler(graph_of_the_pack(), lambda: NOW)
    for name in ("n1", "n2"):
        scheduler.set_node(read_node(node(name)))
    server = ExtenderServer(
        scheduler, lambda namespace, name: None, MemoryCluster(Store(lambda: NOW / 10**9)), Metrics("fuzz")
    )
    server.ready = True
    return server


def _seeds() -> Sequence[bytes]:
    asked = pod("asks", node="")
    victims = {"n1": {"pods": [{"uid": "uid-p1"}], "numPDBViolations": 0}}
    bodies = (
        ("filter", {"pod": asked, "nodenames": ["n1", "n2"]}),
        ("filter", {"pod": asked, "nodes": {"items": [node("n1")]}}),
        ("prioritize", {"pod": asked, "nodenames": ["n1", "n2"]}),
        ("preempt", {"pod": asked, "nodeNameToMetaVictims": victims}),
        ("bind", {"podName": "asks", "podNamespace": "team", "podUID": "u", "node": "n1"}),
    )
    return tuple(json.dumps([verb, body]).encode() for verb, body in bodies)


def _mutate(chance: Random, seeds: Sequence[bytes]) -> bytes:
    return (mutate_json if chance.random() < 0.8 else mutate_bytes)(chance, seeds)


def _run(data: bytes) -> None:
    """The verb stands first where the input is JSON as it should be; else every verb has it as its body."""
    verbs: Sequence[str] = _VERBS
    body = data
    try:
        told = json.loads(data)
    except (ValueError, RecursionError):
        pass
    else:
        if isinstance(told, list) and len(told) == 2 and told[0] in _VERBS:
            verbs, body = (told[0],), json.dumps(told[1]).encode()
    if not _LOOPS:
        _LOOPS.append(asyncio.new_event_loop())
    for route in extender_server().routes():
        if route.path.strip("/") in verbs:
            answer = _LOOPS[0].run_until_complete(route.answer(Request("POST", route.path, {}, {}, body)))
            if answer.status == 500 and b"report" in answer.body:
                raise Defect(answer.body.decode("utf-8", "replace"))


EXTENDER = Target("extender", "bodies of extender calls", _seeds, _mutate, _run)
