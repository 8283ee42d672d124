"""PolicyRevision objects: who runs what, what is wrong, and nothing left over."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from koordpolicy.kube import NotFound, Resource, Unreachable
from koordpolicy.kube.backoff import Backoff
from koordpolicy.kube.events import Recorder
from koordpolicy.kube.frozen import thaw
from koordpolicy.kube.memory import MemoryCluster, Store
from koordpolicy.kube.resources import EVENTS, POLICY_REVISIONS
from koordpolicy.model.policy_revision import InstanceState, revision_name
from koordpolicy.runtime.fixed import FixedSource
from koordpolicy.runtime.live import LivePolicies
from koordpolicy.runtime.metrics import Metrics
from koordpolicy.runtime.reporting import KEPT, Reporter, Shown, Who
from koordpolicy.runtime.revisions import Active, Candidate, Verdict
from tests.unit.runtime.scenes import Ticks, broken, live_of, running, tree, until

BACKOFF = Backoff(lambda: 0.0, initial=0.01, longest=0.05)


class World:
    """A cluster in memory, which may be out of reach."""

    def __init__(self) -> None:
        self.now = 1_800_000_000.0
        self.store = Store(lambda: self.now)
        self.away = False
        self.cluster = MemoryCluster(self.store, before_request=self._before)

    async def _before(self, verb: str, resource: Resource) -> None:
        if self.away:
            raise Unreachable("connection refused")

    def revisions(self) -> dict[str, dict[str, Any]]:
        return {obj["metadata"]["name"]: thaw(obj) for obj in self.store.list(POLICY_REVISIONS).items}

    def instances(self, name: str) -> dict[str, str]:
        """State of each instance that has an entry."""
        try:
            obj = self.store.get(POLICY_REVISIONS, name)
        except NotFound:
            return {}
        return {one["name"]: one["state"] for one in (obj.get("status") or {}).get("instances") or ()}

    def conditions(self, name: str) -> dict[str, tuple[str, str]]:
        status = self.revisions().get(name, {}).get("status") or {}
        return {one["type"]: (one["status"], one["reason"]) for one in status.get("conditions", ())}


class Replica:
    """One process that follows a source and reports."""

    def __init__(self, world: World, name: str, *, leads: bool = False, gate: Any = None) -> None:
        self.world = world
        self.source = FixedSource("memory")
        self.metrics = Metrics("manager")
        self.live: LivePolicies = live_of(self.source, self.metrics, gate=gate)
        self.leads = leads
        self.recorder = Recorder(
            world.cluster, component="koordpolicy-manager", instance=name, now_ns=Ticks(), backoff=BACKOFF
        )
        self.reporter = Reporter(
            world.cluster,
            self.live,
            Who("manager", name),
            self.metrics,
            BACKOFF,
            leads=lambda: self.leads,
            recorder=self.recorder,
            now=Ticks(),
        )

    @asynccontextmanager
    async def played(self) -> AsyncIterator["Replica"]:
        async with running(self.live.run()), running(self.reporter.run()), running(self.recorder.run()):
            yield self


ONE, TWO, BAD = "1" * 40, "2" * 40, "b" * 40


def test_two_replicas_each_write_their_own_entry() -> None:
    async def scene() -> None:
        world = World()
        async with Replica(world, "m1").played() as first, Replica(world, "m2").played() as second:
            for replica in (first, second):
                replica.source.give(tree(1), ONE)
            one = revision_name("fleet", ONE)
            await until(lambda: world.instances(one) == {"m1": "Active", "m2": "Active"})
            obj = world.revisions()[one]
            assert obj["spec"]["bundle"] == "fleet"
            assert (obj["spec"]["commit"], obj["spec"]["revision"], obj["spec"]["origin"]) == (
                ONE,
                ONE,
                "memory",
            )
            assert "conditions" not in obj["status"]  # nobody speaks for all
            first.source.give(tree(2), TWO)
            two = revision_name("fleet", TWO)
            await until(lambda: world.instances(two) == {"m1": "Active"})
            await until(lambda: world.instances(one) == {"m2": "Active"})
            await first.reporter.withdraw()
            assert world.instances(two) == {}
            assert world.instances(one) == {"m2": "Active"}

    asyncio.run(scene())


def test_the_leader_says_what_is_wrong_and_tells_the_audit_trail() -> None:
    async def scene() -> None:
        world = World()
        async with Replica(world, "m1", leads=True).played() as replica:
            one, two, bad = (revision_name("fleet", commit) for commit in (ONE, TWO, BAD))
            replica.source.give(tree(1), ONE)
            await until(lambda: world.conditions(one) == {"Ready": ("True", "Succeeded")})
            assert world.revisions()[one]["status"]["rules"] == {"total": 1}
            replica.source.give(broken(), BAD)
            stalled = {"Ready": ("False", "CompileFailed"), "Stalled": ("True", "CompileFailed")}
            await until(lambda: world.conditions(bad) == stalled)
            assert world.instances(bad) == {"m1": "Rejected"}
            assert world.conditions(one) == {"Ready": ("True", "Succeeded")}
            status = world.revisions()[bad]["status"]
            assert status["observedGeneration"] == 1
            (finding,) = status["diagnostics"]
            assert (finding["code"], finding["path"], finding["line"]) == ("KP203", "all.yaml", 5)
            assert status["diagnosticsTotal"] == 1
            replica.source.give(tree(2), TWO)
            await until(lambda: world.conditions(two) == {"Ready": ("True", "Succeeded")})
            await until(lambda: world.conditions(one) == {"Ready": ("False", "Superseded")})
            assert world.conditions(bad) == stalled
            await until(lambda: world.instances(bad) == {})
            await replica.recorder.flush()
            told = [
                (event["involvedObject"]["name"], event["type"], event["reason"])
                for event in world.store.list(EVENTS).items
            ]
            assert sorted(told) == [
                (one, "Normal", "PolicyRevisionActivated"),
                (two, "Normal", "PolicyRevisionActivated"),
                (bad, "Warning", "PolicyRevisionRejected"),
            ]

    asyncio.run(scene())


def test_a_report_waits_for_the_cluster_and_decisions_do_not() -> None:
    async def scene() -> None:
        world = World()
        world.away = True
        async with Replica(world, "m1", leads=True).played() as replica:
            replica.source.give(tree(1), ONE)
            await until(replica.live.ready.is_set)
            failed = ("koordpolicy_policy_status_writes_total", "PolicyRevision", "failed")
            await until(lambda: replica.metrics.value(failed[0], kind=failed[1], result=failed[2]))
            world.away = False
            await until(lambda: world.instances(revision_name("fleet", ONE)) == {"m1": "Active"})

    asyncio.run(scene())


def test_a_restart_under_the_same_name_takes_back_what_it_said_before() -> None:
    async def scene() -> None:
        world = World()
        one, two = revision_name("fleet", ONE), revision_name("fleet", TWO)
        async with Replica(world, "m1").played() as replica:
            replica.source.give(tree(1), ONE)
            await until(lambda: world.instances(one) == {"m1": "Active"})
        async with Replica(world, "m1").played() as replica:
            replica.source.give(tree(2), TWO)
            await until(lambda: world.instances(two) == {"m1": "Active"})
            await until(lambda: world.instances(one) == {})

    asyncio.run(scene())


def test_old_revisions_are_removed_but_not_those_that_run() -> None:
    async def scene() -> None:
        world = World()
        async with (
            Replica(world, "old").played() as old,
            Replica(world, "m1", leads=True).played() as replica,
        ):
            old.source.give(tree(1), "e" * 40)
            await until(lambda: world.instances(revision_name("fleet", "e" * 40)))
            for number in range(KEPT + 5):
                world.now += 60
                commit = f"{number:06d}{'0' * 34}"
                replica.source.give(tree(number + 1), commit)
                name = revision_name("fleet", commit)
                await until(lambda name=name: world.conditions(name).get("Ready") == ("True", "Succeeded"))  # type: ignore[misc]
            running_one = revision_name("fleet", "e" * 40)
            newest = {f"fleet-{number:06d}000000" for number in range(6, KEPT + 5)}
            await until(lambda: set(world.revisions()) == {running_one, *newest})
            assert len(newest) == KEPT - 1

    asyncio.run(scene())


class Ajar:
    """A gate that never decides."""

    async def admit(self, candidate: Candidate, active: Active) -> Verdict:
        await asyncio.Event().wait()
        raise AssertionError


def test_a_candidate_is_shown_as_it_is_held() -> None:
    async def scene() -> None:
        world = World()
        async with Replica(world, "m1", leads=True, gate=Ajar()).played() as replica:
            one, two = revision_name("fleet", ONE), revision_name("fleet", TWO)
            replica.source.give(tree(1), ONE)
            await until(lambda: world.instances(one) == {"m1": "Active"})
            replica.source.give(tree(2), TWO)
            await until(lambda: replica.live.candidate)
            replica.reporter.show(Shown(InstanceState.CANARY, "10 % of the nodes"))
            await until(lambda: world.instances(two) == {"m1": "Canary"})
            await until(lambda: world.conditions(two).get("Reconciling") == ("True", "Progressing"))
            ready = next(
                one for one in world.revisions()[two]["status"]["conditions"] if one["type"] == "Reconciling"
            )
            assert ready["message"] == "10 % of the nodes"
            assert "rollout" not in world.revisions()[two]["status"], "that is for the rollout to write"

    asyncio.run(scene())


def test_a_long_name_still_makes_a_manager_of_its_own() -> None:
    long = "pod-" + "x" * 250
    first, second = Who("agent", long + "1").manager, Who("agent", long + "2").manager
    assert first != second
    assert max(len(first), len(second)) <= 128
    assert Who("agent", "n1").manager == "koordpolicy-agent-n1"


def test_nothing_is_written_twice() -> None:
    async def scene() -> None:
        world = World()
        async with Replica(world, "m1", leads=True).played() as replica:
            replica.source.give(tree(1), ONE)
            one = revision_name("fleet", ONE)
            await until(lambda: world.conditions(one).get("Ready") == ("True", "Succeeded"))
            version = world.revisions()[one]["metadata"]["resourceVersion"]
            await replica.reporter.report()
            assert world.revisions()[one]["metadata"]["resourceVersion"] == version

    asyncio.run(scene())
