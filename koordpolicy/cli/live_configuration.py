"""Koordinator's configuration in a live cluster, for `koordpolicy import --from-cluster`."""

import asyncio
import os
import random
from collections.abc import Mapping
from typing import Any, Final

from koordpolicy.cli.command import CannotRunError
from koordpolicy.cli.terminal import Terminal
from koordpolicy.kube import resources
from koordpolicy.kube.api import ConfigurationError, Connection, connect
from koordpolicy.kube.errors import Forbidden, KubeError, NotFound
from koordpolicy.kube.port import Cluster
from koordpolicy.kube.resources import Resource

_EVERYWHERE: Final = (
    resources.CLUSTER_COLOCATION_PROFILES,
    resources.ELASTIC_QUOTA_PROFILES,
    resources.ELASTIC_QUOTAS,
)


def cluster_objects(
    kubeconfig: str | None, context: str | None, namespace: str, terminal: Terminal
) -> list[Mapping[str, Any]]:
    """The objects that configure Koordinator, its ConfigMaps from a namespace. Raises `CannotRunError`.

    What the cluster does not serve is not there; what may not be read is told.
    """

    async def found() -> tuple[list[Mapping[str, Any]], list[str]]:
        async with connect(connection, jitter=random.random, component="import") as cluster:
            return await configuration_in(cluster, namespace)

    try:
        connection = Connection.load(kubeconfig, context, os.environ)
        objects, hidden = asyncio.run(found())
    except (ConfigurationError, KubeError) as error:
        raise CannotRunError(str(error)) from None
    for why in hidden:
        terminal.say(f"not read: {why}")
    return objects


async def configuration_in(cluster: Cluster, namespace: str) -> tuple[list[Mapping[str, Any]], list[str]]:
    """The objects, and what could not be read of them, as phrases. Raises KubeError."""
    objects: list[Mapping[str, Any]] = []
    hidden: list[str] = []
    places: tuple[tuple[Resource, str | None], ...] = (
        (resources.CONFIG_MAPS, namespace),
        *((resource, None) for resource in _EVERYWHERE),
    )
    for resource, inside in places:
        try:
            listed = await cluster.list(resource, namespace=inside)
        except NotFound:
            continue
        except Forbidden as error:
            hidden.append(f"{resource}: {error}")
            continue
        # Items of a list need not say their kind.
        objects.extend(
            {**one, "apiVersion": resource.api_version, "kind": resource.kind} for one in listed.items
        )
    return objects, hidden
