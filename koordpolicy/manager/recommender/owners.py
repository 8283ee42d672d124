"""Which workload a pod belongs to: its controller, and what controls that, as far as the API server says.

Nothing is watched for it: a cluster has ten old ReplicaSets for each that runs, and who controls one never changes. Each is
read once, when a pod of it is first reported.
"""

from collections import OrderedDict
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from koordpolicy.kube import resources
from koordpolicy.kube.errors import NotFound
from koordpolicy.kube.port import Cluster, Object
from koordpolicy.kube.resources import Resource
from koordpolicy.model.pod import Owner, Pod, read_owner
from koordpolicy.model.reading import mapping, objects
from koordpolicy.model.unreadable import Unreadable, readable

WorkloadName = tuple[str, str]
"""Kind and name."""

CONTROLLED: Final[Mapping[str, Resource]] = MappingProxyType(
    {"ReplicaSet": resources.REPLICA_SETS, "Job": resources.JOBS}
)
"""Kinds of controllers that others control: Deployments, CronJobs."""

_MOST: Final = 200_000
"""Controllers that are remembered, about 300 bytes each."""


class Owners:
    """Who controls the controllers of pods. `unknown` is told of each that is to be looked up, as `namespace/Kind/name`."""

    def __init__(self, unknown: Callable[[str], None]) -> None:
        self._unknown = unknown
        self._known: OrderedDict[tuple[str, str, str], WorkloadName | None] = OrderedDict()

    def chain(self, pod: Pod) -> tuple[tuple[WorkloadName, ...], bool]:
        """The pod itself and those that control it, and whether these are all: others are being looked up."""
        chain: list[WorkloadName] = [("Pod", pod.name)]
        owner = pod.controller
        if owner is None:
            return tuple(chain), True
        chain.append((owner.kind, owner.name))
        if owner.kind not in CONTROLLED:
            return tuple(chain), True
        key = (pod.namespace, owner.kind, owner.name)
        if key not in self._known:
            self._unknown("/".join(key))
            return tuple(chain), False
        self._known.move_to_end(key)
        above = self._known[key]
        if above is not None:
            chain.append(above)
        return tuple(chain), True

    async def look_up(self, cluster: Cluster, name: str) -> bool:
        """Ask the API server about a controller. Raises KubeError. Nothing is written: False."""
        namespace, kind, controller = name.split("/", 2)
        try:
            found = await cluster.get(CONTROLLED[kind], controller, namespace=namespace)
        except NotFound:
            above = None  # it is gone, and its pods will be
        else:
            read = readable(_controller_of, found)
            above = None if isinstance(read, Unreadable) else read
        self._known[namespace, kind, controller] = above
        while len(self._known) > _MOST:
            self._known.popitem(last=False)
        return False

    def clear(self) -> None:
        """Forget all."""
        self._known.clear()


def _controller_of(obj: Object) -> WorkloadName | None:
    metadata = mapping(obj, "metadata")
    owners: list[Owner] = [read_owner(one) for one in objects(metadata, "ownerReferences", "metadata")]
    return next(((one.kind, one.name) for one in owners if one.controller), None)
