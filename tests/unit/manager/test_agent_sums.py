"""What agents run, added up by the manager: the arithmetic, and the sums in PolicyRevision objects by its informer."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from koordpolicy.cluster.event_handlers import EventHandlers
from koordpolicy.cluster.objects import ClusterObjects
from koordpolicy.kube.backoff import Backoff
from koordpolicy.kube.events import Recorder
from koordpolicy.kube.informer import Informer
from koordpolicy.kube.memory import MemoryCluster, Store
from koordpolicy.kube.port import MergePatch, Object
from koordpolicy.kube.resources import EVENTS, NODE_METRICS, NODES, POLICY_REVISIONS
from koordpolicy.kube.unreadable import UnreadableObjects
from koordpolicy.manager.agent_sums import AgentSums
from koordpolicy.manager.controllers.agent_sum import (
    AgentSighting,
    HeldSum,
    SummaryPace,
    added_up,
    summary_pace,
)
from koordpolicy.model.agent_runs import LONGEST_REASON, AgentRuns, read_agent_runs, runs_text
from koordpolicy.model.policy_revision import (
    MOST_LAGGING,
    NO_AGENTS,
    LaggingState,
    PolicyRevision,
    RevisionAgents,
    agents_of,
)
from koordpolicy.model.protocol import RUNS_ANNOTATION
from koordpolicy.model.time import NANOSECONDS, time_text
from koordpolicy.model.unreadable import readable
from koordpolicy.runtime.apiserver import ServerSight
from koordpolicy.runtime.clock import monotonic, now_ns
from koordpolicy.runtime.component import RunningComponent
from koordpolicy.runtime.decisions import DecisionCounts
from koordpolicy.runtime.metrics import Metrics
from koordpolicy.runtime.policies.fixed import FixedSource
from koordpolicy.runtime.policies.gating import Gate
from koordpolicy.runtime.process import Process
from koordpolicy.runtime.reports.revision_objects import RevisionObjects, Who, ensured
from koordpolicy.runtime.reports.troubles import Troubles
from koordpolicy.runtime.requests import RequestCounts
from koordpolicy.runtime.rollout.cluster_store import gathered_of
from tests.unit.manager.clusters import cases
from tests.unit.runtime.scenes import live_of, running, tree, until
from tests.vectors.policies import graph

PACE = SummaryPace(30 * NANOSECONDS, 300 * NANOSECONDS, 2)
NAMES = {"aaa": "a", "bbb": "b", "ccc": "c", "sha256:ppp": "b"}
ONE, TWO = "1" * 40, "2" * 40


def said(runs: AgentRuns | str) -> Object:
    text = runs if isinstance(runs, str) else runs_text(runs)
    return {"metadata": {"name": "n", "annotations": {RUNS_ANNOTATION: text}}}


def sighting(node: str, agent: dict[str, Any], now: int) -> AgentSighting:
    agent = dict(agent)
    seconds, raw, due = agent.pop("seconds", 0), agent.pop("raw", None), agent.pop("due", False)
    runs = readable(read_agent_runs, said(raw if raw is not None else AgentRuns(**agent)))
    assert runs is not None
    return AgentSighting(node, runs, None if seconds is None else now - seconds * NANOSECONDS, due)


def shown(agents: RevisionAgents) -> dict[str, Any]:
    names = ("running", "shadow", "canary", "rejected", "behind", "silent", "total", "due", "step")
    counts: dict[str, Any] = {name: getattr(agents, name) for name in names}
    lagging = [
        " ".join(part for part in (one.node, one.state, one.revision, one.reason, one.message) if part)
        for one in agents.lagging
    ]
    found = {key: value for key, value in counts.items() if value or (key == "due" and value == 0)}
    return found | {"words": agents.words} | ({"lagging": lagging} if lagging else {})


@pytest.mark.parametrize(
    "case", cases(Path(__file__).with_name("agent_sums.yaml")), ids=lambda case: str(case["name"])
)
def test_what_agents_say_is_added_up(case: dict[str, Any]) -> None:
    now = 10**18
    sightings = [sighting(node, agent, now) for node, agent in case["agents"].items()]
    held = HeldSum("c", case["step"]) if "step" in case else None
    counted = added_up(sightings, NAMES, "b", PACE, now, held)
    found = {name: shown(agents) for name, agents in counted.items()}
    for name, sums in found.items():
        wanted = case["sums"][name]
        for line, start in zip(sums.get("lagging", ()), wanted.get("lagging", ()), strict=True):
            assert line.startswith(start)
        assert {**sums, "lagging": ()} == {**wanted, "lagging": ()}
    assert found.keys() == case["sums"].keys()


def test_policy_says_how_often_and_a_part_of_it_is_no_answer() -> None:
    assert summary_pace(graph()) == SummaryPace(30 * NANOSECONDS, 300 * NANOSECONDS, 20)


def test_an_agent_says_no_more_than_fits_an_object_of_every_node() -> None:
    runs = AgentRuns("r", "d", "c", "Canary", "bad", "CompileFailed", "x" * 1000, "git")
    read = read_agent_runs(said(runs))
    assert read == replace(runs, message="x" * (LONGEST_REASON - 1) + "…")
    assert json.loads(runs_text(AgentRuns())) == {"state": "None"}
    assert read_agent_runs({"metadata": {}}) is None


class Site:
    """A cluster with nodes whose agents say what they run, and the manager's part that adds it up."""

    def __init__(self, gate: Callable[[MemoryCluster, Metrics], Gate] | None = None, **options: Any) -> None:
        self.store = Store(lambda: now_ns() / NANOSECONDS)
        self.cluster = MemoryCluster(self.store)
        self.metrics = Metrics("manager")
        self.source = FixedSource("memory")
        held_by = None if gate is None else gate(self.cluster, self.metrics)
        self.live = live_of(self.source, self.metrics, gate=held_by, **options)
        self.published: dict[str, str] = {}
        recorder = Recorder(
            self.cluster,
            component="koordpolicy-manager",
            instance="m",
            now_ns=now_ns,
            backoff=Backoff(lambda: 0.0, initial=0.01),
        )
        self.recorder = recorder
        component = RunningComponent(
            Process("manager", "m", self.metrics),
            self.cluster,
            cast(Any, None),
            self.live,
            None,
            cast(Any, None),
            recorder,
            DecisionCounts(self.metrics),
            None,
            UnreadableObjects(lambda *_found: None),
            Troubles(self.metrics, self.live, recorder, leads=lambda: True, now=now_ns),
            ServerSight(RequestCounts(self.metrics), monotonic),
        )
        self.component = component
        objects = ClusterObjects()
        wanted = frozenset({NODES, NODE_METRICS})
        handlers = EventHandlers(objects, unreadable=component.unreadable, wanted=wanted)
        self.mirrors = handlers.mirrors
        self.sums = AgentSums(component, objects, self.mirrors[NODE_METRICS], lambda: self.published)

    @asynccontextmanager
    async def watched(self, **files: str) -> AsyncIterator[None]:
        """While the informers run and revision one is active, with more files where it has them."""
        backoff = Backoff(lambda: 0.0, initial=0.01, longest=0.05)
        nodes, metrics = (
            Informer(self.cluster, one, self.mirrors[one], backoff) for one in (NODES, NODE_METRICS)
        )
        async with (
            running(nodes.run()),
            running(metrics.run()),
            running(self.live.run()),
            running(self.recorder.run()),
        ):
            self.source.give(tree(1) | files, ONE)
            await self.live.ready.wait()
            yield

    async def agent(self, node: str, runs: AgentRuns, **labels: str) -> None:
        """An agent reports, and what it says is heard; of the first time its node has these labels."""
        if self.store.find(NODE_METRICS, node) is None:
            self.store.create(NODES, {"metadata": {"name": node, "labels": labels}})
            self.store.create(NODE_METRICS, {"metadata": {"name": node}, "spec": {}})
        status = {"status": {"updateTime": time_text(now_ns())}}
        self.store.patch(NODE_METRICS, node, MergePatch(status), subresource="status")
        patched = self.store.patch(
            NODE_METRICS, node, MergePatch({"metadata": {"annotations": {RUNS_ANNOTATION: runs_text(runs)}}})
        )
        version = patched["metadata"]["resourceVersion"]
        mirror = self.mirrors[NODE_METRICS]
        await until(lambda: (found := mirror.get(node)) and found["metadata"]["resourceVersion"] == version)

    async def revision(self, commit: str) -> str:
        """The object of a revision, as processes make it."""
        made = PolicyRevision("fleet", commit, "d" * 64, commit)
        objects = RevisionObjects(self.cluster, self.metrics, now_ns)
        await objects.begun(await ensured(self.cluster, made), Who("manager", "m"))
        return made.name

    def agents(self, name: str) -> RevisionAgents:
        return agents_of(self.store.get(POLICY_REVISIONS, name)["status"])

    def version(self, name: str) -> str:
        return str(self.store.get(POLICY_REVISIONS, name)["metadata"]["resourceVersion"])


def test_sums_follow_reports_and_only_what_changed_is_written() -> None:
    async def scene() -> None:
        site = Site()
        async with site.watched():
            one, two = await site.revision(ONE), await site.revision(TWO)
            for number in range(30):
                await site.agent(f"n{number:02}", AgentRuns(ONE))
            assert await site.sums.write(PACE) == 1
            assert site.agents(one) == RevisionAgents(30, total=30)
            assert site.agents(two) == NO_AGENTS
            assert site.metrics.value("koordpolicy_agents", state="running") == 30

            # Reports alone write nothing, however many there are.
            before = site.version(one)
            for number in range(30):
                await site.agent(f"n{number:02}", AgentRuns(ONE))
            assert await site.sums.write(PACE) == 0
            assert site.version(one) == before

            # One fails to compile a revision on its way: its rollout counts that, and people are told.
            await site.agent("n00", AgentRuns(ONE, rejected=TWO, reason="CompileFailed", message="no"))
            assert await site.sums.write(PACE) == 1
            obj = site.store.get(POLICY_REVISIONS, two)
            gathered = gathered_of(obj, "step")
            assert (gathered.instances, gathered.rejected) == (1, 1)
            await site.recorder.flush()
            told = [event["message"] for event in site.store.list(EVENTS).items]
            assert told == ["1 agent cannot take the revision: n00: no"]
            (lagging,) = site.agents(two).lagging
            assert (lagging.node, lagging.state, lagging.reason) == (
                "n00",
                LaggingState.REJECTED,
                "CompileFailed",
            )

            # A node that goes takes its agent along, and what was said of it.
            site.store.delete(NODE_METRICS, "n00")
            await until(lambda: site.mirrors[NODE_METRICS].get("n00") is None)
            assert await site.sums.write(PACE) == 2
            assert site.agents(one) == RevisionAgents(29, total=29)
            assert site.agents(two) == NO_AGENTS

    asyncio.run(scene())


def test_parts_that_were_published_count_for_the_revision_that_they_are_of() -> None:
    async def scene() -> None:
        site = Site()
        async with site.watched():
            one = await site.revision(ONE)
            await site.agent("n", AgentRuns("sha256:" + "f" * 64, "f" * 64))
            await site.sums.write(PACE)
            assert site.agents(one).behind == 1
            site.published["sha256:" + "f" * 64] = one
            await site.sums.write(PACE)
            assert site.agents(one) == RevisionAgents(1, total=1)

    asyncio.run(scene())


def test_no_more_are_named_than_an_object_takes() -> None:
    many = [sighting(f"n{number:04}", {"revision": "aaa"}, 0) for number in range(5000)]
    pace = replace(PACE, most_named=MOST_LAGGING)
    found = added_up(many, NAMES, "b", pace, 0)["b"]
    assert (found.behind, len(found.lagging)) == (5000, MOST_LAGGING)
