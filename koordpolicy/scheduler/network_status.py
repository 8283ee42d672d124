"""The status of the ClusterNetworkTopology: which places there are. Written by the scheduler that leads."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from koordpolicy.cluster.prepared import prepared
from koordpolicy.kube import Cluster, KubeError, MergePatch
from koordpolicy.kube.resources import CLUSTER_NETWORK_TOPOLOGIES
from koordpolicy.language.cel.errors import CelError
from koordpolicy.language.cel.values import Duration
from koordpolicy.model.time import NANOSECONDS
from koordpolicy.scheduler.plugins.gang.policy import KIND
from koordpolicy.scheduler.plugins.topology.status import place_details
from koordpolicy.scheduler.scheduler import Scheduler

LOG: Final = logging.getLogger(__name__)

_LEAST: Final = 1.0
_OTHERWISE: Final = 60.0
"""Seconds where no policy says how often."""


class NetworkStatus:
    """Keeps it up to date as long as there is a topology; what stands there already is not written again."""

    def __init__(
        self,
        scheduler: Scheduler,
        cluster: Cluster,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._scheduler = scheduler
        self._cluster = cluster
        self._sleep = sleep

    async def run(self) -> None:
        """Go on until cancelled. A write that fails is tried again when it is time for the next one."""
        while True:
            try:
                await self.write()
            except KubeError as problem:
                LOG.warning("the status of the cluster's network topology is not written: %s", problem)
            await self._sleep(self._every())

    def _every(self) -> float:
        """Seconds after which is looked again whether nodes stand elsewhere."""
        graph = self._scheduler.framework.graph
        try:
            found = prepared(graph, f"{KIND}.network.statusEvery").value({})
        except CelError:
            found = None
        return max(found.ns / NANOSECONDS, _LEAST) if isinstance(found, Duration) else _OTHERWISE

    async def write(self) -> bool:
        """Write the status if it is another one; whether that was so. Raises KubeError."""
        network = self._scheduler.cache.state.network
        topology = network.topology
        if topology is None:
            return False
        details = place_details(network.tree)
        if topology.details == details:
            return False
        patch = MergePatch({"status": {"detailStatus": details}})
        await self._cluster.patch(CLUSTER_NETWORK_TOPOLOGIES, topology.name, patch, subresource="status")
        return True
