"""Keeps both webhook configurations as the policies that decide now want them, beside what API servers decide by themselves.

The leader does. A rule leaves the webhook once its admission policy is there and settled, and comes back before that goes.
"""

import base64
import binascii
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from koordpolicy.graph import RuleGraph
from koordpolicy.kube.backoff import Backoff
from koordpolicy.kube.errors import KubeError, NotFound
from koordpolicy.kube.port import Cluster, MergePatch, Object
from koordpolicy.kube.resources import MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS
from koordpolicy.manager.native.keeping import NativePolicies
from koordpolicy.manager.webhooks.configuration import CONFIGURATION, Address, configurations
from koordpolicy.manager.webhooks.webhook import Phase, Webhook
from koordpolicy.runtime.reconciling import ReconcileLoop

LOG: Final = logging.getLogger(__name__)

RESOURCES: Final = {Phase.MUTATING: MUTATING_WEBHOOKS, Phase.VALIDATING: VALIDATING_WEBHOOKS}
LOOK: Final = 10.0
"""Seconds between two looks at what nobody told us has changed."""


class WebhookConfigurations:
    """Both configurations. `authority` gives the bundle to inject; where it is empty, what others inject is left there.

    `native` keeps what API servers decide by themselves.
    """

    def __init__(
        self,
        cluster: Cluster,
        graph: Callable[[], RuleGraph],
        webhooks: Sequence[Webhook],
        address: Address,
        authority: Callable[[], bytes],
        native: NativePolicies,
        backoff: Backoff,
    ) -> None:
        self.written = 0
        self.trouble = ""
        """Why they are not as they should be; empty while they are."""
        self._cluster = cluster
        self._graph = graph
        self._webhooks = webhooks
        self._address = address
        self._authority = authority
        self._native = native
        self._loop = ReconcileLoop(self._reconcile, backoff)

    def again(self) -> None:
        """Something that they are made from has changed."""
        self._loop.trigger()

    async def run(self) -> None:
        """Keep them, until cancelled."""
        await self._loop.run()

    async def _reconcile(self) -> float | None:
        try:
            await self.keep()
        except KubeError as error:
            trouble = str(error)
            if trouble != self.trouble:
                LOG.warning("the webhook configurations cannot be kept: %s", error)
            self.trouble = trouble
            return None
        self.trouble = ""
        return LOOK

    async def keep(self) -> None:
        """Write what differs. Raises KubeError; NotFound says which configuration has to be applied first."""
        graph = self._graph()
        native = await self._native.in_force(graph)
        wanted = configurations(graph, self._webhooks, self._address, self._authority(), native)
        for phase, resource in RESOURCES.items():
            try:
                found = await self._cluster.get(resource, CONFIGURATION)
            except NotFound:
                raise NotFound(
                    f"there is no {resource.kind} `{CONFIGURATION}`: kubectl apply -k deploy/manager makes it"
                ) from None
            there = found.get("webhooks") or []
            entries = [_with_bundle(entry, there) for entry in wanted[phase]]
            if entries != there:
                version = found["metadata"].get("resourceVersion", "")
                patch = MergePatch({"metadata": {"resourceVersion": version}, "webhooks": entries})
                await self._cluster.patch(resource, CONFIGURATION, patch)
                self.written += 1
                LOG.info("%s `%s` was written", resource.kind, CONFIGURATION)
        await self._native.write(graph)


async def believed(cluster: Cluster) -> bytes | None:
    """The certificates that API servers believe in for all of our webhooks, None where that cannot be told."""
    common: set[bytes] | None = None
    for resource in RESOURCES.values():
        try:
            found = await cluster.get(resource, CONFIGURATION)
        except KubeError:
            return None
        for bundle in _bundles(found):
            parts = set(bundle.split(_BEGIN)[1:])
            common = parts if common is None else common & parts
    return None if common is None else b"".join(_BEGIN + part for part in sorted(common))


_BEGIN: Final = b"-----BEGIN CERTIFICATE-----"


def _bundles(configuration: Object) -> list[bytes]:
    found = []
    for entry in configuration.get("webhooks") or ():
        try:
            found.append(base64.b64decode(entry.get("clientConfig", {}).get("caBundle", "")))
        except (binascii.Error, ValueError):
            found.append(b"")
    return found


def _with_bundle(entry: Mapping[str, Any], there: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """An entry that injects nothing keeps what somebody else has injected."""
    client = entry["clientConfig"]
    if "caBundle" in client:
        return dict(entry)
    same = next((one for one in there if one.get("name") == entry["name"]), {})
    kept = same.get("clientConfig", {}).get("caBundle")
    return {**entry, "clientConfig": {**({"caBundle": kept} if kept else {}), **client}}
