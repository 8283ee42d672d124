"""`koordpolicy status`: what runs where, by which revision, what is refused, lent and held back."""

import argparse
import asyncio
import os
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from koordpolicy.cli.command import FINDINGS, OK, CannotRunError
from koordpolicy.cli.patience import patiently
from koordpolicy.cli.statuses.found import ClusterStatus, cluster_status
from koordpolicy.cli.statuses.text import status_data, status_lines
from koordpolicy.cli.terminal import Terminal
from koordpolicy.diagnostics.escaping import json_text
from koordpolicy.kube import resources
from koordpolicy.kube.api import ConfigurationError, Connection, connect
from koordpolicy.kube.errors import Forbidden, KubeError, NotFound
from koordpolicy.kube.listing import every_object
from koordpolicy.kube.port import Cluster, Object
from koordpolicy.kube.resources import Resource
from koordpolicy.runtime.clock import now_ns

_READ: Final = (
    resources.POLICY_REVISIONS,
    resources.LEASES,
    resources.NODES,
    resources.NODE_METRICS,
    resources.PODS,
)


def run(arguments: argparse.Namespace, terminal: Terminal) -> int:
    """Look once, and say what there is."""
    try:
        connection = Connection.load(arguments.kubeconfig, arguments.context, os.environ)
        status = asyncio.run(_looked(connection, terminal))
    except (ConfigurationError, KubeError) as error:
        raise CannotRunError(str(error)) from None
    if arguments.output == "json":
        terminal.print(json_text(status_data(status), indent=2))
    else:
        terminal.print("\n".join(status_lines(status, now_ns(), terminal.width)))
    return FINDINGS if status.troubles else OK


@dataclass(slots=True)
class _Reading:
    """What was read so far."""

    listed: dict[str, Sequence[Object]] = field(default_factory=dict)
    absent: list[str] = field(default_factory=list)
    forbidden: list[str] = field(default_factory=list)
    asked: str = ""

    def word(self) -> str:
        objects = sum(map(len, self.listed.values()))
        return f"still waiting for the cluster to list {self.asked}, after {objects:,} other objects"

    async def read(self, cluster: Cluster, resource: Resource) -> None:
        self.asked = resource.name
        try:
            self.listed[resource.plural] = await every_object(cluster, resource)
        except NotFound:
            self.absent.append(resource.name)
        except Forbidden:
            self.forbidden.append(resource.name)


async def _looked(connection: Connection, terminal: Terminal) -> ClusterStatus:
    reading = _Reading()

    async def read() -> None:
        async with connect(connection, jitter=random.random, component="status") as cluster:
            for resource in _READ:
                await reading.read(cluster, resource)

    await patiently(read(), reading.word, terminal.say)
    if len(reading.forbidden) == len(_READ):
        raise CannotRunError("you may list none of the objects that tell; bind the role `koordpolicy-snapshot`")
    return cluster_status(reading.listed, now_ns(), absent=reading.absent, forbidden=reading.forbidden)
