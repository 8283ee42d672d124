"""A local copy of one resource that a component follows, ready once the cluster has answered for it."""

import asyncio
import logging
from collections.abc import Callable, Collection
from typing import Final

from koordpolicy.kube.backoff import Backoff
from koordpolicy.kube.errors import KubeError, NotFound
from koordpolicy.kube.informer import Informer
from koordpolicy.kube.mirror import Mirror
from koordpolicy.kube.port import Cluster
from koordpolicy.kube.resources import Resource

LOG: Final = logging.getLogger(__name__)


class Watching:
    """Feeds a mirror while `run` runs.

    A resource whose definition is not installed counts as one without objects, and is looked for again:
    `settled` is set when either is known. `trouble` is why the cluster could not be asked last, until it can.
    """

    def __init__(
        self,
        cluster: Cluster,
        resource: Resource,
        mirror: Mirror,
        backoff: Backoff,
        *,
        field_selector: str = "",
        on_change: Callable[[], None] = lambda: None,
    ) -> None:
        self.resource = resource
        self.mirror = mirror
        self.settled = asyncio.Event()
        self.trouble: KubeError | None = None
        self._told = False
        self._on_change = on_change
        self._informer = Informer(
            cluster, resource, mirror, backoff, field_selector=field_selector, on_trouble=self._heard
        )

    async def run(self) -> None:
        """Follow until cancelled. Raises what no waiting would mend."""
        watching = asyncio.create_task(self._informer.run(), name=f"watch {self.resource}")
        synced = asyncio.create_task(self._informer.wait_synced())
        try:
            await asyncio.wait([synced, watching], return_when=asyncio.FIRST_COMPLETED)
            if self._informer.synced:
                self._settle()
            await watching
        finally:
            for task in (synced, watching):
                task.cancel()
            await asyncio.gather(synced, watching, return_exceptions=True)

    def _settle(self) -> None:
        self.trouble = None
        self.settled.set()
        self._on_change()

    def _heard(self, error: KubeError, failures: int) -> None:
        if isinstance(error, NotFound):
            if not self._told:
                LOG.info("the cluster does not know %s; it counts as empty", self.resource)
                self._told = True
            if self.mirror.objects:
                self.mirror.replace((), "")
            if not self.settled.is_set():
                self._settle()
            return
        if failures == 1:
            LOG.warning("%s cannot be followed: %s", self.resource, error)
        self.trouble = error
        if not self.settled.is_set():
            self._on_change()


async def until_changed(changed: asyncio.Event, watches: Collection[asyncio.Task[None]]) -> None:
    """Wait until something has changed. Raises what ended a watch for good."""
    waiting = asyncio.create_task(changed.wait())
    try:
        await asyncio.wait([waiting, *watches], return_when=asyncio.FIRST_COMPLETED)
    finally:
        waiting.cancel()
    for watch in watches:
        if watch.done():
            watch.result()
