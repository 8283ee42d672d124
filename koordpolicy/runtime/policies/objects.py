"""Policy objects in the cluster, as Flux, Argo CD or kubectl apply them, as a source of revisions."""

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from koordpolicy.kube.backoff import Backoff
from koordpolicy.kube.errors import NotFound
from koordpolicy.kube.listing import every_object
from koordpolicy.kube.mirror import Key, Mirror, ObjectChange
from koordpolicy.kube.port import Cluster, Object
from koordpolicy.kube.resources import POLICIES, Resource
from koordpolicy.language.kinds import KINDS
from koordpolicy.model.unreadable import Unreadable, readable
from koordpolicy.runtime.clock import monotonic
from koordpolicy.runtime.policies.manifest import manifest, manifest_path
from koordpolicy.runtime.watching import Watching, until_changed
from koordpolicy.source.revision import Revision, SourceTrouble, digest_of

ORIGIN: Final = "cluster"
"""Where policies are from that are objects."""

REVISION_ANNOTATION: Final = "koordpolicy.io/revision"
"""The Git commit that an object was applied from. A revision has a commit where all its objects agree on one."""

_COMMIT: Final = re.compile(r"(?:^|[:@/])([0-9a-f]{64}|[0-9a-f]{40})$")

KNOWN: Final = tuple(resource for resource in POLICIES if resource.kind in KINDS)
"""The resources of the kinds that we can compile."""


@dataclass(frozen=True, slots=True)
class Settling:
    """Seconds: quiet for `quiet` after the last change, but never longer than `longest` after the first."""

    quiet: float = 0.3
    longest: float = 2.0


@dataclass(slots=True)
class _Kind:
    """One followed kind, and its objects' texts by name, each made once a version."""

    watching: Watching
    texts: dict[str, tuple[str, str | Unreadable]] = field(default_factory=dict)

    @property
    def resource(self) -> Resource:
        return self.watching.resource

    @property
    def objects(self) -> Mapping[Key, Object]:
        return self.watching.mirror.objects


class ClusterSource:
    """Gives the policy objects of a cluster, one tree of all kinds, after each burst of changes.

    A kind whose CustomResourceDefinition is not there counts as one without objects, and is looked for again.
    No objects at all are a trouble, not a revision: whoever wants the pack alone applies a PolicyBundle that
    extends it.
    """

    def __init__(
        self,
        cluster: Cluster,
        backoff: Backoff,
        *,
        settling: Settling = Settling(),
        resources: Iterable[Resource] = KNOWN,
    ) -> None:
        self.origin = ORIGIN
        self._settling = settling
        self._changed = asyncio.Event()
        self._last_change = 0.0
        self._listeners: list[Callable[[], None]] = []
        self._kinds: list[_Kind] = [self._kind(cluster, resource, backoff) for resource in resources]

    def _kind(self, cluster: Cluster, resource: Resource, backoff: Backoff) -> _Kind:
        mirror = Mirror(handlers=[self._noticed])
        return _Kind(Watching(cluster, resource, mirror, backoff, on_change=self._notice))

    def subscribe(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Tell when objects changed, their status included. Gives the way to end it."""
        self._listeners.append(callback)
        return lambda: self._listeners.remove(callback)

    @property
    def objects(self) -> Mapping[str, Object]:
        """The objects as last heard of, by path."""
        return {
            manifest_path(kind.resource.kind, name): obj
            for kind in self._kinds
            for (_, name), obj in kind.objects.items()
        }

    def texts(self) -> dict[str, str]:
        """The objects as last heard of, as texts by path; those are left out that have none."""
        files: dict[str, str] = {}
        for kind in self._kinds:
            for (_, name), obj in kind.objects.items():
                text = self._text(kind, name, obj)
                if not isinstance(text, Unreadable):
                    files[manifest_path(kind.resource.kind, name)] = text
            for name in kind.texts.keys() - {name for _, name in kind.objects}:
                del kind.texts[name]
        return files

    async def revisions(self) -> AsyncIterator[Revision | SourceTrouble]:
        """See `Source.revisions`."""
        tasks = [
            asyncio.create_task(kind.watching.run(), name=f"follow {kind.resource}") for kind in self._kinds
        ]
        try:
            last: Revision | SourceTrouble | None = None
            while True:
                await self._news(tasks)
                item = self._now()
                if item is not None and not _same(item, last):
                    last = item
                    yield item
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _news(self, tasks: list[asyncio.Task[None]]) -> None:
        """Return after a burst of changes. Raises what ended a watch for good."""
        await until_changed(self._changed, tasks)
        first = monotonic()
        while True:
            wait = self._last_change + self._settling.quiet - monotonic()
            if wait <= 0 or monotonic() - first >= self._settling.longest:
                break
            await asyncio.sleep(min(wait, self._settling.longest))
        self._changed.clear()

    def _now(self) -> Revision | SourceTrouble | None:
        """The revision that the mirrors show; None while some have not shown a whole list."""
        waiting = [kind.watching for kind in self._kinds if not kind.watching.settled.is_set()]
        if waiting:
            error = next((one.trouble for one in waiting if one.trouble is not None), None)
            return SourceTrouble(type(error).__name__, str(error)) if error is not None else None
        files = self.texts()
        for kind in self._kinds:
            for name, (_, text) in kind.texts.items():
                if isinstance(text, Unreadable):
                    return _unreadable(kind.resource, name, text)
        return _revision(files, (obj for kind in self._kinds for obj in kind.objects.values()))

    @staticmethod
    def _text(kind: _Kind, name: str, obj: Object) -> str | Unreadable:
        """The object's text, made once a version."""
        version = str(obj["metadata"].get("resourceVersion", ""))
        known = kind.texts.get(name)
        if known is None or known[0] != version:
            known = kind.texts[name] = (version, _text(kind.resource, obj))
        return known[1]

    def _noticed(self, change: ObjectChange) -> None:
        for tell in tuple(self._listeners):
            tell()
        if not (change.old and change.new and _says_the_same(change.old, change.new)):
            self._notice()

    def _notice(self) -> None:
        self._last_change = monotonic()
        self._changed.set()


async def read_policies(cluster: Cluster) -> Revision | SourceTrouble:
    """The policy objects of a cluster as they are now, as `ClusterSource` gives them. Raises KubeError."""
    files: dict[str, str] = {}
    found: list[Object] = []
    for resource in KNOWN:
        try:
            items = await every_object(cluster, resource)
        except NotFound:
            continue  # a kind that is not installed has no objects
        found += items
        for obj in items:
            name, text = str(obj["metadata"]["name"]), _text(resource, obj)
            if isinstance(text, Unreadable):
                return _unreadable(resource, name, text)
            files[manifest_path(resource.kind, name)] = text
    return _revision(files, found)


def _revision(files: Mapping[str, str], objects: Iterable[Object]) -> Revision | SourceTrouble:
    """What objects and their texts make; a commit where all agree on one."""
    if not files:
        return SourceTrouble("NoPolicies", "there are no policy objects in the cluster")
    commits = {_commit(obj) for obj in objects}
    commit = commits.pop() if len(commits) == 1 else ""
    return Revision(dict(sorted(files.items())), digest_of(files), commit)


def _text(resource: Resource, obj: Object) -> str | Unreadable:
    """An object as a document."""
    return readable(manifest, {"apiVersion": resource.api_version, "kind": resource.kind, **obj})


def _unreadable(resource: Resource, name: str, why: Unreadable) -> SourceTrouble:
    return SourceTrouble("UnreadableObject", f"{resource.kind} `{name}` is unreadable: {why.reason}")


def _says_the_same(old: Object, new: Object) -> bool:
    """Whether two versions differ in nothing that matters here, as after a write of the status."""
    before, after = old["metadata"], new["metadata"]
    return before.get("generation") is not None and all(
        before.get(field) == after.get(field) for field in ("generation", "labels", "annotations")
    )


def _commit(obj: Object) -> str:
    """The commit an object was applied from, "" where it does not say. Flux writes `main@sha1:<commit>`."""
    said = obj["metadata"].get("annotations")
    found = _COMMIT.search(str(said.get(REVISION_ANNOTATION, "") if isinstance(said, Mapping) else ""))
    return found[1] if found else ""


def _same(item: Revision | SourceTrouble, last: Revision | SourceTrouble | None) -> bool:
    if isinstance(item, Revision) and isinstance(last, Revision):
        return (item.digest, item.commit) == (last.digest, last.commit)
    return item == last
