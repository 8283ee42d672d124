"""Policies that one process publishes in the cluster for thousands of others, and the source that follows them.

Each revision stands in a ConfigMap of its own that never changes, named after the digest of its content. One more, the
pointer, names the newest, and beside it the one that a rollout holds back with how far it lets it go. A follower hears
of the pointer alone and fetches a revision once; it takes nothing whose content does not have the digest that it is named by.
Nobody who follows writes anything.
"""

import asyncio
import base64
import gzip
import io
import json
import random
from collections.abc import AsyncGenerator, Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Final

from koordpolicy.kube.backoff import Backoff
from koordpolicy.kube.errors import KubeError, NotFound
from koordpolicy.kube.port import Cluster, Object
from koordpolicy.kube.resources import CONFIG_MAPS
from koordpolicy.model.reading import ObjectError
from koordpolicy.runtime.policies.config_map import FollowedConfigMap
from koordpolicy.runtime.policies.held import HeldReach, HeldRevision, read_held
from koordpolicy.runtime.watching import until_changed
from koordpolicy.source.revision import Revision, SourceTrouble, digest_of

POINTER: Final = "koordpolicy-agents"
LABEL: Final = "koordpolicy.io/published-for"
_NOTHING_YET: Final = "NotPublished"
POLICIES: Final = "policies.json.gz"
"""The key of an object under which its content is."""
_TREE: Final = "tree"
_ABOVE: Final = "above"
"""Where something lies above the tree, both stand by these names; files of policies are never called so."""
HELD: Final = "held"
"""The key of the pointer under which that is."""
NOTHING: Final[Mapping[str, str]] = MappingProxyType({})
_DIGITS: Final = 16
"""Of a digest, in names: which revision is meant; the whole digest is compared."""
_MOST_PACKED: Final = 900 << 10
"""Bytes: an object of the API server takes 1 MiB, a third of it lost to base64."""
_MOST_UNPACKED: Final = 64 << 20
_SPREAD: Final = 5.0
"""Seconds over which followers fetch: they hear of a revision at the same moment."""
_NONE: Final = Revision({}, "")


class NotPublishable(ValueError):
    """A tree that is too large for an object of the cluster."""


class NotAsNamed(ValueError):
    """An object that does not hold what its name says."""


@dataclass(frozen=True, slots=True)
class PublishedName:
    """What the pointer says: the digest of the published content, and the revision that it is a part of.

    `held` is the revision that a rollout holds back beside it.
    """

    digest: str
    commit: str = ""
    held: HeldRevision | None = None

    @property
    def object_name(self) -> str:
        """The ConfigMap that holds it."""
        return object_name(self.digest)


def object_name(digest: str) -> str:
    """The ConfigMap that holds the content of a digest."""
    return f"{POINTER}-{digest[:_DIGITS]}"


class PublishedSource:
    """Gives what is published in a namespace, each revision once.

    Beside the one that is for all it gives the one that a rollout holds back, as held; `reach` is told how far that is let go.
    """

    def __init__(
        self,
        cluster: Cluster,
        namespace: str,
        backoff: Backoff,
        *,
        spread: float = _SPREAD,
        reach: HeldReach | None = None,
    ) -> None:
        self._pointer = FollowedConfigMap(cluster, namespace, POINTER, backoff)
        self.origin = self._pointer.place
        self._cluster = cluster
        self._namespace = namespace
        self._spread = spread
        self._backoff = backoff
        self._reach = reach
        self._fetched: dict[str, Revision] = {}
        """By digest, as far as the pointer names them."""

    async def revisions(self) -> AsyncGenerator[Revision | SourceTrouble, None]:
        """See `Source.revisions`."""
        changed = self._pointer.changed
        given = _GivenRevisions()
        failures = 0
        async with self._pointer.followed() as watching:
            while True:
                await until_changed(changed, [watching])
                changed.clear()
                found = await self._now()
                if isinstance(found, SourceTrouble) and found.reason != _NOTHING_YET:
                    failures += 1
                    asyncio.get_running_loop().call_later(self._backoff.delay(failures), changed.set)
                elif found is not None:
                    failures = 0
                for item in () if found is None else given.after(found):
                    yield item

    async def _now(self) -> "_PublishedRevisions | SourceTrouble | None":
        pointer = self._pointer.get()
        if pointer is None:
            if self._pointer.synced:
                return SourceTrouble(_NOTHING_YET, "no manager has published policies for agents yet")
            return None if self._pointer.trouble is None else _trouble(self._pointer.trouble)
        try:
            name = pointed_at(pointer)
            held = None if self._reach is None else name.held
            found = _PublishedRevisions(
                await self._revision(name.digest, name.commit),
                None if held is None else replace(await self._revision(held.digest, held.commit), held=True),
            )
        except NotFound as error:
            return SourceTrouble("NotFound", error.message)
        except KubeError as error:
            return _trouble(error)
        except NotAsNamed as error:
            return SourceTrouble("NotAsNamed", str(error))
        named = {name.digest, "" if held is None else held.digest}
        self._fetched = {digest: one for digest, one in self._fetched.items() if digest in named}
        if self._reach is not None:
            self._reach.say(held)
        return found

    async def _revision(self, digest: str, commit: str) -> Revision:
        """A revision that the pointer names, fetched where it is not there. Raises KubeError, NotAsNamed."""
        known = self._fetched.get(digest)
        if known is None:
            if self._fetched:
                await asyncio.sleep(random.random() * self._spread)  # noqa: S311  # spread, no secret
            found = await self._cluster.get(CONFIG_MAPS, object_name(digest), namespace=self._namespace)
            files, above = await asyncio.to_thread(unpacked_files, found, digest)
            known = self._fetched[digest] = Revision(files, digest, above=above)
        return replace(known, commit=commit)


@dataclass(frozen=True, slots=True)
class _PublishedRevisions:
    """What the pointer names: the revision that is for all, and the one that is held."""

    active: Revision
    held: Revision | None


class _GivenRevisions:
    """What a follower was given, and so what there is to give it."""

    def __init__(self) -> None:
        self._good = _PublishedRevisions(_NONE, None)
        self._trouble: SourceTrouble | None = None

    def after(self, found: _PublishedRevisions | SourceTrouble) -> Iterator[Revision | SourceTrouble]:
        """What is to be given now: of a rollout that ends the active revision again, of one that goes on nothing."""
        trouble = self._trouble
        if isinstance(found, SourceTrouble):
            self._trouble = found
            if found != trouble:
                yield found
            return
        before, self._good, self._trouble = self._good, found, None
        again = trouble is not None
        anew = found.active != before.active
        if anew or (found.held is None and (again or before.held is not None)):
            yield found.active
        if found.held is not None and (anew or again or found.held != before.held):
            yield found.held


def _trouble(error: KubeError) -> SourceTrouble:
    return SourceTrouble(type(error).__name__, error.message)


def pointed_at(pointer: Object) -> PublishedName:
    """What a pointer names. Raises NotAsNamed."""
    data = pointer.get("data")
    found: Mapping[str, Any] = data if isinstance(data, Mapping) else {}
    digest, commit, held = found.get("digest"), found.get("commit", ""), found.get(HELD, "")
    if not isinstance(digest, str) or not isinstance(commit, str) or len(digest) != 64:
        raise NotAsNamed(
            f"ConfigMap {POINTER} names no revision: `data.digest` has to be a SHA-256 in hexadecimal"
        )
    try:
        return PublishedName(digest, commit, read_held(held) if isinstance(held, str) and held else None)
    except ObjectError as error:
        raise NotAsNamed(f"ConfigMap {POINTER} holds no revision back that can be read: {error}") from None


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
        packed = base64.b64decode((held if isinstance(held, Mapping) else {})[POLICIES], validate=True)
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
