"""What a live cluster tells of one pod beside its picture: Events of the pod, its node and its migrations, and what its owner asked for.

It is read when somebody asks, of that pod alone: nobody watches all Events of a cluster. What may not be read is told.
"""

import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeVar

from koordpolicy.console.worlds.world import PodBackground, ToldEvent
from koordpolicy.descheduler.migration.job import MigrationJob, read_job
from koordpolicy.diagnostics.wording import worded
from koordpolicy.kube.errors import Forbidden, KubeError, NotFound
from koordpolicy.kube.port import Cluster, Object
from koordpolicy.kube.resources import (
    DAEMON_SETS,
    EVENTS,
    JOBS,
    POD_MIGRATION_JOBS,
    PODS,
    REPLICA_SETS,
    REPLICATION_CONTROLLERS,
    STATEFUL_SETS,
    Resource,
)
from koordpolicy.kube.scrubbing import scrubbed
from koordpolicy.kube.snapshot import Snapshot
from koordpolicy.model.pod import Owner, Pod, read_pod
from koordpolicy.model.reading import ObjectError, embedded_object, integer, mapping, text, texts
from koordpolicy.model.time import NANOSECONDS, parse_time
from koordpolicy.model.unreadable import Unreadable, readable

ROLE: Final = "koordpolicy-console"
"""The role that permits what is read here."""
_OWNERS: Final[Mapping[str, Resource]] = {
    one.kind: one for one in (REPLICA_SETS, STATEFUL_SETS, DAEMON_SETS, JOBS, REPLICATION_CONTROLLERS)
}
_LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
_NAME: Final = re.compile(r"[a-z0-9]([-.a-z0-9]{0,251}[a-z0-9])?", re.ASCII)
_PAGE: Final = 500
_SHOWN: Final = 60
_JOBS: Final = 3
_LONGEST: Final = 2000
"""Characters of a message."""

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class _About:
    """An object that Events are about; `uid` empty for one whose Events are not told apart from those of others of its name."""

    kind: str
    namespace: str
    name: str
    uid: str = ""

    @property
    def words(self) -> str:
        """What people call it."""
        return f"{self.kind} {self.namespace}/{self.name}" if self.namespace else f"{self.kind} {self.name}"


async def read_beside(cluster: Cluster, name: str, picture: Snapshot) -> PodBackground:
    """What the cluster tells of the pod `namespace/name`. What cannot be read is told, and nothing is raised."""
    namespace, _, short = name.partition("/")
    if not _NAME.fullmatch(namespace) or not _NAME.fullmatch(short):
        # It would be more of a selector than that.
        return PodBackground(unknown=f"`{name}` is no name of a pod")
    pod = _pod(picture, namespace, short)
    missed: list[str] = []
    told: list[ToldEvent] = []
    for about in _abouts(pod, namespace, short, picture):
        found = await _permitted(partial(_events, cluster, about), missed)
        if found is None:
            break
        told += found
    events = None if missed else tuple(sorted(told, key=lambda one: one.last)[-_SHOWN:])
    submitted, source = (None, "") if pod is None else await _submitted(cluster, pod, missed)
    return PodBackground(events, "; ".join(missed), submitted, source)


async def _permitted(question: Callable[[], Awaitable[_T]], missed: list[str]) -> _T | None:
    """The answer, or None, and why in `missed`."""
    try:
        return await question()
    except Forbidden as error:
        missed.append(f"{worded(error)}: the ClusterRole `{ROLE}` permits it")
    except KubeError as error:
        missed.append(worded(error))
    except ObjectError as error:
        missed.append(str(error))
    return None


def _pod(picture: Snapshot, namespace: str, name: str) -> Pod | None:
    for obj in picture.pods:
        metadata = obj["metadata"]
        if metadata["name"] == name and (metadata.get("namespace") or "default") == namespace:
            found = readable(read_pod, obj)
            return None if isinstance(found, Unreadable) else found
    return None


def _abouts(pod: Pod | None, namespace: str, name: str, picture: Snapshot) -> Iterator[_About]:
    """The objects whose Events belong to the story of a pod."""
    yield _About("Pod", namespace, name, "" if pod is None else pod.uid)
    owner = None if pod is None else pod.controller
    if owner is not None:  # what webhooks tell of pods that have no name yet
        yield _About(owner.kind, namespace, owner.name, owner.uid)
    if pod is not None and pod.node_name:
        yield _About("Node", "", pod.node_name)
    jobs = (readable(read_job, obj) for obj in picture.of(POD_MIGRATION_JOBS))
    mine = [one for one in jobs if isinstance(one, MigrationJob) and one.pod == (namespace, name)]
    for job in mine[-_JOBS:]:
        yield _About("PodMigrationJob", "", job.name)


# --- Events -------------------------------------------------------------------------------------------


async def _events(cluster: Cluster, about: _About) -> list[ToldEvent]:
    """Raises `KubeError`."""
    selector = f"involvedObject.kind={about.kind},involvedObject.name={about.name}"
    page = await cluster.list(
        EVENTS, namespace=about.namespace or "default", field_selector=selector, limit=_PAGE
    )
    found = (_event(obj, about) for obj in page.items)
    told = [one for one in found if one is not None]
    # Of what others tell of owners and nodes nothing belongs to the pod.
    return told if about.kind == "Pod" else [one for one in told if one.ours]


def _event(obj: Object, about: _About) -> ToldEvent | None:
    """None for what is no Event as Kubernetes documents them."""
    try:
        involved, source, series = (mapping(obj, name) for name in ("involvedObject", "source", "series"))
        uid = text(involved, "uid", "involvedObject")
        times = [
            _seconds(text(parent, name))
            for parent, name in (
                (series, "lastObservedTime"),
                (obj, "lastTimestamp"),
                (obj, "eventTime"),
                (mapping(obj, "metadata"), "creationTimestamp"),
            )
        ]
        last = next((time for time in times if time), 0.0)
        first = _seconds(text(obj, "firstTimestamp")) or _seconds(text(obj, "eventTime")) or last
        return ToldEvent(
            about.words,
            text(obj, "reportingComponent") or text(source, "component", "source"),
            text(obj, "reason"),
            text(obj, "message")[:_LONGEST],
            text(obj, "type") == "Warning",
            max(integer(series, "count", "series") or integer(obj, "count") or 1, 1),
            first,
            last,
            bool(uid and about.uid and uid != about.uid),
        )
    except ObjectError:
        return None


def _seconds(said: str) -> float:
    try:
        return parse_time(said) / NANOSECONDS if said else 0.0
    except ValueError:
        return 0.0


# --- what was submitted -------------------------------------------------------------------------------


async def _submitted(cluster: Cluster, pod: Pod, missed: list[str]) -> tuple[Object | None, str]:
    """The pod as its owner asks for it, and where that stands; None where nobody keeps it."""
    owner = pod.controller
    if owner is None:
        return await _permitted(partial(_applied, cluster, pod), missed) or (None, "")
    resource = _OWNERS.get(owner.kind)
    if resource is None or owner.api_version != resource.api_version:
        return None, ""
    return await _permitted(partial(_template, cluster, resource, pod.namespace, owner), missed) or (None, "")


async def _template(
    cluster: Cluster, resource: Resource, namespace: str, owner: Owner
) -> tuple[Object | None, str]:
    """Raises `KubeError`."""
    try:
        obj = await cluster.get(resource, owner.name, namespace=namespace)
    except NotFound:
        return None, ""
    if owner.uid and mapping(obj, "metadata").get("uid") != owner.uid:
        return None, ""
    template = mapping(mapping(obj, "spec"), "template", "spec")
    return (_only_pod(template), f"the template of {owner.kind} {owner.name}") if template else (None, "")


async def _applied(cluster: Cluster, pod: Pod) -> tuple[Object | None, str]:
    """What `kubectl apply` noted at a pod that nobody owns. Raises `KubeError`."""
    found: Iterable[Object] = (
        await cluster.list(PODS, namespace=pod.namespace, field_selector=f"metadata.name={pod.name}")
    ).items
    for obj in found:
        try:
            noted = texts(mapping(obj, "metadata"), "annotations", "metadata").get(_LAST_APPLIED)
            if noted:
                return _only_pod(embedded_object(noted, _LAST_APPLIED)), "what `kubectl apply` sent last"
        except ObjectError:
            continue
    return None, ""


def _only_pod(obj: Any) -> Object:
    """Metadata and spec, without what may hold secrets."""
    kept: Object = scrubbed({name: obj.get(name) or {} for name in ("metadata", "spec")})
    return kept
