"""One ConfigMap of a cluster, followed while its source is."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from koordpolicy.kube.backoff import Backoff
from koordpolicy.kube.errors import KubeError
from koordpolicy.kube.informer import Informer
from koordpolicy.kube.mirror import Mirror
from koordpolicy.kube.port import Cluster, Object
from koordpolicy.kube.resources import CONFIG_MAPS


class FollowedConfigMap:
    """The ConfigMap of a name in a namespace, as it was heard of last while it is followed.

    `changed` is set whenever there is something to look at: another version, the first answer, a trouble.
    `trouble` is what a request failed with last.
    """

    def __init__(self, cluster: Cluster, namespace: str, name: str, backoff: Backoff) -> None:
        self.place = f"ConfigMap/{namespace}/{name}"
        self.changed = asyncio.Event()
        self.trouble: KubeError | None = None
        self._key = (name, namespace)
        self._mirror = Mirror(handlers=[lambda _: self.changed.set()])
        self._informer = Informer(
            cluster,
            CONFIG_MAPS,
            self._mirror,
            backoff,
            namespace=namespace,
            field_selector=f"metadata.name={name}",
            on_trouble=self._heard,
        )

    @property
    def synced(self) -> bool:
        """Whether it is known if there is one."""
        return self._informer.synced

    def get(self) -> Object | None:
        """The object; None where there is none, or none was heard of yet."""
        return self._mirror.get(*self._key)

    @asynccontextmanager
    async def followed(self) -> AsyncIterator[asyncio.Task[None]]:
        """Follow it; gives the task that does, which ends by what no waiting would mend."""
        watching = asyncio.create_task(self._informer.run(), name=f"follow {self.place}")
        synced = asyncio.create_task(self._informer.wait_synced())
        synced.add_done_callback(lambda _: self.changed.set())
        try:
            yield watching
        finally:
            for task in (watching, synced):
                task.cancel()
            await asyncio.gather(watching, synced, return_exceptions=True)

    def _heard(self, error: KubeError, _failures: int) -> None:
        self.trouble = error
        self.changed.set()
