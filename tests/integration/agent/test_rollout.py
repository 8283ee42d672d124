"""A rollout among agents that follow what the manager publishes: who goes ahead takes it, and it waits for them.

The manager's gate, publisher and sums and each agent's source, gate and report work together over the in-memory cluster.
"""

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from koordpolicy.agent.reports.runs import runs_of
from koordpolicy.kube.backoff import Backoff
from koordpolicy.kube.memory import MemoryCluster
from koordpolicy.kube.resources import CONFIG_MAPS, NAMESPACES
from koordpolicy.manager.agent_policies import AgentPolicies
from koordpolicy.model.policy_revision import RevisionAgents
from koordpolicy.runtime.clock import monotonic
from koordpolicy.runtime.metrics import Metrics
from koordpolicy.runtime.policies.held import HeldReach
from koordpolicy.runtime.policies.live import LivePolicies, Options
from koordpolicy.runtime.policies.published import POINTER, PublishedSource, pointed_at
from koordpolicy.runtime.rollout.cluster_store import ClusterStore
from koordpolicy.runtime.rollout.followed import FollowedGate
from koordpolicy.runtime.rollout.gate import GateContext, RolloutGate
from koordpolicy.runtime.rollout.state import RolloutProgress
from tests.unit.manager.test_agent_sums import ONE, PACE, TWO, Site
from tests.unit.runtime.scenes import running, tree, until

THREE = "3" * 40
NAMESPACE = "koordpolicy-system"
MINUTE = 60 * 10**9
ROLLOUT = """\
apiVersion: koordpolicy.io/v1alpha1
kind: Rollout
metadata: {name: careful}
spec:
  every: 1s
  steps:
    - {name: web, canary: {nodes: {matchLabels: {pool: web}}}, shadow: {}, hold: 1m}
    - {name: all, canary: {share: 100%}, hold: 1m}
  guards:
    - name: taken
      require: {cel: rollout.agents.running == rollout.agents.due}
      reason: {cel: "string(rollout.agents.behind) + ' of ' + string(rollout.agents.due) + ' agents are behind'"}
      patience: 10m
      knownWithin: 30m
"""
NODES: Mapping[str, Mapping[str, str]] = {"a": {"pool": "web"}, "b": {}, "c": {"pool": "db"}}


class QuickCluster(ClusterStore):
    """Looks again at once, since the clock is turned by hand."""

    looks = 0

    async def news(self, seconds: float) -> None:
        self.looks += 1
        await asyncio.sleep(0.005)


class Agents(Site):
    """A manager that leads a rollout, and the policies of three agents."""

    def __init__(self) -> None:
        self.now = 1_800_000_000 * 10**9
        super().__init__(self._gate, now=lambda: self.now)
        self.published_for = AgentPolicies(self.component, NAMESPACE)
        self.lives = {node: self._live() for node in NODES}

    def _gate(self, cluster: MemoryCluster, metrics: Metrics) -> RolloutGate:
        self.looking = QuickCluster(cluster, "m", monotonic=monotonic)
        self.gate = RolloutGate(self.looking, metrics, GateContext(lambda: self.now))
        return self.gate

    def _live(self) -> LivePolicies:
        reach, metrics = HeldReach(), Metrics("agent")
        backoff = Backoff(random.random, initial=0.001, longest=0.01)
        source = PublishedSource(self.cluster, NAMESPACE, backoff, spread=0.0, reach=reach)
        options = Options(packs=lambda _name: None, patience=0.05)
        return LivePolicies(source, metrics, gate=FollowedGate(reach, metrics), options=options)

    @asynccontextmanager
    async def played(self) -> AsyncIterator[None]:
        """Until all agents run revision one."""
        self.store.create(NAMESPACES, {"metadata": {"name": NAMESPACE}})
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(self.watched(**{"rollout.yaml": ROLLOUT}))
            await stack.enter_async_context(running(self.published_for.lead()))
            for live in self.lives.values():
                await stack.enter_async_context(running(live.run()))
            await until(lambda: all(live.active is not None for live in self.lives.values()))
            yield

    async def offer(self, files: dict[str, str], commit: str) -> str:
        """A commit; the object of its revision."""
        name = await self.revision(commit)
        self.source.give(files | {"rollout.yaml": ROLLOUT}, commit)
        return name

    async def report(self, *nodes: str) -> None:
        """These agents say what they run, and the manager adds up."""
        self.published |= self.published_for.names
        for node in nodes:
            labels = NODES[node]
            await self.agent(node, runs_of(self.lives[node], node, labels), **labels)
        await self.sums.write(PACE)

    async def at(self, step: str) -> None:
        """Until the rollout is at a step, and the pointer says so."""
        await until(lambda: self.gate.state is not None and self.gate.state.step == step)
        await until(lambda: self.held() == step)

    async def looked(self, minutes: float = 0.0) -> RolloutProgress:
        """Where it stands after so many minutes and some looks."""
        self.now += int(minutes * MINUTE)
        before = self.looking.looks
        await until(lambda: self.looking.looks > before + 2 or self.gate.state is None)
        assert self.gate.state is not None
        return self.gate.state

    def targets(self) -> dict[str, int]:
        return {
            node: live.graph_for(node, NODES[node]).value("CPUSuppress.target", node={})
            for node, live in self.lives.items()
        }

    async def decided(self, **targets: int) -> None:
        await until(lambda: self.targets() == targets)

    def running(self) -> set[str]:
        return {"" if live.active is None else live.active.revision.commit for live in self.lives.values()}

    def held(self) -> str:
        """The step at which the pointer holds a revision back."""
        held = pointed_at(self.store.get(CONFIG_MAPS, POINTER, namespace=NAMESPACE)).held
        return "" if held is None else held.reach.step


def play(scene: Callable[[Agents], Any]) -> None:
    async def whole() -> None:
        site = Agents()
        async with site.played():
            await scene(site)

    asyncio.run(whole())


def test_each_step_waits_for_the_agents_of_its_nodes() -> None:
    async def scene(site: Agents) -> None:
        await site.decided(a=1, b=1, c=1)
        two = await site.offer(tree(2000), TWO)
        await site.at("web")
        await site.decided(a=2000, b=1, c=1)
        assert site.running() == {ONE}
        told = await site.looked(5)
        assert (told.step, told.message) == ("web", "waits: the guard `taken` cannot be told yet")

        await site.report("a", "b", "c")
        assert site.agents(two) == RevisionAgents(shadow=2, canary=1, step="web", due=1)
        await site.at("all")
        await site.decided(a=2000, b=2000, c=2000)
        told = await site.looked(2)
        assert told.message == "waits: the guard `taken` cannot be told yet", (
            "what was counted was another step"
        )
        await site.report("a", "b")
        told = await site.looked()
        assert (told.step, told.message) == ("all", "waits: the guard `taken` fails")
        assert [one.node for one in site.agents(two).lagging] == ["c"]

        graphs = {node: live.candidate.graph for node, live in site.lives.items() if live.candidate}
        await site.report("a", "b", "c")
        await until(lambda: site.running() == {TWO})
        assert site.held() == ""
        assert {node: live.graph for node, live in site.lives.items()} == graphs, "nobody compiles it twice"
        await site.report("a", "b", "c")
        assert site.agents(two) == RevisionAgents(3, total=3)

    play(scene)


def test_agents_that_stay_behind_end_it_and_all_go_back() -> None:
    async def scene(site: Agents) -> None:
        await site.offer(tree(2000), TWO)
        await site.at("web")
        await site.decided(a=2000, b=1, c=1)
        site.published |= site.published_for.names
        for node in NODES:  # the agent of `a` does not come to say that it has taken it
            await site.agent(node, runs_of(site.lives["b"], "", {}), **NODES[node])
        await site.sums.write(PACE)
        told = await site.looked(2)
        assert (told.step, told.message) == ("web", "waits: the guard `taken` fails")
        site.now += 11 * MINUTE
        await until(lambda: site.live.rejected is not None)
        assert site.live.rejected is not None
        assert "1 of 1 agents are behind" in site.live.rejected.message
        await site.decided(a=1, b=1, c=1)
        assert site.held() == ""
        await until(lambda: all(live.candidate is None for live in site.lives.values()))

        await site.offer(tree(3000), THREE)
        await site.at("web")
        await site.decided(a=3000, b=1, c=1)

    play(scene)


def test_what_nobody_can_tell_is_waited_for_no_longer_than_policy_says() -> None:
    async def scene(site: Agents) -> None:
        await site.offer(tree(2000), TWO)
        await site.at("web")
        assert (await site.looked(29)).step == "web"
        await site.looked(1)
        site.now += 10 * MINUTE
        await until(lambda: site.live.rejected is not None)
        assert site.live.rejected is not None
        assert "the guard `taken` fails: it cannot be told" in site.live.rejected.message

    play(scene)


def test_a_restart_in_a_rollout_starts_with_what_is_for_all() -> None:
    async def scene(site: Agents) -> None:
        await site.offer(tree(2000), TWO)
        await site.at("web")
        fresh = site._live()
        async with running(fresh.run()):
            await until(lambda: fresh.candidate is not None and fresh.stage is not None)
            assert fresh.active is not None
            assert fresh.active.revision.commit == ONE
            assert fresh.graph_for("a", {"pool": "web"}).value("CPUSuppress.target", node={}) == 2000
            assert fresh.graph_for("b", {}).value("CPUSuppress.target", node={}) == 1

    play(scene)
