"""Policies that one process publishes in the cluster for thousands of others, and the source that follows them.

Each revision stands in a ConfigMap of its own that never changes, named after the digest of its content. One more, the
pointer, names the newest. A follower hears of the pointer alone and fetches a revision once; it takes nothing whose
content does not have the digest that it is named by. Nobody who follows writes anything.
"""

import asyncio
import base64
import gzip
import io
import json
import logging
import random
from collections.abc import AsyncGenerator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from koordpolicy.kube.backoff import Backoff
from koordpolicy.kube.errors import AlreadyExists, KubeError, NotFound
from koordpolicy.kube.port import Cluster, MergePatch, Object
from koordpolicy.kube.resources import CONFIG_MAPS
from koordpolicy.runtime.policies.config_map import FollowedConfigMap
from koordpolicy.runtime.watching import until_changed
from koordpolicy.source.revision import Revision, SourceTrouble, digest_of

LOG: Final = logging.getLogger(__name__)

POINTER: Final = "koordpolicy-agents"
LABEL: Final = "koordpolicy.io/published-for"
_NOTHING_YET: Final = "NotPublished"
_POLICIES: Final = "policies.json.gz"
_TREE: Final = "tree"
_ABOVE: Final = "above"
"""Where something lies above the tree, both stand by these names; files of policies are never called so."""
NOTHING: Final[Mapping[str, str]] = MappingProxyType({})
_DIGITS: Final = 16
"""Of a digest, in names: which revision is meant; the whole digest is compared."""
_KEPT: Final = 3
"""Revisions that stay for followers that are slow."""
_MOST_PACKED: Final = 900 << 10
"""Bytes: an object of the API server takes 1 MiB, a third of it lost to base64."""
_MOST_UNPACKED: Final = 64 << 20
_SPREAD: Final = 5.0
"""Seconds over which followers fetch: they hear of a revision at the same moment."""


class NotPublishable(ValueError):
    """A tree that is too large for an object of the cluster."""


class NotAsNamed(ValueError):
    """An object that does not hold what its name says."""


@dataclass(frozen=True, slots=True)
class PublishedName:
    """What the pointer says: the digest of the published content, and the revision that it is a part of."""

    digest: str
    commit: str = ""

    @property
    def object_name(self) -> str:
        """The ConfigMap that holds it."""
        return f"{POINTER}-{self.digest[:_DIGITS]}"


class PolicyPublisher:
    """Keeps what is published, in one namespace. One process does."""

    def __init__(self, cluster: Cluster, namespace: str) -> None:
        self._cluster = cluster
        self._namespace = namespace

    async def publish(
        self, files: Mapping[str, str], commit: str, above: Mapping[str, str] = NOTHING
    ) -> PublishedName:
        """Make a tree, with what lies above it, the newest; nothing is written where it is.

        Raises KubeError, NotPublishable.
        """
        name = PublishedName(digest_of({**files, **above}), commit)
        found = await self._pointer()
        if found == name:
            return name
        packed = packed_files(files, above)
        body = {
            "metadata": {"name": name.object_name, "labels": {LABEL: "agent"}},
            "immutable": True,
            "data": {"digest": name.digest},
            "binaryData": {_POLICIES: base64.b64encode(packed).decode("ascii")},
        }
        with suppress(AlreadyExists):  # its content is what its name says: it was published before
            await self._cluster.create(CONFIG_MAPS, body, namespace=self._namespace)
        data = {"digest": name.digest, "commit": commit}
        if found is None:
            pointer = {"metadata": {"name": POINTER}, "data": data}
            try:
                await self._cluster.create(CONFIG_MAPS, pointer, namespace=self._namespace)
            except AlreadyExists:
                found = PublishedName("")
        if found is not None:
            await self._cluster.patch(
                CONFIG_MAPS, POINTER, MergePatch({"data": data}), namespace=self._namespace
            )
        await self._remove_old(name)
        return name

    async def _pointer(self) -> PublishedName | None:
        try:
            return pointed_at(await self._cluster.get(CONFIG_MAPS, POINTER, namespace=self._namespace))
        except NotFound:
            return None

    async def _remove_old(self, newest: PublishedName) -> None:
        page = await self._cluster.list(
            CONFIG_MAPS, namespace=self._namespace, label_selector=f"{LABEL}=agent"
        )
        old = [one for one in page.items if one["metadata"]["name"] != newest.object_name]
        old.sort(key=lambda one: str(one["metadata"].get("creationTimestamp", "")))
        for one in old[: max(len(old) - _KEPT, 0)]:
            try:
                await self._cluster.delete(CONFIG_MAPS, one["metadata"]["name"], namespace=self._namespace)
            except NotFound:
                continue


class PublishedSource:
    """Gives what is published in a namespace, each revision once."""

    def __init__(
        self, cluster: Cluster, namespace: str, backoff: Backoff, *, spread: float = _SPREAD
    ) -> None:
        self._pointer = FollowedConfigMap(cluster, namespace, POINTER, backoff)
        self.origin = self._pointer.place
        self._cluster = cluster
        self._namespace = namespace
        self._spread = spread
        self._backoff = backoff

    async def revisions(self) -> AsyncGenerator[Revision | SourceTrouble, None]:
        """See `Source.revisions`."""
        changed = self._pointer.changed
        last: Revision | SourceTrouble | None = None
        failures = 0
        async with self._pointer.followed() as watching:
            while True:
                await until_changed(changed, [watching])
                changed.clear()
                item = await self._now(last)
                if isinstance(item, SourceTrouble) and item.reason != _NOTHING_YET:
                    failures += 1
                    asyncio.get_running_loop().call_later(self._backoff.delay(failures), changed.set)
                elif item is not None:
                    failures = 0
                if item is not None and item != last:
                    last = item
                    yield item

    async def _now(self, last: Revision | SourceTrouble | None) -> Revision | SourceTrouble | None:
        pointer = self._pointer.get()
        if pointer is None:
            if self._pointer.synced:
                return SourceTrouble(_NOTHING_YET, "no manager has published policies for agents yet")
            return None if self._pointer.trouble is None else _trouble(self._pointer.trouble)
        try:
            name = pointed_at(pointer)
            if isinstance(last, Revision) and (last.digest, last.commit) == (name.digest, name.commit):
                return last
            if last is not None:
                await asyncio.sleep(random.random() * self._spread)  # noqa: S311  # spread, no secret
            found = await self._cluster.get(CONFIG_MAPS, name.object_name, namespace=self._namespace)
            files, above = await asyncio.to_thread(unpacked_files, found, name.digest)
        except NotFound as error:
            return SourceTrouble("NotFound", error.message)
        except KubeError as error:
            return _trouble(error)
        except NotAsNamed as error:
            return SourceTrouble("NotAsNamed", str(error))
        return Revision(files, name.digest, name.commit, above=above)


def _trouble(error: KubeError) -> SourceTrouble:
    return SourceTrouble(type(error).__name__, error.message)


def pointed_at(pointer: Object) -> PublishedName:
    """What a pointer names. Raises NotAsNamed."""
    data = pointer.get("data")
    found: Mapping[str, Any] = data if isinstance(data, Mapping) else {}
    digest, commit = found.get("digest"), found.get("commit", "")
    if not isinstance(digest, str) or not isinstance(commit, str) or len(digest) != 64:
        raise NotAsNamed(
            f"ConfigMap {POINTER} names no revision: `data.digest` has to be a SHA-256 in hexadecimal"
        )
    return PublishedName(digest, commit)


def packed_files(files: Mapping[str, str], above: Mapping[str, str] = NOTHING) -> bytes:
    """A tree as it is published, the same bytes for the same tree. Raises NotPublishable."""
    content = {_TREE: files, _ABOVE: above} if above else files
    packed = gzip.compress(json.dumps(content, sort_keys=True).encode(), mtime=0)
    if len(packed) > _MOST_PACKED * 3 // 4:
        raise NotPublishable(
            f"policies of {len(packed)} bytes, compressed, do not fit into a ConfigMap: let agents follow a directory or "
            "a repository"
        )
    return packed


def unpacked_files(obj: Object, digest: str) -> tuple[dict[str, str], dict[str, str]]:
    """The tree that a published object holds, and what lies above it. Raises NotAsNamed where the digest is another's."""
    held = obj.get("binaryData")
    try:
        packed = base64.b64decode((held if isinstance(held, Mapping) else {})[_POLICIES], validate=True)
        content = json.loads(_inflated(packed))
        layered = isinstance(content, dict) and content.keys() == {_TREE, _ABOVE}
        layers = [content[_TREE], content[_ABOVE]] if layered else [content, {}]
        good = all(isinstance(one, dict) and all(isinstance(t, str) for t in one.values()) for one in layers)
    except (LookupError, ValueError, OSError, EOFError, TypeError, RecursionError) as error:
        raise NotAsNamed(f"ConfigMap {obj['metadata']['name']} holds no policies: {error}") from error
    if not good or digest_of({**layers[0], **layers[1]}) != digest:
        raise NotAsNamed(f"ConfigMap {obj['metadata']['name']} does not hold what its digest says")
    return layers[0], layers[1]


def _inflated(packed: bytes) -> bytes:
    with gzip.open(io.BytesIO(packed)) as file:
        found = file.read(_MOST_UNPACKED + 1)
    if len(found) > _MOST_UNPACKED:
        raise ValueError("it is too large")
    return found
