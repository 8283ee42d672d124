"""Keeps the NodeResourceTopology object of this node as its kernel, its kubelet and its pods are."""

import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from koordpolicy.agent.frame import NodeFrame
from koordpolicy.agent.node_strategies import cpu_pools
from koordpolicy.agent.reports.kubelet_settings import KubeletSettings, read_kubelet_settings
from koordpolicy.agent.reports.topology import GivenCPUs, NodeLayout, says, topology_of
from koordpolicy.agent.strategies.isolation import BE, LS
from koordpolicy.algorithms.cpu_pools import CPUPools
from koordpolicy.kube.errors import AlreadyExists, Conflict, KubeError
from koordpolicy.kube.port import Cluster, Object
from koordpolicy.kube.resources import NODE_RESOURCE_TOPOLOGIES
from koordpolicy.linux.errors import KernelFileError, NoSuchFile
from koordpolicy.linux.readings.cpu_info import read_cpu_facts
from koordpolicy.linux.readings.kubelet_cpus import read_kubelet_cpus
from koordpolicy.linux.readings.processes import read_memory_info, read_node_memory
from koordpolicy.linux.readings.topology import read_node_cpus
from koordpolicy.linux.root import KernelRoot
from koordpolicy.model.pod import Pod, owned_cpus
from koordpolicy.model.protocol import QOS_CLASS
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
        self.kubelet_cpus: Mapping[str, frozenset[int]] = {}
        """What it has given to pods by itself, by UID."""
        self.trouble = ""
        """Why the topology was not reported; empty when it was."""

    async def report(self, node: Object, frame: NodeFrame, standing: Object | None) -> bool:
        """Bring the object to what is found now; whether it was written. What cannot be told keeps the object as it is."""
        try:
            if self._configuration is not None:
                self.kubelet = read_kubelet_settings(await self._configuration())
            self.kubelet_cpus = self._given(frame)
            layout = self._layout(replace(frame, kubelet_cpus=self.kubelet_cpus))
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

    def _given(self, frame: NodeFrame) -> Mapping[str, frozenset[int]]:
        """What the kubelet has given to pods whose CPUs nobody else sees to. Raises `KernelFileError`."""
        if not self.kubelet.places_cpus:
            return {}
        try:
            found = read_kubelet_cpus(frame.kernel.root)
        except NoSuchFile as error:
            problem = "the kubelet places CPUs by itself (static), and its state is not here (--kubelet-dir)"
            raise NoSuchFile(error.path, problem, error.number) from error
        others = {uid for uid, one in frame.pods.items() if _is_placed_elsewhere(one.pod)}
        return {uid: cpus for uid, cpus in found.items() if uid not in others}

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
            tuple(_told(frame)),
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


def _is_placed_elsewhere(pod: Pod) -> bool:
    """Whether a pod's class shares CPUs, or the scheduler has given it its own."""
    try:
        return pod.labels.get(QOS_CLASS) in (LS, BE) or bool(owned_cpus(pod.annotations))
    except ObjectError:
        return False  # an unreadable allocation gives no CPUs


def _told(frame: NodeFrame) -> Iterator[GivenCPUs]:
    for uid, cpus in frame.kubelet_cpus.items():
        one = frame.pods.get(uid)
        yield GivenCPUs(uid, cpus) if one is None else GivenCPUs(uid, cpus, one.pod.namespace, one.pod.name)


def _memory(root: KernelRoot) -> Mapping[int, int]:
    """Bytes of each NUMA node; of a kernel that knows none, all of them are the first's. Raises `KernelFileError`."""
    zones = read_node_cpus(root)
    if not zones:
        return {0: read_memory_info(root).total}
    return {zone: read_node_memory(root, zone).total for zone in zones}
