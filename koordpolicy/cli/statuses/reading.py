"""The objects of a live cluster that tell how it fares."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from koordpolicy.cli.command import CannotRunError
from koordpolicy.cli.statuses.found import ClusterStatus, cluster_status
from koordpolicy.kube import resources
from koordpolicy.kube.errors import Forbidden, NotFound
from koordpolicy.kube.port import Object
from koordpolicy.kube.resources import Resource

_READ: Final = (
    resources.POLICY_REVISIONS,
    resources.LEASES,
    resources.NODES,
    resources.NODE_METRICS,
    resources.PODS,
)


@dataclass(slots=True)
class StatusReading:
    """How far the reading of a cluster has come."""

    listed: dict[str, Sequence[Object]] = field(default_factory=dict)
    absent: list[str] = field(default_factory=list)
    forbidden: list[str] = field(default_factory=list)
    asked: str = "its objects"

    def word(self) -> str:
        """What is waited for."""
        objects = sum(map(len, self.listed.values()))
        return f"still waiting for the cluster to list {self.asked}, after {objects:,} other objects"

    async def read(self, every: Callable[[Resource], Awaitable[Sequence[Object]]]) -> None:
        """Read all of it; `every` gives all objects of a resource. Raises KubeError, and `CannotRunError` where nothing may be read."""
        for resource in _READ:
            self.asked = resource.name
            try:
                self.listed[resource.plural] = await every(resource)
            except NotFound:
                self.absent.append(resource.name)
            except Forbidden:
                self.forbidden.append(resource.name)
        if len(self.forbidden) == len(_READ):
            raise CannotRunError(
                "you may list none of the objects that tell; bind the role `koordpolicy-snapshot`"
            )

    def status(self, now: int) -> ClusterStatus:
        """What was read, as it is `now`, in nanoseconds since 1970."""
        return cluster_status(self.listed, now, absent=self.absent, forbidden=self.forbidden)
