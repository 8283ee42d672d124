"""Objects that are named after their nodes: made for each node, mended where they differ, gone with it."""

from collections.abc import Mapping
from typing import Any

from koordpolicy.kube import resources
from koordpolicy.kube.errors import AlreadyExists, NotFound
from koordpolicy.kube.port import Cluster, MergePatch
from koordpolicy.kube.resources import Resource


async def write_spec(
    cluster: Cluster, resource: Resource, name: str, spec: Mapping[str, Any], patch: Mapping[str, Any] | None
) -> bool:
    """Create an object with its spec where `patch` is None, else patch its spec; whether anything was written.

    An empty patch writes nothing. Raises KubeError.
    """
    if patch is not None and not patch:
        return False
    try:
        if patch is None:
            await cluster.create(resource, {"metadata": {"name": name}, "spec": dict(spec)})
        else:
            await cluster.patch(resource, name, MergePatch({"spec": patch}))
    except (AlreadyExists, NotFound):
        return False  # what we know is old; the news is on the way to us
    return True


async def remove_after_node(cluster: Cluster, resource: Resource, name: str) -> bool:
    """Take away the object of a node that is gone, not of one that we cannot read; whether it was there.

    Raises KubeError.
    """
    try:
        await cluster.get(resources.NODES, name)
    except NotFound:
        pass
    else:
        return False
    try:
        await cluster.delete(resource, name)
    except NotFound:
        return False
    return True


def difference(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """The merge patch that makes `new` of `old`; empty where they are equal."""
    patch: dict[str, Any] = {key: None for key in old if key not in new}
    for key, value in new.items():
        before = old.get(key)
        if isinstance(value, Mapping) and isinstance(before, Mapping):
            inner = difference(before, value)
            if inner:
                patch[key] = inner
        elif key not in old or before != value:
            patch[key] = value
    return patch
