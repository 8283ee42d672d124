"""Hot reload: commits land in a directory as git-sync lays them out, while decisions are asked for at 1,000 a second."""

import asyncio
import os
import sys
import tempfile
import threading
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path

from koordpolicy.runtime.metrics import Metrics
from koordpolicy.runtime.policies.live import LivePolicies, Options
from koordpolicy.runtime.trial.client import Trials, start_trials
from koordpolicy.runtime.trial.limits import TrialLimits
from koordpolicy.source.paths import open_source
from tests.benchmarks.compiling import FILES, generated
from tests.benchmarks.measure import Row

RATE = 1_000
"""Decisions a second."""
SINGLE = 5
BURST = 100
TURN = 0.0005
"""As the processes set it."""

FACTS = {
    "capacity.cpu": 96_000,
    "allocatable.cpu": 90_000,
    "usage.prod.cpu": 1_000,
    "usage.system.cpu": 100,
    "labels": {"pool": "p500"},
}


def run() -> Iterator[Row]:
    """Seconds until a commit decides, and how late decisions were meanwhile, in milliseconds."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(TURN)
    try:
        # As processes do: forked before there are threads and a loop.
        with tempfile.TemporaryDirectory() as folder, start_trials(TrialLimits()) or nullcontext() as trials:
            yield from asyncio.run(_measured(Path(folder), trials))
    finally:
        sys.setswitchinterval(before)


@dataclass
class Asking:
    """Asks at a steady rate from a thread, as a webhook's clients do. `late` are seconds from when it was due."""

    live: LivePolicies
    late: list[float] = field(default_factory=list)
    failed: int = 0
    last: int = -1
    _stop: threading.Event = field(default_factory=threading.Event)

    def ask(self) -> None:
        due = time.perf_counter()
        while not self._stop.is_set():
            due += 1 / RATE
            if (wait := due - time.perf_counter()) > 0:
                time.sleep(wait)
            try:
                self.last = self.live.graph.value("CPUSuppress.target", node=FACTS)
            except Exception:  # noqa: BLE001 - whatever it is, it is a failed decision
                self.failed += 1
            self.late.append(time.perf_counter() - due)

    def stop(self) -> None:
        self._stop.set()

    def row(self, what: str, commits: int, seconds: Sequence[float], skipped: int) -> Row:
        late, self.late = sorted(self.late), []
        ordered = sorted(seconds)
        return {
            "what": what,
            "files": FILES,
            "commits": commits,
            "skipped": skipped,
            "live after s": ordered[len(ordered) // 2],
            "at most s": ordered[-1],
            "decisions": len(late),
            "failed": self.failed,
            "late p50 ms": late[len(late) // 2] * 1000,
            "p99 ms": late[int(len(late) * 0.99)] * 1000,
            "max ms": late[-1] * 1000,
        }


class Published:
    """Trees of commits, and the link that is swapped from one to the next."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self.link = root / "current"
        self._number = 0
        self._tree = root / ".worktrees" / f"{0:040x}"
        self._tree.mkdir(parents=True)
        for name, text in generated():
            (self._tree / name).write_text(text)
        self._text = (self._tree / "500.yaml").read_text()
        self.link.symlink_to(self._tree.relative_to(root))

    def prepare(self) -> Path:
        """The tree of the next commit, in which one file differs."""
        self._number += 1
        tree = self._root / ".worktrees" / f"{self._number:040x}"
        tree.mkdir()
        for file in self._tree.iterdir():
            if file.name != "500.yaml":
                os.link(file, tree / file.name)
        share = 1 + self._number % 70
        (tree / "500.yaml").write_text(self._text.replace("* percent(", f"* percent({share} + 0 * "))
        return tree

    def publish(self, tree: Path) -> None:
        fresh = self._root / "tmp-link"
        fresh.symlink_to(tree.relative_to(self._root))
        fresh.replace(self.link)


@asynccontextmanager
async def _asked(live: LivePolicies) -> AsyncIterator[Asking]:
    asking = Asking(live)
    thread = threading.Thread(target=asking.ask)
    thread.start()
    try:
        yield asking
    finally:
        asking.stop()
        thread.join()


async def _measured(root: Path, trials: Trials | None) -> list[Row]:
    published = Published(root)
    options = Options(quiet=True, trials=trials)
    live = LivePolicies(open_source(published.link), Metrics("bench"), options=options)
    running = asyncio.create_task(live.run())
    began = time.perf_counter()
    await live.ready.wait()
    cold = time.perf_counter() - began
    live.graph.value("CPUSuppress.target", node=FACTS)
    rows: list[Row] = []
    async with _asked(live) as asking:
        await asyncio.sleep(3)
        rows.append(asking.row("nothing changes", 0, [cold], 0))
        seconds = []
        for _ in range(SINGLE):
            seconds.append(await _one(live, published))
            await asyncio.sleep(0.5)
        rows.append(asking.row("one commit after another", SINGLE, seconds, live.skipped))
        trees = [published.prepare() for _ in range(BURST)]
        asking.late.clear()
        before = live.skipped
        for tree in trees:
            published.publish(tree)
            await asyncio.sleep(0.01)
        seconds = [await _until(live, trees[-1].name)]
        rows.append(asking.row("a burst, 10 ms apart", BURST, seconds, live.skipped - before))
    running.cancel()
    with suppress(asyncio.CancelledError):
        await running
    return rows


async def _one(live: LivePolicies, published: Published) -> float:
    tree = published.prepare()
    await asyncio.sleep(0.2)
    published.publish(tree)
    return await _until(live, tree.name)


async def _until(live: LivePolicies, commit: str) -> float:
    began = time.perf_counter()
    while live.active is None or live.active.revision.commit != commit:  # noqa: ASYNC110  as a user would look
        await asyncio.sleep(0.002)
    return time.perf_counter() - began
