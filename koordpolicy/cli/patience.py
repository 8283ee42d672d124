"""A word on what is waited for, where a cluster lets people wait long."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from koordpolicy.kube.port import Cluster
from koordpolicy.kube.resources import Resource
from koordpolicy.kube.snapshot import Snapshot, take_snapshot

T = TypeVar("T")

FIRST: Final = 5.0
"""Seconds of silence before the first word; each silence after it is twice as long."""


async def patiently(
    work: Coroutine[Any, Any, T], word: Callable[[], str], say: Callable[[str], None], first: float = FIRST
) -> T:
    """What comes of some work; while it lasts long, `word` is said of it now and then. Raises what the work raises."""
    task, silence = asyncio.create_task(work), first
    try:
        while not (await asyncio.wait([task], timeout=silence))[0]:
            say(word())
            silence *= 2
        return task.result()
    finally:
        task.cancel()


@dataclass(slots=True)
class _Reading:
    """How far the reading of a cluster has come."""

    asked: str = "its objects"
    objects: int = 0

    def on_asked(self, resource: Resource, objects: int) -> None:
        self.asked, self.objects = str(resource), objects

    def word(self) -> str:
        return f"still waiting for the cluster to list {self.asked}, after {self.objects:,} other objects"


async def snapshot_of(
    cluster: Cluster, now: int, say: Callable[[str], None], first: float = FIRST
) -> Snapshot:
    """A snapshot of a cluster; it is said how far that has come where it takes long. Raises `SnapshotError`."""
    reading = _Reading()
    return await patiently(take_snapshot(cluster, now, reading.on_asked), reading.word, say, first)
