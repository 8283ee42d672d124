"""A picture of a cluster: a snapshot's file, manifests, or the cluster as it is now."""

import argparse
import asyncio
import os
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any, Final

from koordpolicy.cli.command import CannotRunError
from koordpolicy.cli.patience import snapshot_of
from koordpolicy.cli.pod_policies import ClusterPolicies, ask_cluster
from koordpolicy.cli.terminal import Terminal
from koordpolicy.diagnostics import Diagnostics
from koordpolicy.diagnostics.render import render
from koordpolicy.kube.api import ConfigurationError, Connection, connect
from koordpolicy.kube.errors import KubeError
from koordpolicy.kube.port import Object
from koordpolicy.kube.resources import NODE_METRICS, RESOURCES, resource_of
from koordpolicy.kube.snapshot import Snapshot, SnapshotError, read_snapshot
from koordpolicy.language.documents import read_manifests
from koordpolicy.model.metric import read_node_metric
from koordpolicy.model.reading import parse_json
from koordpolicy.model.unreadable import Unreadable, readable
from koordpolicy.runtime.clock import now_ns
from koordpolicy.scheduler.watched import WATCHED
from koordpolicy.source import Tree, read_tree

_MOST_BYTES: Final = 1 << 30
_IN_FILES: Final = "or ask a picture of one: `-s FILE` of `koordpolicy snapshot`, `-f FILE` of `kubectl get nodes,pods -A -o yaml`"


def picture_of(arguments: argparse.Namespace, terminal: Terminal) -> tuple[Snapshot, ClusterPolicies | None]:
    """The cluster as it stands in a file or in manifests, or as it is now; what it says of policies if it is asked."""
    if arguments.snapshot and arguments.filename:
        raise CannotRunError("a snapshot and manifests are two pictures: give `--snapshot` or `--filename`")
    try:
        still = None
        if arguments.snapshot:
            still = _read(Path(arguments.snapshot), terminal)
        elif arguments.filename:
            still = of_manifests(arguments.filename)
        if still is not None and not arguments.policies_from_cluster:
            return still, None
        connection = Connection.load(arguments.kubeconfig, arguments.context, os.environ)
        return asyncio.run(_live(connection, arguments, still, terminal))
    except ConfigurationError as error:
        raise CannotRunError(f"{error}; {_IN_FILES}") from None
    except (SnapshotError, KubeError) as error:
        raise CannotRunError(str(error)) from None


def _read(path: Path, terminal: Terminal) -> Snapshot:
    """A snapshot from its file. What it was not asked to hold when it was taken is told."""
    found = read_snapshot(path)
    held = {*found.objects, *found.absent}
    lacking = [str(resource) for resource in WATCHED if str(resource) not in held]
    if lacking:
        terminal.say(f"the snapshot is an old one without {', '.join(lacking)}: take it anew to count them")
    return found


async def _live(
    connection: Connection, arguments: argparse.Namespace, still: Snapshot | None, terminal: Terminal
) -> tuple[Snapshot, ClusterPolicies]:
    async with connect(connection, jitter=random.random, component="explain") as cluster:
        heard = await ask_cluster(cluster, arguments)
        return still or await snapshot_of(cluster, now_ns(), terminal.say), heard


def objects_of_kubectl(file: str) -> Snapshot | None:
    """What `kubectl get` gave, as a snapshot of now; None where a file holds no objects of a cluster."""
    path = Path(file)
    if not path.is_file() or path.suffix == ".gz":
        return None
    found = of_manifests([file])
    return found if found.nodes or found.pods else None


def of_manifests(paths: Sequence[str]) -> Snapshot:
    """The objects of manifests, or of what `kubectl get -o json|yaml` gives, as if taken now. Raises `CannotRunError`."""
    # A whole cluster is many times what a file that people write may have.
    files = [path for path in paths if Path(path).is_file()]
    others = [path for path in paths if path not in files]
    objects: dict[str, list[Object]] = {}
    for obj in chain(_of_files(files), _of_texts(read_tree(others))):
        resource = resource_of(str(obj.get("apiVersion")), str(obj.get("kind")), RESOURCES)
        if resource is not None and isinstance(obj.get("metadata"), Mapping):
            objects.setdefault(str(resource), []).append(obj)
    return Snapshot(now_ns(), objects)


def as_of_reports(cluster: Snapshot) -> Snapshot:
    """A picture that does not say when it was taken, as of the newest report of a node in it: else all of them would have expired."""
    reports = (readable(read_node_metric, obj) for obj in cluster.of(NODE_METRICS))
    times = [
        one.updated_at for one in reports if not isinstance(one, Unreadable) and one.updated_at is not None
    ]
    return replace(cluster, taken=max(times)) if times else cluster


def _of_files(files: Sequence[str]) -> Iterator[Mapping[str, Any]]:
    for file in files:
        try:
            if Path(file).stat().st_size > _MOST_BYTES:
                raise CannotRunError(f"`{file}` is larger than {_MOST_BYTES >> 20} MiB")
            text = Path(file).read_text(encoding="utf-8")
        except OSError as error:
            raise CannotRunError(f"`{file}` cannot be read: {error.strerror}") from None
        except UnicodeDecodeError as error:
            raise CannotRunError(f"`{file}` cannot be read: not UTF-8 at byte {error.start}") from None
        if not file.endswith(".json"):
            yield from _of_texts(Tree({file: text}, Diagnostics()))
            continue
        try:
            data = parse_json(text)
        except ValueError as error:
            raise CannotRunError(f"`{file}` cannot be read: it is no JSON: {error}") from None
        for one in data if isinstance(data, list) else [data]:
            yield from _each(one)


def _of_texts(tree: Tree) -> Iterator[Mapping[str, Any]]:
    found = Diagnostics()
    found.extend(tree.found)
    for name, text in tree.files.items():
        for document in read_manifests(name, text, found):
            yield from _each(document.data)
    if len(found):
        raise CannotRunError("the manifests cannot be read\n\n" + render("text", found, tree.files))


def _each(data: Any) -> Iterator[Mapping[str, Any]]:
    """An object, or those of a list, as `kubectl get` gives one; a `PodList` of the API says alone what its items are."""
    kind = str(data.get("kind", "")) if isinstance(data, Mapping) else ""
    if not kind.endswith("List"):
        if isinstance(data, Mapping):
            yield data
        return
    items = data.get("items")
    typed = (
        {"apiVersion": data.get("apiVersion"), "kind": kind.removesuffix("List")} if kind != "List" else {}
    )
    for one in items if isinstance(items, list) else ():
        if isinstance(one, Mapping):
            yield {**typed, **one}
