"""Statuses in the cluster, of which each field manager writes its part by server-side apply."""

import hashlib
from collections.abc import Mapping
from typing import Any, Final

from koordpolicy.kube.port import ApplyPatch, Cluster
from koordpolicy.kube.resources import Resource

_LONGEST_MANAGER: Final = 128
"""Characters of a field manager's name that the API server takes."""


def field_manager(name: str) -> str:
    """A name that may be long as a field manager's; a digest stands in for what does not fit."""
    if len(name) <= _LONGEST_MANAGER:
        return name
    return f"{name[: _LONGEST_MANAGER - 13]}-{hashlib.sha256(name.encode()).hexdigest()[:12]}"


async def apply_status(
    cluster: Cluster,
    resource: Resource,
    name: str,
    status: Mapping[str, Any],
    manager: str,
    *,
    version: str = "",
) -> None:
    """Say something in a status, as a field manager, in place of what it said before. Raises KubeError.

    With `version`, of the object as it was read: Conflict where it has changed since.
    """
    body = {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {"name": name, **({"resourceVersion": version} if version else {})},
        "status": status,
    }
    await cluster.patch(resource, name, ApplyPatch(body, manager, force=True), subresource="status")
