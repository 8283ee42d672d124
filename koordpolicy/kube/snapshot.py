"""A snapshot: a cluster's objects at rest in one file, so that policies can be asked about them anywhere.

Kept is what decisions may read (`scrubbing` says what that is not). Secrets and ConfigMaps are not even asked for.
"""

import asyncio
import gzip
import hashlib
import json
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from os import SEEK_END
from pathlib import Path
from typing import Any, Final

from koordpolicy.files import replace_file
from koordpolicy.kube.errors import Forbidden, KubeError, NotFound
from koordpolicy.kube.listing import every_object
from koordpolicy.kube.port import Cluster, Object
from koordpolicy.kube.resources import (
    CLUSTER_COLOCATION_PROFILES,
    CLUSTER_NETWORK_TOPOLOGIES,
    CSI_DRIVERS,
    CSI_NODES,
    CSI_STORAGE_CAPACITIES,
    DEVICES,
    ELASTIC_QUOTA_PROFILES,
    ELASTIC_QUOTAS,
    KUBERNETES_POD_GROUPS,
    NAMESPACES,
    NODE_METRICS,
    NODE_RESOURCE_TOPOLOGIES,
    NODE_SLOS,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    POD_DISRUPTION_BUDGETS,
    POD_GROUPS,
    POD_MIGRATION_JOBS,
    PODS,
    PRIORITY_CLASSES,
    REPLICA_SETS,
    REPLICATION_CONTROLLERS,
    RESERVATIONS,
    SERVICES,
    STATEFUL_SETS,
    STORAGE_CLASSES,
    VOLUME_ATTACHMENTS,
    Resource,
)
from koordpolicy.kube.scrubbing import scrubbed_object
from koordpolicy.model.reading import parse_json
from koordpolicy.model.time import time_text

FORMAT: Final = "koordpolicy-snapshot"
VERSION: Final = 1

KEPT: Final = (
    NODES,
    PODS,
    NAMESPACES,
    PRIORITY_CLASSES,
    NODE_METRICS,
    NODE_SLOS,
    NODE_RESOURCE_TOPOLOGIES,
    CLUSTER_NETWORK_TOPOLOGIES,
    ELASTIC_QUOTAS,
    ELASTIC_QUOTA_PROFILES,
    POD_GROUPS,
    KUBERNETES_POD_GROUPS,
    DEVICES,
    RESERVATIONS,
    POD_MIGRATION_JOBS,
    POD_DISRUPTION_BUDGETS,
    STORAGE_CLASSES,
    CSI_DRIVERS,
    CSI_NODES,
    CSI_STORAGE_CAPACITIES,
    PERSISTENT_VOLUMES,
    PERSISTENT_VOLUME_CLAIMS,
    VOLUME_ATTACHMENTS,
    SERVICES,
    REPLICATION_CONTROLLERS,
    REPLICA_SETS,
    STATEFUL_SETS,
    CLUSTER_COLOCATION_PROFILES,
)
"""What a snapshot holds, in the order of the file."""

_MOST_BYTES: Final = 1 << 30
_AT_ONCE: Final = 1 << 20
_SLICE: Final = 0.02
"""Seconds of work on objects in one go."""
_COMPRESSED: Final = b"\x1f\x8b"


class SnapshotError(Exception):
    """A snapshot cannot be taken, read or written; the message says what to do."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Objects by the name of their resource (`nodes`, `nodemetrics.slo.koordinator.sh`).

    `taken` is in nanoseconds since 1970; `absent` are resources that the cluster does not serve.
    """

    taken: int
    objects: Mapping[str, Sequence[Object]]
    absent: tuple[str, ...] = field(default=())

    def of(self, resource: Resource) -> Sequence[Object]:
        """The objects of a resource; none where the cluster has none, or does not serve it."""
        return self.objects.get(str(resource), ())

    @property
    def nodes(self) -> Sequence[Object]:
        return self.of(NODES)

    @property
    def pods(self) -> Sequence[Object]:
        return self.of(PODS)

    @property
    def taken_text(self) -> str:
        """When it was taken, to the second, in UTC."""
        return time_text(self.taken)

    @property
    def digest(self) -> str:
        """SHA-256 over the objects, whatever the layout of the file."""
        return hashlib.sha256(_canonical(self.objects).encode()).hexdigest()


async def take_snapshot(
    cluster: Cluster, now: int, on_asked: Callable[[Resource, int], None] = lambda resource, objects: None
) -> Snapshot:
    """Read a cluster page by page; each kind is of one moment. Raises `SnapshotError`.

    A kind that the cluster does not serve is left out; one that we may not read is an error, since a snapshot that
    lacks it would answer wrongly. `on_asked` hears what is asked for next, and how many objects are there already.
    """
    objects: dict[str, Sequence[Object]] = {}
    absent = []
    for resource in KEPT:
        on_asked(resource, sum(map(len, objects.values())))
        try:
            objects[str(resource)] = await _scrubbed(resource, await every_object(cluster, resource))
        except NotFound as error:
            if resource.custom:
                absent.append(str(resource))
            elif resource.gated:
                objects[str(resource)] = []  # where the feature is off there are none
            else:
                raise SnapshotError(f"the cluster does not serve {resource}: {error}") from error
        except Forbidden as error:
            raise SnapshotError(
                f"{error}; the ClusterRole `koordpolicy-snapshot` permits all that is needed"
            ) from error
        except KubeError as error:
            raise SnapshotError(f"{resource} cannot be listed: {error}") from error
    return Snapshot(now, objects, tuple(absent))


async def _scrubbed(resource: Resource, found: Sequence[Object]) -> list[Object]:
    """What stays of objects; whoever else lives on this loop has their turns meanwhile."""
    clock = asyncio.get_running_loop().time
    kept = []
    end = clock() + _SLICE
    for one in found:
        kept.append(scrubbed_object(resource, one))
        if clock() >= end:
            await asyncio.sleep(0)
            end = clock() + _SLICE
    return kept


def _canonical(objects: Mapping[str, Any]) -> str:
    return json.dumps(objects, sort_keys=True, separators=(",", ":"), default=dict, ensure_ascii=False)


def write_snapshot(snapshot: Snapshot, path: Path) -> None:
    """Write the file, compressed when its name ends with `.gz`, whole or not at all, for its owner only.

    Raises `SnapshotError`.
    """
    whole = {
        "format": FORMAT,
        "version": VERSION,
        "taken": snapshot.taken_text,
        "takenNanoseconds": snapshot.taken,
        "digest": f"sha256:{snapshot.digest}",
        "absent": list(snapshot.absent),
        "objects": snapshot.objects,
    }
    data = json.dumps(whole, separators=(",", ":"), default=dict, ensure_ascii=False).encode()
    if path.suffix == ".gz":
        data = gzip.compress(data, 6, mtime=0)
    try:
        replace_file(path, data)
    except OSError as error:
        raise SnapshotError(f"`{path}` cannot be written: {error.strerror}") from error


def read_snapshot(path: Path) -> Snapshot:
    """Read a file that `write_snapshot` wrote. Raises `SnapshotError` for anything else, and for a damaged one."""
    try:
        data = _content(path)
    except (OSError, EOFError, zlib.error) as error:
        why = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise SnapshotError(f"`{path}` cannot be read: {why}") from error
    try:
        whole = parse_json(data.decode())
    except ValueError as error:
        raise SnapshotError(f"`{path}` is no snapshot: not JSON ({error})") from error
    return snapshot_of(path, whole)


def snapshot_of(path: Path, whole: object) -> Snapshot:
    """The snapshot that a file's JSON is. Raises `SnapshotError` as `read_snapshot`."""
    if not isinstance(whole, dict) or whole.get("format") != FORMAT:
        raise SnapshotError(f"`{path}` is no snapshot; `koordpolicy snapshot` makes one")
    if whole.get("version") != VERSION:
        raise SnapshotError(
            f"`{path}` is a snapshot of version {whole.get('version')}, this koordpolicy reads version {VERSION}"
        )
    return _read(path, whole)


def _content(path: Path) -> bytes:
    with path.open("rb") as file:
        compressed = file.read(2) == _COMPRESSED
        size = file.seek(0, SEEK_END)
        if compressed:
            # A few MB can become more than memory holds, so that it is counted first, and nothing of it kept.
            file.seek(0)
            with gzip.GzipFile(fileobj=file) as packed:
                size = 0
                while size <= _MOST_BYTES and (part := packed.read(_AT_ONCE)):
                    size += len(part)
        if size > _MOST_BYTES:
            raise SnapshotError(f"`{path}` has more than {_MOST_BYTES:,} bytes unpacked")
        file.seek(0)
        return (gzip.GzipFile(fileobj=file) if compressed else file).read(_MOST_BYTES + 1)


def _read(path: Path, whole: Mapping[str, Any]) -> Snapshot:
    objects, taken, absent = whole.get("objects"), whole.get("takenNanoseconds"), whole.get("absent")
    if (
        not isinstance(objects, dict)
        or not isinstance(taken, int)
        or not isinstance(absent, list)
        or not all(isinstance(some, list) and _is_named(some) for some in objects.values())
    ):
        raise SnapshotError(f"`{path}` is damaged: take the snapshot again")
    snapshot = Snapshot(taken, objects, tuple(map(str, absent)))
    if whole.get("digest") != f"sha256:{snapshot.digest}":
        raise SnapshotError(f"`{path}` was changed after it was taken: its digest does not fit")
    return snapshot


def _is_named(objects: list[Any]) -> bool:
    """Whether all of a list are objects with names."""
    return all(
        isinstance(one, dict)
        and isinstance(one.get("metadata"), dict)
        and isinstance(one["metadata"].get("name"), str)
        for one in objects
    )
