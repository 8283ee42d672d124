"""Rollouts as they happen to live policies: one process alone, restarts, newer revisions, a leader and its followers."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from koordpolicy.kube import resources
from koordpolicy.kube.memory import MemoryCluster
from koordpolicy.kube.memory import Store as MemoryStore
from koordpolicy.kube.port import MergePatch
from koordpolicy.model.policy_revision import revision_name
from koordpolicy.runtime.metrics import Metrics
from koordpolicy.runtime.policies.fixed import FixedSource
from koordpolicy.runtime.policies.lastgood import LastGood
from koordpolicy.runtime.policies.live import LivePolicies
from koordpolicy.runtime.policies.revisions import Reason
from koordpolicy.runtime.rollout.cluster_store import ClusterStore
from koordpolicy.runtime.rollout.gate import GateContext, RolloutGate
from koordpolicy.runtime.rollout.state import Entry, Phase, RolloutAction, RolloutProgress
from koordpolicy.runtime.rollout.store import FileStore, RolloutStore
from tests.unit.runtime.scenes import live_of, running, target, tree, until

A, B, C = "a" * 40, "b" * 40, "c" * 40
MINUTE = 60 * 10**9
ROLLOUT = """\
apiVersion: koordpolicy.io/v1alpha1
kind: Rollout
metadata: {name: careful}
spec:
  every: 1s
  steps:
    - {name: shadow, shadow: {}, hold: 10m}
    - {name: few, canary: {share: 15%}, shadow: {sample: 50%}, hold: 10m}
    - {name: half, canary: {share: 50%}, hold: 10m}
  guards:
    - name: alike
      require: {cel: rollout.compared == 0 || rollout.disagreement <= percent(50)}
      reason: too many differ
"""


class Clock:
    """Nanoseconds since 1970 that stand still until somebody turns them on."""

    def __init__(self) -> None:
        self.now = 1_800_000_000 * 10**9

    def __call__(self) -> int:
        return self.now

    def turn(self, minutes: float) -> None:
        self.now += int(minutes * MINUTE)


class Quick(FileStore):
    """A file store that looks again at once: the clock of these scenes is turned by hand."""

    async def news(self, seconds: float) -> None:
        await asyncio.sleep(0.005)


class QuickCluster(ClusterStore):
    async def news(self, seconds: float) -> None:
        await asyncio.sleep(0.005)


class Scene:
    """One process with policies and a gate."""

    def __init__(
        self,
        store: RolloutStore,
        clock: Clock,
        *,
        leads: Callable[[], bool] = lambda: True,
        stands_in: Callable[[], bool] = lambda: False,
        node: str = "",
        kept: LastGood | None = None,
    ) -> None:
        self.clock = clock
        self.source = FixedSource("memory")
        self.metrics = Metrics("test")
        self.told: list[str] = []
        context = GateContext(clock, leads, self._notify, node=node, stands_in=stands_in)
        self.gate = RolloutGate(store, self.metrics, context)
        self.live: LivePolicies = live_of(self.source, self.metrics, gate=self.gate, now=clock, store=kept)

    def _notify(self, state: RolloutProgress, entry: Entry) -> None:
        self.told.append(f"{state.subject.revision[:1]}: {entry.event}")

    @asynccontextmanager
    async def played(self) -> AsyncIterator["Scene"]:
        async with running(self.live.run()):
            yield self

    async def begins(self) -> None:
        """Revision A runs, B is offered."""
        self.source.give(tree(1000, rollout=ROLLOUT) | {"rollout.yaml": ROLLOUT}, A)
        await self.live.ready.wait()
        self.offer(2000, B)
        await self.at("shadow")

    def offer(self, millicores: int, commit: str, **more: str) -> None:
        self.source.give({**tree(millicores), "rollout.yaml": ROLLOUT, **more}, commit)

    async def at(self, step: str, revision: str = "") -> None:
        await until(
            lambda: (
                self.gate.state is not None
                and self.gate.state.step == step
                and (not revision or self.gate.state.subject.revision == revision)
            )
        )

    async def looked(self) -> None:
        """Until the guards were looked at now, and that is kept."""
        await until(lambda: self.gate.state is not None and self.gate.state.watched == self.clock())

    async def turned(self, minutes: float, step: str) -> None:
        self.clock.turn(minutes)
        await self.at(step)

    def of_node(self, node: str) -> int:
        value: int = self.live.graph_for(node, {}).value("CPUSuppress.target", node={})
        return value

    def is_rejected(self) -> bool:
        return self.live.rejected is not None

    def running(self) -> str:
        active = self.live.active
        return "" if active is None else active.revision.commit[:1]


def alone(tmp_path: Path, **more: Any) -> Scene:
    return Scene(Quick(tmp_path), Clock(), **more)


def play(scene: Scene, act: Callable[[Scene], Any]) -> None:
    async def whole() -> None:
        async with scene.played():
            await act(scene)

    asyncio.run(whole())


def test_a_revision_goes_live_step_by_step(tmp_path: Path) -> None:
    async def act(scene: Scene) -> None:
        await scene.begins()
        assert [scene.of_node(node) for node in ("node-2", "node-1", "ip-10-0-0-1")] == [1000, 1000, 1000]
        await scene.turned(10, "few")
        assert [scene.of_node(node) for node in ("node-2", "node-1", "ip-10-0-0-1")] == [2000, 1000, 1000]
        await scene.turned(10, "half")
        assert [scene.of_node(node) for node in ("node-2", "node-1", "ip-10-0-0-1")] == [2000, 2000, 2000]
        assert scene.running() == "a"
        scene.clock.turn(10)
        await until(lambda: scene.running() == "b")
        assert target(scene.live) == 2000
        assert scene.gate.state is None
        assert scene.told == ["b: Started", "b: Step", "b: Step", "b: Completed"]

    play(alone(tmp_path), act)


def test_the_rollout_in_force_is_that_of_the_old_revision(tmp_path: Path) -> None:
    async def act(scene: Scene) -> None:
        scene.source.give(tree(1000), A)
        await scene.live.ready.wait()
        scene.offer(2000, B)
        await until(lambda: scene.running() == "b")
        scene.source.give(tree(3000), C)
        await scene.at("shadow", C)
        assert scene.running() == "b"

    play(alone(tmp_path), act)


def test_a_revision_that_changes_no_decision_goes_live_at_once(tmp_path: Path) -> None:
    async def act(scene: Scene) -> None:
        scene.offer(1000, A)
        await scene.live.ready.wait()
        test = (
            "apiVersion: koordpolicy.io/v1alpha1\nkind: PolicyTest\nmetadata: {name: t}\nspec:\n"
            "  cases: [{name: c, expect: {CPUSuppress.target: 1}}]\n"
        )
        scene.offer(1000, B, **{"t.yaml": test})
        await until(lambda: scene.running() == "b")

    play(alone(tmp_path), act)


def test_differences_are_counted_in_the_shadow_and_guards_turn_it_back(tmp_path: Path) -> None:
    async def act(scene: Scene) -> None:
        await scene.begins()
        assert target(scene.live) == 1000
        await until(lambda: scene.live.rejected is not None)
        assert scene.live.rejected is not None
        assert scene.live.rejected.reason is Reason.GUARD_REFUSED
        assert "too many differ" in scene.live.rejected.message
        assert (scene.running(), target(scene.live)) == ("a", 1000)
        assert scene.told[-1] == "b: Aborted"

    play(alone(tmp_path), act)


def test_abort_and_then_a_fix(tmp_path: Path) -> None:
    async def act(scene: Scene) -> None:
        await scene.begins()
        await scene.turned(10, "few")
        FileStore(tmp_path).ask(RolloutAction.ABORT, B, "ada", "1")
        await until(lambda: scene.live.rejected is not None)
        assert scene.live.rejected is not None
        assert scene.live.rejected.reason is Reason.ABORTED, "no guard, and no fault of the revision"
        assert scene.of_node("node-2") == 1000, "canaries are back"
        kept = FileStore(tmp_path).read()
        assert kept is not None
        assert (kept.phase, kept.message) == (Phase.ABORTED, "aborted by ada")
        scene.offer(1500, C)
        await scene.at("shadow", C)
        for step in ("few", "half"):
            await scene.turned(10, step)
        scene.clock.turn(10)
        await until(lambda: scene.running() == "c")

    play(alone(tmp_path), act)


def test_two_revisions_in_quick_succession(tmp_path: Path) -> None:
    async def act(scene: Scene) -> None:
        await scene.begins()
        await scene.turned(10, "few")
        scene.offer(3000, C)
        await scene.at("shadow", C)
        assert scene.of_node("node-2") == 1000, "the newer one begins from the first step"
        assert scene.told == ["b: Started", "b: Step", "b: Superseded", "c: Started"]

    play(alone(tmp_path), act)


def test_going_back_to_the_running_revision_ends_it(tmp_path: Path) -> None:
    async def act(scene: Scene) -> None:
        await scene.begins()
        await scene.turned(10, "few")
        scene.offer(1000, A)
        await until(lambda: scene.of_node("node-2") == 1000)
        assert scene.running() == "a"
        await until(lambda: scene.told[-1] == "b: Superseded")

    play(alone(tmp_path), act)


def test_pause_and_resume_by_file(tmp_path: Path) -> None:
    async def act(scene: Scene) -> None:
        await scene.begins()
        FileStore(tmp_path).ask(RolloutAction.PAUSE, "", "ada", "1")
        await until(lambda: scene.gate.state is not None and scene.gate.state.phase is Phase.PAUSED)
        scene.clock.turn(100)
        await asyncio.sleep(0.05)
        assert scene.gate.state is not None
        assert scene.gate.state.step == "shadow"
        FileStore(tmp_path).ask(RolloutAction.RESUME, B, "ada", "2")
        await until(lambda: scene.gate.state is not None and scene.gate.state.phase is Phase.PROGRESSING)
        await scene.turned(10, "few")

    play(alone(tmp_path), act)


def test_a_restart_in_the_middle_goes_on_where_it_stood(tmp_path: Path) -> None:
    clock = Clock()

    async def first(scene: Scene) -> None:
        await scene.begins()
        await scene.turned(10, "few")
        clock.turn(4)
        await scene.looked()

    async def second(scene: Scene) -> None:
        scene.offer(2000, B)
        await scene.at("few")
        await until(lambda: scene.of_node("node-2") == 2000)
        assert (scene.running(), scene.of_node("node-1")) == ("a", 1000)
        clock.turn(5.9)
        await asyncio.sleep(0.05)
        assert scene.gate.state is not None
        assert scene.gate.state.step == "few"
        await scene.turned(0.2, "half")

    play(Scene(Quick(tmp_path), clock, kept=LastGood(tmp_path)), first)
    play(Scene(Quick(tmp_path), clock, kept=LastGood(tmp_path)), second)


def test_a_time_in_which_nobody_led_is_none_of_the_step(tmp_path: Path) -> None:
    """Canaries go on meanwhile, and no guard could stop them: so they say nothing for the next step."""
    clock = Clock()

    async def begun(scene: Scene) -> None:
        await scene.begins()
        await scene.turned(10, "few")
        clock.turn(4)
        await scene.looked()

    async def goes_on(scene: Scene) -> None:
        scene.offer(2000, B)
        await scene.at("few")
        await until(lambda: scene.told == ["b: Unwatched"])
        clock.turn(5.9)
        await asyncio.sleep(0.05)
        await scene.at("few")
        await scene.turned(0.2, "half")
        assert scene.told == ["b: Unwatched", "b: Step"]

    play(Scene(Quick(tmp_path), clock, kept=LastGood(tmp_path)), begun)
    clock.turn(60)
    play(Scene(Quick(tmp_path), clock, kept=LastGood(tmp_path)), goes_on)


def test_what_was_aborted_stays_so_over_a_restart(tmp_path: Path) -> None:
    clock = Clock()

    async def first(scene: Scene) -> None:
        await scene.begins()
        FileStore(tmp_path).ask(RolloutAction.ABORT, B, "ada", "1")
        await until(lambda: scene.live.rejected is not None)

    async def second(scene: Scene) -> None:
        scene.offer(2000, B)
        await until(lambda: scene.live.rejected is not None)
        assert scene.running() == "a"

    play(Scene(Quick(tmp_path), clock, kept=LastGood(tmp_path)), first)
    play(Scene(Quick(tmp_path), clock, kept=LastGood(tmp_path)), second)


def test_the_process_of_a_node_runs_the_graph_of_its_node(tmp_path: Path) -> None:
    async def act(scene: Scene) -> None:
        await scene.begins()
        heard: list[int] = []
        scene.live.subscribe(lambda active: heard.append(active.graph.value("CPUSuppress.target", node={})))
        await scene.turned(10, "few")
        await until(lambda: target(scene.live) == 2000)
        assert heard[-1] == 2000

    play(alone(tmp_path, node="node-2"), act)


EXCEPTION = """\
apiVersion: koordpolicy.io/v1alpha1
kind: PolicyException
metadata: {name: short}
spec:
  owner: ada
  reason: once
  expires: 2027-01-15T08:20:00Z
  match: {condition: "!has(node.name)"}
  overrides: {CPUSuppress.target: 7m}
"""


def test_an_exception_ends_in_the_middle_of_a_rollout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("koordpolicy.runtime.policies.live.LONGEST_WAIT", 0.02)

    async def act(scene: Scene) -> None:
        scene.offer(1000, A, **{"e.yaml": EXCEPTION})
        await scene.live.ready.wait()
        assert target(scene.live) == 7
        scene.offer(2000, B, **{"e.yaml": EXCEPTION})
        await scene.at("shadow")
        await scene.turned(11, "few")
        assert scene.of_node("node-2") == 7
        scene.clock.turn(9.5)  # 08:00 + 20.5 min
        await until(lambda: scene.of_node("node-1") == 1000)
        await until(lambda: scene.of_node("node-2") == 2000)

    play(alone(tmp_path), act)


def replica(
    cluster: MemoryCluster,
    clock: Clock,
    name: str,
    *,
    leads: bool = False,
    stands_in: Callable[[], bool] = lambda: False,
) -> Scene:
    store = QuickCluster(cluster, name, monotonic=lambda: clock.now / 1e9, publish_every=0.0)
    return Scene(store, clock, leads=lambda: leads, stands_in=stands_in)


class TestInACluster:
    def test_one_leads_and_the_others_follow(self) -> None:
        async def whole() -> None:
            clock = Clock()
            cluster = MemoryCluster(MemoryStore(lambda: clock.now / 1e9))
            manager, one, two = scenes = (
                replica(cluster, clock, "manager", leads=True),
                replica(cluster, clock, "agent-1"),
                replica(cluster, clock, "agent-2"),
            )
            async with manager.played(), one.played(), two.played():
                for scene in scenes:
                    scene.offer(1000, A)
                await asyncio.gather(*(scene.live.ready.wait() for scene in scenes))
                one.offer(2000, B)
                await asyncio.sleep(0.05)
                assert one.gate.state is None, "a follower waits for the leader to begin"
                manager.offer(2000, B)
                two.offer(2000, B)
                for scene in scenes:
                    await scene.at("shadow", B)
                name = revision_name("fleet", B)
                await manager.turned(10, "few")
                await one.at("few")
                assert (one.of_node("node-2"), one.of_node("node-1")) == (2000, 1000)
                await cluster.patch(
                    resources.POLICY_REVISIONS, name, _annotated("koordpolicy.io/rollout", "pause")
                )
                await until(lambda: two.gate.state is not None and two.gate.state.phase is Phase.PAUSED)
                obj = await cluster.get(resources.POLICY_REVISIONS, name)
                assert "koordpolicy.io/rollout" not in obj["metadata"].get("annotations", {})
                assert obj["status"]["rollout"]["history"][-1]["event"] == "Paused"
                await cluster.patch(
                    resources.POLICY_REVISIONS, name, _annotated("koordpolicy.io/rollout", "abort")
                )
                for scene in scenes:
                    await until(scene.is_rejected)
                    assert scene.running() == "a"

        asyncio.run(whole())

    def test_where_nobody_leads_one_stands_in_until_somebody_comes(self) -> None:
        async def whole() -> None:
            clock, alone = Clock(), [False]
            cluster = MemoryCluster(MemoryStore(lambda: clock.now / 1e9))
            scheduler = replica(cluster, clock, "scheduler", stands_in=lambda: alone[0])
            async with scheduler.played():
                scheduler.offer(1000, A)
                await scheduler.live.ready.wait()
                scheduler.offer(2000, B)
                await asyncio.sleep(0.05)
                assert scheduler.gate.state is None, "it follows as long as somebody else may lead"
                alone[0] = True
                await scheduler.at("shadow", B)
                await scheduler.turned(10, "few")
                manager = replica(cluster, clock, "manager", leads=True)
                async with manager.played():
                    manager.offer(1000, A)
                    await manager.live.ready.wait()
                    manager.offer(2000, B)
                    await manager.at("few", B)
                    # For some seconds both think that it is theirs: neither goes back, and nothing is told twice.
                    await manager.turned(10, "half")
                    await scheduler.at("half")
                    alone[0] = False
                    clock.turn(10)
                    await until(lambda: manager.running() == scheduler.running() == "b")
                obj = await cluster.get(resources.POLICY_REVISIONS, revision_name("fleet", B))
                events = [entry["event"] for entry in obj["status"]["rollout"]["history"]]
                assert events == ["Started", "Step", "Step", "Completed"]

        asyncio.run(whole())

    def test_what_followers_count_the_leader_judges(self) -> None:
        async def whole() -> None:
            clock = Clock()
            cluster = MemoryCluster(MemoryStore(lambda: clock.now / 1e9))

            manager = replica(cluster, clock, "manager", leads=True)
            agent = replica(cluster, clock, "agent")
            async with manager.played(), agent.played():
                for scene in (manager, agent):
                    scene.offer(1000, A)
                    await scene.live.ready.wait()
                    scene.offer(2000, B)
                await agent.at("shadow", B)
                await until(
                    lambda: agent.gate.comparison is not None and agent.gate.comparison.sample == 100.0
                )
                target(agent.live)
                await until(lambda: manager.live.rejected is not None)
                assert manager.live.rejected is not None
                assert "too many differ" in manager.live.rejected.message
                await until(lambda: agent.live.rejected is not None)

        asyncio.run(whole())


def _annotated(key: str, value: str) -> MergePatch:
    return MergePatch({"metadata": {"annotations": {key: value}}})
