"""Gangs of 4 to 64 pods on a real API server with kwok, for some of which there is room, over kills of the scheduler.

With `KOORDPOLICY_MANY_GANGS=full` there are fifty of them, for thirty of which there is room, over twenty kills: some minutes.
"""

import os
import random
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Final

import pytest

from tests.integration.scheduler.sites import Scheduler, Site
from tests.parts.controllers import FAKE_NODE, kwok
from tests.parts.fixtures import need

_GROUPS: Final = "/apis/scheduling.sigs.k8s.io/v1alpha1/namespaces/default/podgroups"
_LABEL: Final = "pod-group.scheduling.sigs.k8s.io"
_GANGS, _FITTING, _KILLS = (50, 30, 20) if os.environ.get("KOORDPOLICY_MANY_GANGS") == "full" else (10, 6, 3)
_MOST_KILLS: Final = 4 * _KILLS
"""With those that come on top as long as none of them has come between two bindings of one gang."""
_CORES: Final = 32
"""Of each node; a pod takes one, so that free cores are free for any pod."""


@dataclass
class Observer:
    """Looks at all pods at once, and holds against each look what was seen before.

    Bindings are written pod by pod, so a look may fall between two of one gang: such a gang keeps every pod that it has, and the
    room for the others, until whichever process goes on has finished it.
    """

    site: Site
    sizes: dict[str, int] = field(default_factory=dict)
    """The gangs that are there, each with as many pods."""
    begun: dict[str, int] = field(default_factory=dict)
    """The gangs in part at the last look, with how many pods were bound."""
    looks: int = 0
    parts: int = 0
    """Looks that fell between two bindings of a gang."""

    def look(self) -> Counter[str]:
        """How many pods of each gang are bound."""
        pods = self.site.pods()
        there = Counter(name.rpartition("-")[0] for name in pods)
        assert there == Counter(self.sizes), "no pod is lost, and none comes by itself"
        bound = Counter(name.rpartition("-")[0] for name, one in pods.items() if one["spec"].get("nodeName"))
        nodes = Counter(one["spec"]["nodeName"] for one in pods.values() if one["spec"].get("nodeName"))
        assert max(nodes.values(), default=0) <= _CORES, "no node holds more than it has"
        for name, count in self.begun.items():
            assert bound[name] >= count, f"{name} has lost pods"
        in_part = {name: count for name, count in bound.items() if count < self.sizes[name]}
        assert sum(bound.values()) + sum(self.sizes[name] - count for name, count in in_part.items()) <= (
            _CORES * self.nodes
        ), "what is begun can be finished"
        self.begun = in_part
        self.looks += 1
        self.parts += bool(in_part)
        return bound

    @property
    def nodes(self) -> int:
        return len(self.site.do("GET", "/api/v1/nodes")["items"])

    def full(self) -> bool:
        """Whether every gang that is there is whole, and none that is not would fit."""
        bound = self.look()
        free = _CORES * self.nodes - sum(bound.values())
        return not self.begun and all(size > free for name, size in self.sizes.items() if name not in bound)

    def whole(self) -> bool:
        """Whether no gang is in part."""
        self.look()
        return not self.begun


def _submit(site: Site, name: str, size: int) -> None:
    group = {"apiVersion": "scheduling.sigs.k8s.io/v1alpha1", "kind": "PodGroup"}
    site.do("POST", _GROUPS, {**group, "metadata": {"name": name}, "spec": {"minMember": size}})
    for number in range(size):
        site.pod(f"{name}-{number}", "1", metadata={"labels": {_LABEL: name}})


@pytest.mark.soak
def test_gangs_over_kills(pytestconfig: pytest.Config, site: Site) -> None:
    need(pytestconfig, "kwok")
    site.do("DELETE", _GROUPS)
    draw = random.Random(17)
    sizes = [draw.randrange(4, 65) for _ in range(_GANGS)]
    sizes[:2] = [4, 64]
    for number in range(-(-sum(sorted(sizes)[:_FITTING]) // _CORES)):
        site.node(f"n-{number}", {"cpu": str(_CORES), "memory": "256Gi", "pods": "110"})
        site.do("PATCH", f"/api/v1/nodes/n-{number}", {"metadata": {"annotations": FAKE_NODE}})
    seen = Observer(site)
    left = [(f"g{number}", size) for number, size in enumerate(sizes)]
    draw.shuffle(left)
    interrupted = 0
    with kwok(site.access):
        for kill in range(_MOST_KILLS):
            if kill >= _KILLS:
                if interrupted:
                    break
                _replace(seen, f"again{kill}")  # so that there is something to be written
            for name, size in left[kill::_KILLS] if kill < _KILLS else ():
                _submit(site, name, size)
                seen.sizes[name] = size
            # One write after the other, so that a kill comes between two.
            with site.scheduler("s1", "--no-leader-elect", "--in-flight", "1", ready=False) as scheduler:
                before = sum(seen.look().values())
                _until_it_works(seen, scheduler, before)
                if kill == 0:  # the others come at once, while that is written which was just seen to begin
                    time.sleep(draw.random() / 4)
                scheduler.running.kill()
                seen.look()
                interrupted += bool(seen.begun)
        with site.scheduler("s1", "--no-leader-elect"):
            site.eventually(seen.whole, "what was begun is finished")
            site.eventually(seen.full, "whoever fits is in, as a whole")
            bound = seen.look()
            site.eventually(
                lambda: all(
                    one["status"]["phase"] == "Running"
                    for one in site.pods().values()
                    if one["spec"].get("nodeName")
                ),
                "kwok runs them",
            )
            free = _CORES * seen.nodes - sum(bound.values())
            least = min(size for name, size in seen.sizes.items() if name not in bound)
            for name in sorted(bound):
                # Ends of gangs make room, which whole gangs take.
                if free < least:
                    free += seen.sizes[name]
                    for number in range(seen.sizes.pop(name)):
                        site.gone(f"{name}-{number}")
            site.eventually(seen.full, "whoever fits now is in")
            again = seen.look()
            assert set(again) - set(bound), "the room was taken"
    assert interrupted, "a kill that interrupts nothing shows nothing"


def _replace(seen: Observer, name: str) -> None:
    """The largest gang that is bound ends, and another one as large comes."""
    bound = seen.look()
    largest = max(bound, key=bound.__getitem__)
    size = seen.sizes.pop(largest)
    for number in range(size):
        seen.site.gone(f"{largest}-{number}")
    _submit(seen.site, name, size)
    seen.sizes[name] = size


def _until_it_works(seen: Observer, scheduler: Scheduler, before: int) -> None:
    """Wait until a process that has just started binds pods; or is done, there being room for nobody."""
    seen.site.eventually(lambda: sum(seen.look().values()) > before or _idle(seen, scheduler), "it works")


def _idle(seen: Observer, scheduler: Scheduler) -> bool:
    """Whether a scheduler has tried all there is."""
    status = scheduler.status
    return (
        status.get("pending") == len(seen.site.waiting())
        and not status["writing"]
        and not status["waitingForPermits"]
        and not scheduler.metric('koordpolicy_scheduler_pending_pods{queue="active"}')
    )
