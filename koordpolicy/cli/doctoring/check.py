"""What one look at a cluster found."""

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from koordpolicy.kube.api.cluster import ApiCluster
from koordpolicy.kube.errors import Forbidden, KubeError, NotFound, Unreachable
from koordpolicy.kube.listing import every_object
from koordpolicy.kube.port import Object
from koordpolicy.kube.resources import Resource

PART_OF: Final = "app.kubernetes.io/part-of=koordpolicy"


class CheckOutcome(StrEnum):
    """How serious it is. UNKNOWN could not be found out, ABSENT is not there and need not be."""

    GOOD = "ok"
    ABSENT = "absent"
    UNKNOWN = "unknown"
    WARNING = "warning"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class ClusterCheck:
    """`subject` is what was looked at, `message` what was found, `remedy` what to do about it."""

    subject: str
    outcome: CheckOutcome
    message: str
    remedy: str = ""


@dataclass(slots=True)
class Examination:
    """A cluster that is looked at. `namespace` is where koordpolicy's processes run, `now` gives nanoseconds since 1970."""

    cluster: ApiCluster
    namespace: str
    now: Callable[[], int]
    _lists: dict[Resource, list[Object] | KubeError] = field(default_factory=dict)

    async def all(self, resource: Resource) -> list[Object]:
        """All objects of a resource, asked for once. Raises KubeError, each time."""
        if resource not in self._lists:
            try:
                self._lists[resource] = await every_object(self.cluster, resource)
            except KubeError as error:
                self._lists[resource] = error
        found = self._lists[resource]
        if isinstance(found, KubeError):
            raise found
        return found


Part = Callable[[Examination], Awaitable[Iterable[ClusterCheck]]]
"""Looks at one part. What it cannot find out it says as UNKNOWN; it may raise KubeError."""


async def looked_at(part: Part, subject: str, examination: Examination) -> list[ClusterCheck]:
    """What a part found; one that the cluster does not let look is unknown."""
    try:
        return list(await part(examination))
    except Forbidden as error:
        return [ClusterCheck(subject, CheckOutcome.UNKNOWN, error.message, "ask as somebody who may read it")]
    except Unreachable:
        raise  # that is no finding about a part
    except KubeError as error:
        return [ClusterCheck(subject, CheckOutcome.FAILED, str(error))]


async def served(examination: Examination, resource: Resource) -> bool:
    """Whether the server has such a resource. Raises KubeError."""
    try:
        await examination.cluster.list(resource, limit=1)
    except NotFound:
        return False
    return True


def name_of(obj: Any) -> str:
    """Of any object, however it looks."""
    return str((obj.get("metadata") or {}).get("name") or "")


def runs(workload: Any) -> bool:
    """Whether anything of it is wanted: a Deployment of 0 replicas is out of the way."""
    return (workload.get("spec") or {}).get("replicas") != 0
