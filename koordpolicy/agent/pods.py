"""The pods of this node: whom they are asked of, and what holds while nobody answers."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, Protocol

from koordpolicy.agent.collection import Collection
from koordpolicy.kube.errors import KubeError
from koordpolicy.kube.mirror import Mirror
from koordpolicy.kube.port import Object
from koordpolicy.model.time import NANOSECONDS

LOG: Final = logging.getLogger(__name__)

_LEAST_PAUSE: Final = 0.2
"""Seconds between two questions, however many pods begin."""


class PodSource(StrEnum):
    """Who tells of a node's pods."""

    KUBELET = "kubelet"
    API_SERVER = "apiserver"


class PodLister(Protocol):
    """A kubelet, as it is asked for its pods."""

    async def pods(self, seconds: float) -> Sequence[Object]:
        """The pods that it knows, in `seconds` at most. Raises KubeError."""
        ...


@dataclass(slots=True)
class PodAnswers:
    """When each source last told of the pods, in nanoseconds of a monotonic clock, and what was wrong since."""

    first: PodSource
    heard: dict[PodSource, int] = field(default_factory=dict)
    trouble: dict[PodSource, str] = field(default_factory=dict)
    began: int = 0

    def good(self, source: PodSource, now: int) -> None:
        """It has answered."""
        self.heard[source] = now
        self.trouble.pop(source, None)

    def age(self, now: int) -> int:
        """Nanoseconds since anybody told of the pods, or since we began to ask."""
        return now - max((*self.heard.values(), self.began))

    def source(self, now: int, stale_after: int) -> PodSource:
        """Whose word holds: the first one's, unless it was silent for too long and the other one was not."""
        other = next(one for one in PodSource if one is not self.first)
        if now - self.heard.get(self.first, self.began) <= stale_after or other not in self.heard:
            return self.first
        return other if self.heard[other] > self.heard.get(self.first, -1) else self.first


class KubeletPods:
    """Feeds a mirror with the kubelet's pods. An empty list is a kubelet that has just begun: what was known holds."""

    def __init__(
        self,
        kubelet: PodLister,
        mirror: Mirror,
        answers: PodAnswers,
        collection: Callable[[], Collection],
        clock: Callable[[], int],
    ) -> None:
        self._kubelet = kubelet
        self._mirror = mirror
        self._answers = answers
        self._collection = collection
        self._clock = clock
        self._wanted = asyncio.Event()

    def ask_now(self) -> None:
        """A pod is new or gone: do not wait for the next turn."""
        self._wanted.set()

    async def run(self) -> None:
        """Ask until cancelled."""
        while True:
            await self.ask()
            await asyncio.sleep(_LEAST_PAUSE)
            try:
                async with asyncio.timeout(
                    max(self._collection().pods_every / NANOSECONDS - _LEAST_PAUSE, 0)
                ):
                    await self._wanted.wait()
            except TimeoutError:
                pass
            self._wanted.clear()

    async def ask(self) -> bool:
        """Ask once; whether there was an answer that counts."""
        answers = self._answers
        try:
            pods = await self._kubelet.pods(self._collection().pods_timeout / NANOSECONDS)
        except KubeError as error:
            self._failed(error.message)
            return False
        if not pods and self._mirror.objects:
            self._failed("the kubelet says that it runs no pods, as it does after a restart")
            return False
        answers.good(PodSource.KUBELET, self._clock())
        self._mirror.replace((_without_version(pod) for pod in pods), "")
        return True

    def _failed(self, why: str) -> None:
        if PodSource.KUBELET not in self._answers.trouble:
            LOG.warning("the pods that are known hold: %s", why)
        self._answers.trouble[PodSource.KUBELET] = why


def _without_version(pod: Object) -> Object:
    """A kubelet knows the status of its pods before the API server does: the version does not tell states apart."""
    metadata = pod.get("metadata")
    if not isinstance(metadata, dict):
        return pod
    kept: dict[str, Any] = {key: value for key, value in metadata.items() if key != "resourceVersion"}
    return {**pod, "metadata": kept}
