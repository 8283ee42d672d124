"""Small revisions, and live policies that run while a scene is played."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import Any

from koordpolicy.runtime.metrics import Metrics
from koordpolicy.runtime.policies.fixed import FixedSource
from koordpolicy.runtime.policies.gating import Gate
from koordpolicy.runtime.policies.lastgood import LastGood
from koordpolicy.runtime.policies.live import LivePolicies, Options

BUNDLE = """\
apiVersion: koordpolicy.io/v1alpha1
kind: PolicyBundle
metadata: {name: fleet}
spec: {extends: []}
"""
SUPPRESS = """\
apiVersion: koordpolicy.io/v1alpha1
kind: CPUSuppress
metadata: {name: all}
spec:
  target: {cel: "%s"}
"""
BROKEN = SUPPRESS % "node.capacity.nonsense"


def tree(millicores: int, **more: str) -> dict[str, str]:
    """A bundle whose `CPUSuppress.target` is a number."""
    return {"koordpolicy.yaml": BUNDLE, "all.yaml": SUPPRESS % f"millicores({millicores})", **more}


def broken(**more: str) -> dict[str, str]:
    """A bundle with one error, in `all.yaml`."""
    return {"koordpolicy.yaml": BUNDLE, "all.yaml": BROKEN, **more}


class Ticks:
    """Nanoseconds since 1970 that grow by a second with each look."""

    def __init__(self) -> None:
        self.now = 1_800_000_000_000_000_000

    def __call__(self) -> int:
        self.now += 1_000_000_000
        return self.now


async def until(holds: Callable[[], object], seconds: float = 30.0) -> None:
    """Wait until something holds; fails when it does not in time."""
    try:
        async with asyncio.timeout(seconds):
            while not holds():  # noqa: ASYNC110 - what is waited for is often no event
                await asyncio.sleep(0.005)
    except TimeoutError:
        raise AssertionError("it never came about") from None


@asynccontextmanager
async def running(work: Coroutine[Any, Any, Any]) -> AsyncIterator[asyncio.Task[Any]]:
    """Something that runs beside, cancelled at the end; what it raised before is raised then."""
    task = asyncio.create_task(work)
    try:
        yield task
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


def live_of(
    source: FixedSource,
    metrics: Metrics | None = None,
    *,
    store: LastGood | None = None,
    gate: Gate | None = None,
    **options: Any,
) -> LivePolicies:
    """Live policies on small trees: no packs, no patience."""
    wanted = Options(**{"packs": lambda name: None, "patience": 0.05, "now": Ticks(), **options})
    return LivePolicies(source, metrics or Metrics("test"), store=store, gate=gate, options=wanted)


def target(live: LivePolicies) -> int:
    """What the active revision answers."""
    value: int = live.graph.value("CPUSuppress.target", node={})
    return value
