"""The fourth example as its README tells it: a local process follows a copy of it while a commit is made."""

import asyncio
import io
import shutil
from pathlib import Path

import pytest

from koordpolicy.cli.main import main
from koordpolicy.cli.terminal import Terminal
from koordpolicy.runtime.metrics import Metrics
from koordpolicy.runtime.policies.live import LivePolicies, Options
from koordpolicy.runtime.rollout.gate import GateContext, RolloutGate
from koordpolicy.runtime.rollout.state import Phase
from koordpolicy.runtime.rollout.store import FileStore
from koordpolicy.source.paths import open_source
from tests.unit.runtime.scenes import running, until

EXAMPLE = Path(__file__).parents[2] / "examples" / "04-careful-rollout"
DECISION = "Overcommit/batch.parameters.cpuReclaim"
NODES: tuple[tuple[str, dict[str, str]], ...] = (
    ("ip-10-0-0-9", {"pool": "canary"}),
    ("node-10", {}),
    ("ip-10-0-0-1", {}),
)
"""A node of the canary pool, one whose name is among the first 5 %, and one that is not among the first 25 %."""


class Quick(FileStore):
    """Looks again at once, since the clock of these plays is turned by hand."""

    async def news(self, seconds: float) -> None:
        await asyncio.sleep(0.01)


class Play:
    """The process, and a commit to its policies."""

    def __init__(self, directory: Path, state: Path) -> None:
        self.directory = directory
        self.state = state
        self.now = 1_800_000_000 * 10**9
        metrics = Metrics("example")
        self.gate = RolloutGate(Quick(state), metrics, GateContext(lambda: self.now))
        source = open_source(str(directory))
        self.live = LivePolicies(source, metrics, gate=self.gate, options=Options(now=lambda: self.now))

    def commit(self, share: str) -> None:
        """Change one number in Git, so to speak."""
        file = self.directory / "batch.yaml"
        text = file.read_text(encoding="utf-8")
        new = text[: text.index("cpuReclaim:")] + f"cpuReclaim: {share}}}\n"
        file.write_text(new, encoding="utf-8")

    def turn(self, minutes: int) -> None:
        self.now += minutes * 60 * 10**9

    async def at(self, step: str) -> None:
        await until(lambda: self.gate.state is not None and self.gate.state.step == step)

    def shares(self) -> list[float]:
        """What is decided for a canary, for one of few, and for any other node."""
        answers = []
        for name, labels in NODES:
            graph = self.live.graph_for(name, labels)
            answers.append(graph.value(DECISION, node={"name": name, "labels": labels}))
        return answers

    def command(self, *arguments: str) -> str:
        out = io.StringIO()
        assert main(["rollout", *arguments, "--state-dir", str(self.state)], Terminal(out, out)) == 0
        return out.getvalue()


@pytest.fixture
def play(tmp_path: Path) -> Play:
    shutil.copytree(EXAMPLE, tmp_path / "policies")
    return Play(tmp_path / "policies", tmp_path / "state")


def test_a_commit_goes_live_step_by_step(play: Play) -> None:
    async def whole() -> None:
        async with running(play.live.run()):
            await play.live.ready.wait()
            assert play.shares() == [60.0, 60.0, 60.0]
            play.commit("50%")
            await play.at("shadow")
            assert play.shares() == [60.0, 60.0, 60.0]
            assert "shadow" in await asyncio.to_thread(play.command, "status")
            for _ in range(200):  # the search pool has its exception under either revision
                play.live.graph.value(DECISION, node={"labels": {"pool": "search"}})
            play.turn(20)
            await play.at("canaries")
            assert play.shares() == [50.0, 60.0, 60.0]
            play.turn(31)
            await until(lambda: play.gate.state is not None and play.gate.state.phase is Phase.PAUSED)
            assert "asked to resume" in await asyncio.to_thread(play.command, "resume")
            await play.at("few")
            assert play.shares() == [50.0, 50.0, 60.0]
            for step in ("quarter", ""):
                play.turn(31)
                if step:
                    await play.at(step)
            await until(lambda: play.live.active is not None and play.shares() == [50.0, 50.0, 50.0])
            told = await asyncio.to_thread(play.command, "status")
            assert "Complete" in told

    asyncio.run(whole())


def test_a_commit_that_turns_everything_over_comes_back(play: Play) -> None:
    async def whole() -> None:
        async with running(play.live.run()):
            await play.live.ready.wait()
            play.commit("10%")
            await play.at("shadow")
            await until(lambda: play.gate.comparison is not None and play.gate.comparison.sample > 0)
            for _ in range(100):
                play.live.graph.value(DECISION, node={"labels": {}})
            await until(
                lambda: play.gate.comparison is not None and play.gate.comparison.counts.total.different
            )
            await until(lambda: play.gate.state is not None and "alike" in play.gate.state.failing)
            play.turn(3)
            await until(lambda: play.live.rejected is not None)
            assert play.live.rejected is not None
            assert "100% of the answers differ" in play.live.rejected.message
            assert play.shares() == [60.0, 60.0, 60.0]

    asyncio.run(whole())
