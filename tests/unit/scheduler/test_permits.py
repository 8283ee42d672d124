"""Pods that wait for permits beside which nothing happens: each rim comes again when the driver says so."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest
from ruamel.yaml import YAML

from koordpolicy.cluster.pods import PodView
from koordpolicy.kube.backoff import Backoff
from koordpolicy.kube.memory import MemoryCluster, Store
from koordpolicy.kube.resources import NODES, PODS
from koordpolicy.model.node import read_node
from koordpolicy.model.pod import PodKey, read_pod
from koordpolicy.model.time import NANOSECONDS
from koordpolicy.scheduler import PodDecision, Scheduler
from koordpolicy.scheduler.binding_cycle import SLICE
from koordpolicy.scheduler.driver import Settled
from koordpolicy.scheduler.ledger import Stage
from koordpolicy.scheduler.loop import BURST, SchedulingLoop
from koordpolicy.scheduler.plugins import PLUGINS
from koordpolicy.scheduler.plugins.base import Host, Refusal, Wait
from koordpolicy.scheduler.plugins.parameters import Parameters
from koordpolicy.scheduler.role import Role
from tests import virtual_time
from tests.unit.scheduler import test_driver as drivers
from tests.unit.scheduler import test_loop as loops
from tests.unit.scheduler.licences import LICENCES, Licences
from tests.unit.scheduler.test_plugins_with_state import Licensed, graph_of
from tests.unit.scheduler.world import START, World

CASES: Final = YAML(typ="safe").load(Path(__file__).with_name("permits.yaml").read_text("utf-8"))
MANY: Final = 40 * BURST
Answer = float | bool


class Permits(Licences):
    """Gives the answers of a case to those who ask, the last one from then on."""

    def __init__(self, host: Host, answers: Sequence[Answer]) -> None:
        super().__init__(host)
        self.answers = list(answers)
        self.asked = 0

    def answer(self, _pod: PodView, _node: str, _parameters: Parameters) -> Wait | Refusal | None:
        answer = self.answers[min(self.asked, len(self.answers) - 1)]
        self.asked += 1
        if answer is True:
            return None
        return Refusal("never") if answer is False else Wait(self.host.now() + int(answer * 1e9), "not yet")


class Made:
    """A scheduler with such a plugin, over a store with a node; `states` is the plugin's."""

    def __init__(self, clock: Callable[[], int], answers: Sequence[Answer]) -> None:
        self.states: list[Permits] = []
        plugin = replace(
            LICENCES,
            state=lambda host: self.keep(Permits(host, answers)),
            reserve=lambda state, pod, _nodes, _parameters: state.adopt(pod),
            permit=Permits.answer,
        )
        self.scheduler = Scheduler(graph_of(), clock, role=Role(plugins={**PLUGINS, "Licences": plugin}))
        self.store = Store(lambda: clock() / NANOSECONDS)
        self.cluster = MemoryCluster(self.store)
        self.scheduler.set_node(read_node(self.store.create(NODES, loops.node("n0", pods=10 * MANY))))

    def keep(self, state: Permits) -> Permits:
        self.states.append(state)
        return state

    def submit(self, name: str) -> PodKey:
        asked = loops.pod(name)
        asked["spec"]["containers"][0].pop("resources")
        pod = read_pod(self.store.create(PODS, asked, namespace="default"))
        self.scheduler.set_pod(pod)
        return pod.key

    def reconsider(self) -> None:
        self.states[0].host.reconsider()


def _told(settled: Settled) -> str:
    return settled.decision.node or settled.decision.refusals[0].reason


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_a_rim_on_a_virtual_clock_comes_when_the_driver_says(case: Mapping[str, Any]) -> None:
    world = World()
    made = Made(lambda: world.now, case["permit"])
    world.scheduler = made.scheduler
    told: list[list[object]] = []

    class Rim(drivers.VirtualRim):
        def _settle(self, settled: Settled) -> None:
            told.append([(world.now - START) / NANOSECONDS, _told(settled)])

    rim = Rim(world, made.cluster)
    made.submit("p")
    for seconds in case.get("asked_again", ()):
        rim.run(START + int(seconds * NANOSECONDS))
        made.reconsider()
    rim.run(START + int(case["settled"][0] * NANOSECONDS) + 1)
    assert told[0] == case["settled"]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_the_loop_comes_when_the_driver_says(case: Mapping[str, Any]) -> None:
    async def run() -> list[list[object]]:
        clock = asyncio.get_running_loop().time
        begin, told = clock(), []

        def now() -> int:
            return START + round((clock() - begin) * NANOSECONDS)

        made = Made(now, case["permit"])
        loop = SchedulingLoop(
            made.scheduler, made.cluster, now, Backoff(lambda: 0.0),
            on_settled=lambda settled: told.append([clock() - begin, _told(settled)]),
        )  # fmt: skip
        made.submit("p")
        task = asyncio.create_task(loop.run())
        for seconds in case.get("asked_again", ()):
            await asyncio.sleep(begin + seconds - clock())
            made.reconsider()
        await asyncio.sleep(begin + case["settled"][0] - clock() + 0.1)
        task.cancel()
        return told

    at, what = case["settled"]
    assert virtual_time.run(run())[0] == [pytest.approx(at), what]


def test_pods_that_begin_to_wait_give_others_their_turn() -> None:
    """None of them is settled, but the loop counts each as one that was decided on."""

    async def run() -> int:
        made = Made(lambda: START, [3600.0])
        loop = SchedulingLoop(made.scheduler, made.cluster, lambda: START, Backoff(lambda: 0.0))
        for at in range(MANY):
            made.submit(f"p{at}")
        task = asyncio.create_task(loop.run())
        turns = 0
        while len(made.scheduler.ledger.waiting) < MANY:
            await asyncio.sleep(0)
            turns += 1
            assert turns <= 2 * MANY
        task.cancel()
        return turns

    assert virtual_time.run(run()) >= MANY // BURST - 1


@pytest.mark.parametrize("how", ["asked again", "out of time"])
def test_many_that_wait_are_looked_at_some_at_a_time(how: str) -> None:
    now = [START]
    made = Made(lambda: now[0], [60.0])
    keys = [made.submit(f"p{at}") for at in range(MANY)]
    assert made.scheduler.schedule_one() is None
    assert {made.scheduler.ledger.stage(key) for key in keys} == {Stage.WAITING}
    asked = made.states[0].asked
    if how == "asked again":
        made.reconsider()
        assert made.scheduler.next_time() == START
        assert made.scheduler.schedule_one() is None
        assert made.states[0].asked == asked + SLICE
        made.states[0].answers = [True]
    else:
        now[0] += 60 * NANOSECONDS
    other = made.submit("between")
    made.states[0].answers = [True]
    found: list[PodDecision] = []
    while len(found) < MANY - SLICE:
        decision = made.scheduler.schedule_one()
        assert decision is not None
        found.append(decision)
        assert len(made.scheduler.ledger.waiting) >= MANY - len(found) - SLICE
    assert {one.placed for one in found if one.pod != other} == {how == "asked again"}


def test_a_step_tells_of_a_pod_that_begins_to_wait() -> None:
    world = Licensed()
    world.place("a")
    world.licences.reachable = False
    world.submit("b")
    found = world.scheduler.schedule_next()
    assert found is not None
    decision, pod = found
    assert (pod.name, decision.placed, world.scheduler.awaits_permit(decision)) == ("b", True, True)
    world.licences.reachable = True
    world.licences.host.reconsider()
    again = world.scheduler.schedule_next()
    assert again is not None
    assert again[0] is decision
    assert not world.scheduler.awaits_permit(decision)


def test_pods_that_wait_for_permits_are_taken_back_when_the_loop_is_drained() -> None:
    """Somebody else may fill their nodes before this process leads again."""

    async def run() -> None:
        clock = asyncio.get_running_loop().time

        def now() -> int:
            return START + round(clock() * NANOSECONDS)

        made = Made(now, [60.0])
        loop = SchedulingLoop(made.scheduler, made.cluster, now, Backoff(lambda: 0.0))
        keys = {made.submit(name) for name in "pq"}
        task = asyncio.create_task(loop.run())
        await asyncio.sleep(1)
        assert made.scheduler.ledger.waiting.keys() == keys
        assert made.states[0].taken["default"] == 2
        task.cancel()
        await loop.drain(60)
        assert (len(made.scheduler.ledger), made.scheduler.cache.pod_count) == (0, 0)
        assert made.states[0].taken["default"] == 0
        assert set(made.scheduler.pending) == keys
        assert made.states[0].asked == 2, "nobody is asked again about the others' sake"
        assert clock() < 1_000 + 10

    virtual_time.run(run())
