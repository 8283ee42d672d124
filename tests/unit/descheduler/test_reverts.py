"""Another revision while a round goes on: nobody goes any more by the one before, unless both say the same."""

import asyncio
import logging
from dataclasses import dataclass
from typing import Any

import pytest

from koordpolicy.algorithms.work import Work, finished
from koordpolicy.descheduler.process import Descheduler, DeschedulerSettings
from koordpolicy.descheduler.under_way import RoundSuperseded, StandingGraph
from koordpolicy.graph import RuleGraph
from koordpolicy.kube import resources
from koordpolicy.kube.memory import MemoryCluster, Store
from koordpolicy.kube.resources import Resource
from koordpolicy.runtime.process import Tasks
from koordpolicy.scheduler.relocation import SchedulerRelocations
from tests.unit.descheduler.clusters import PROFILE, node, pod, policies
from tests.unit.runtime.components import component_of
from tests.unit.runtime.scenes import until
from tests.unit.scheduler.test_revisions import Revisions, suppress
from tests.vectors.policies import document

ALL: dict[str, Any] = {"name": "all", "candidates": True, "relocating": {"better": False}}
FAST: dict[str, Any] = {"migrate": False, "interval": "600s", "pace": {"perSecond": 1000, "burst": 1000}}
NAMES = tuple("abcdef")


@dataclass
class Live:
    """The policies that decide at the moment."""

    graph: RuleGraph
    active: Any = None
    candidate: Any = None


def _run(live: Live, second: RuleGraph, at: int, patience: float = 20.0) -> tuple[list[str], dict[str, Any]]:
    """Let the descheduler lead; before eviction number `at` the second graph becomes active. Who went, and `/statusz` at the end."""
    store = Store(lambda: 0.0)
    gone: list[str] = []
    seen: list[dict[str, Any]] = []

    async def scene() -> dict[str, Any]:
        async def before(method: str, resource: Resource) -> None:
            if method == "evict":
                gone.append(method)
                seen.append(descheduler.status()["round"])
                if len(gone) == at:
                    live.graph = second

        for name in ("full", "empty"):
            store.create(resources.NODES, node(name))
        for name in NAMES:
            store.create(resources.PODS, pod(name, "full"), namespace="default")
        component = component_of("descheduler", MemoryCluster(store, before_request=before), live)
        descheduler = Descheduler(component, DeschedulerSettings(SchedulerRelocations))
        async with asyncio.timeout(patience), Tasks() as tasks:
            running = tasks.start("it", descheduler.run(tasks))
            await until(lambda: bool(descheduler.status()["rounds"]), patience)
            component.process.stop("the test is over")
            await running
        return descheduler.status()

    status = asyncio.run(scene())
    assert all(one["since"] and one["revision"] for one in seen)
    assert [one["evictions"] for one in seen] == list(range(len(seen)))
    return gone, status


def test_a_revert_ends_a_round_that_lets_pods_go(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    bad, good = policies(ALL, **FAST), policies(**FAST)
    gone, status = _run(Live(bad), good, 2)
    assert len(gone) == 2, "the one that was on its way is the last"
    dropped = status["droppedRound"]
    assert (dropped["profile"], dropped["revision"]) == (PROFILE, bad.digest)
    assert (dropped["supersededBy"], dropped["evictions"]) == (good.digest, 2)
    assert status["round"] is None
    assert status["rounds"][PROFILE]["nothingMoves"] == "no strategy is switched on", (
        "a round by the good one"
    )
    (line,) = [one.getMessage() for one in caplog.records if "is dropped" in one.getMessage()]
    assert "2 pods were evicted and 0 migrations made before; 4 of 6 pods stay" in line


def test_a_revision_that_says_the_same_drops_nothing() -> None:
    revisions = Revisions()
    bad = {"bad": document("Descheduling", PROFILE, {"strategies": [ALL], **FAST})}
    one, other = revisions.graph(bad), revisions.graph(bad, {"suppress": suppress("60%")})
    assert one.digest != other.digest
    gone, status = _run(Live(one), other, 2)
    assert len(gone) == len(NAMES)
    assert status["droppedRound"] is None


def test_a_round_that_still_looks_for_pods_ends_at_once() -> None:
    live = Live(policies(ALL))
    pieces: list[int] = []
    closed: list[bool] = []

    def work() -> Work[str]:
        try:
            for number in range(10):
                if number == 3:
                    live.graph = policies()
                pieces.append(number)
                yield
        finally:
            closed.append(True)
        return "done"

    standing = StandingGraph(live.graph, lambda: live.graph)
    with pytest.raises(RoundSuperseded):
        finished(standing.while_it_stands(work()))
    assert (pieces, closed) == ([0, 1, 2, 3], [True])
