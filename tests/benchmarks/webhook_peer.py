"""The peer of the manager's webhook: Koordinator's koord-manager, with its controllers off.

It has an API server of its own, since our managers follow the same profiles where they see them.
"""

import asyncio
import os
import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from koordpolicy.kube.api import Connection, connect
from koordpolicy.kube.resources import CLUSTER_COLOCATION_PROFILES
from tests.parts import find
from tests.parts.apiserver import ApiServer
from tests.parts.deployed import DeployedServer, apply
from tests.parts.processes import Running, free_port

PART: Final = "koord-manager"
_NAMESPACE: Final = "koordinator-system"
_CONTROLLERS: Final = ("colocationprofile", "nodemetric", "noderesource", "nodeslo", "quotaprofile")


@contextmanager
def koord_manager(
    folder: Path, profiles: Mapping[str, dict[str, Any]], answers: Callable[[int], bool]
) -> Iterator[tuple[Running, int]]:
    """A koord-manager with ClusterColocationProfiles of these names, and its port, once it answers. Raises Missing.

    It listens at all addresses of the machine; there is no flag for less.
    """
    program = find(PART).path
    with DeployedServer(folder / "server") as server:
        apply(server.access, _prepared())
        asyncio.run(_create(server, profiles))
        port = free_port()
        command: list[str | Path] = [
            program, "--kubeconfig", server.kubeconfig(), "--metrics-addr=0", "--health-probe-addr=0", "--enable-pprof=false",
            "--enable-leader-election=false", f"--controllers={','.join(f'-{one}' for one in _CONTROLLERS)}",
        ]  # fmt: skip
        environment = {
            **os.environ,
            "WEBHOOK_HOST": "localhost",
            "WEBHOOK_PORT": str(port),
            "WEBHOOK_CERT_DIR": str(folder / "certificates"),
            "POD_NAMESPACE": _NAMESPACE,
        }
        with Running(command, folder / "log", environment=environment) as running:
            running.ready(lambda: answers(port), 180)
            yield running, port


def _prepared() -> list[dict[str, Any]]:
    """What its installation makes, as far as it asks for it: webhooks that no API server calls."""
    configurations = [
        {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": f"{kind}WebhookConfiguration",
            "metadata": {"name": f"koordinator-{kind.lower()}-webhook-configuration"},
            "webhooks": [],
        }
        for kind in ("Mutating", "Validating")
    ]
    return [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": _NAMESPACE}}, *configurations]


async def _create(server: ApiServer, profiles: Mapping[str, dict[str, Any]]) -> None:
    connection = Connection.load(str(server.kubeconfig()))
    async with connect(connection, jitter=random.random, component="bench") as cluster:
        for name, spec in profiles.items():
            await cluster.create(
                CLUSTER_COLOCATION_PROFILES,
                {
                    "apiVersion": CLUSTER_COLOCATION_PROFILES.api_version,
                    "kind": CLUSTER_COLOCATION_PROFILES.kind,
                    "metadata": {"name": name},
                    "spec": spec,
                },
            )
