"""Keeps the NodeResourceTopology object of this node as its kernel, its kubelet and its pods are."""

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from koordpolicy.agent.frame import NodeFrame
from koordpolicy.agent.node_strategies import cpu_pools
from koordpolicy.agent.reports.kubelet_settings import KubeletSettings, read_kubelet_settings
from koordpolicy.agent.reports.topology import NodeLayout, says, topology_of
from koordpolicy.algorithms.cpu_pools import CPUPools
from koordpolicy.kube.errors import AlreadyExists, Conflict, KubeError
from koordpolicy.kube.port import Cluster, Object
from koordpolicy.kube.resources import NODE_RESOURCE_TOPOLOGIES
from koordpolicy.linux.errors import KernelFileError
from koordpolicy.linux.readings.cpu_info import read_cpu_facts
from koordpolicy.linux.readings.processes import read_memory_info, read_node_memory
from koordpolicy.linux.readings.topology import read_node_cpus
from koordpolicy.linux.root import KernelRoot
from koordpolicy.model.reading import ObjectError

LOG: Final = logging.getLogger(__name__)

Configuration = Callable[[], Awaitable[Mapping[str, Any]]]
"""Asks the kubelet for its configuration. Raises KubeError."""


class TopologyReporter:
    """Reports for one node. `configuration` is None where no kubelet is asked: then it is taken to place no CPUs."""

    def __init__(self, cluster: Cluster, configuration: Configuration | None = None) -> None:
        self._cluster = cluster
        self._configuration = configuration
        self.kubelet = KubeletSettings()
        """As the kubelet said last."""
        self.pools: CPUPools | None = None
        """The CPUs that pods share, as found last."""
        self.trouble = ""
        """Why the topology was not reported; empty when it was."""

    async def report(self, node: Object, frame: NodeFrame, standing: Object | None) -> bool:
        """Bring the object to what is found now; whether it was written. What cannot be told keeps the object as it is."""
        try:
            if self._configuration is not None:
                self.kubelet = read_kubelet_settings(await self._configuration())
            if self.kubelet.places_cpus:
                self._say(
                    "the kubelet places CPUs by itself (static), and which ones only its own state says"
                )
                return False
            layout = self._layout(frame)
            self.pools = layout.pools
            wanted = topology_of(node, layout, standing)
            if says(standing, wanted):
                self._say("")
                return False
            await self._write(wanted, standing)
        except (AlreadyExists, Conflict):
            return False  # the watch tells of it before the next round
        except (KubeError, KernelFileError, ObjectError) as error:
            self._say(str(error))
            return False
        self._say("")
        return True

    def _layout(self, frame: NodeFrame) -> NodeLayout:
        if not frame.processors:
            raise ObjectError("the CPUs of this node are not known")
        root = frame.kernel.root
        return NodeLayout(
            frame.processors,
            cpu_pools(frame),
            read_cpu_facts(root, frame.processors),
            _memory(root),
            self.kubelet,
        )

    async def _write(self, wanted: Object, standing: Object | None) -> None:
        if standing is None:
            await self._cluster.create(NODE_RESOURCE_TOPOLOGIES, wanted)
        else:
            await self._cluster.update(NODE_RESOURCE_TOPOLOGIES, wanted)

    def _say(self, trouble: str) -> None:
        if trouble and trouble != self.trouble:
            LOG.warning("the topology of the node is not reported: %s", trouble)
        self.trouble = trouble


def _memory(root: KernelRoot) -> Mapping[int, int]:
    """Bytes of each NUMA node; of a kernel that knows none, all of them are the first's. Raises `KernelFileError`."""
    zones = read_node_cpus(root)
    if not zones:
        return {0: read_memory_info(root).total}
    return {zone: read_node_memory(root, zone).total for zone in zones}
