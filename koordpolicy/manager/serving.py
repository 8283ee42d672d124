"""The webhooks of a running manager: their certificate, what they look up, the server, and who keeps the configurations."""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from koordpolicy.files import MemoryFile
from koordpolicy.graph import RuleGraph
from koordpolicy.kube.mirror import Handler, Mirror
from koordpolicy.kube.port import Object
from koordpolicy.kube.resources import CLUSTER_COLOCATION_PROFILES, Resource
from koordpolicy.manager.controllers.webhook_configurations import WebhookConfigurations, believed
from koordpolicy.manager.native.keeping import NativePolicies
from koordpolicy.manager.webhooks.certificates import CertificateSettings, SharedCertificate
from koordpolicy.manager.webhooks.cluster_profiles import cluster_profiles
from koordpolicy.manager.webhooks.configuration import Address, spared
from koordpolicy.manager.webhooks.hooks import WEBHOOKS
from koordpolicy.manager.webhooks.pod_spans import AdmissionSpans
from koordpolicy.manager.webhooks.server import LIMITS, WebhookServer
from koordpolicy.manager.webhooks.telling import AdmissionReporter
from koordpolicy.manager.webhooks.webhook import QuotaWrites, WebhookContext
from koordpolicy.runtime.clock import now_ns
from koordpolicy.runtime.component import RunningComponent
from koordpolicy.runtime.http.authentication import Protection
from koordpolicy.runtime.http.serving import Endpoint, serve
from koordpolicy.runtime.policies.proposing import LivePolicyObjects
from koordpolicy.runtime.process import Tasks
from koordpolicy.runtime.tls import Tls
from koordpolicy.runtime.tracing import Tracing
from koordpolicy.runtime.watching import Watching

_CONDITION: Final = "webhooks"
_DRAWS: Final = 1_000_000_000
_SEEDS: Final = 2**64


@dataclass(frozen=True, slots=True)
class WebhookOptions:
    """How webhooks are served.

    `endpoint` is where; with `tls` its files are served, otherwise a pair that all replicas share. Behind a front that is the directory
    of its socket, where a shared pair lies, too; else that lies in `kept`, below the state directory, where there is one. `authority` is a file with
    the bundle to inject when the files are given, `clients` one with the CA of those who may ask, None for everyone. Once
    the process is told to stop, it answers for `drain` seconds more whoever still comes. With `native`, API servers decide by
    themselves what they can.
    """

    endpoint: Endpoint
    address: Address
    certificate: CertificateSettings
    authority: Path | None = None
    clients: Path | None = None
    drain: float = 0.0
    native: bool = False
    front: Path | None = None
    kept: Path | None = None

    def place(self, stack: AsyncExitStack) -> Path | MemoryFile:
        """Where a shared pair lies: a directory that only its owner looks into, whose next start writes it anew. Without a front and
        `kept` it is in memory alone, so that no key of a process that was killed is left on a disk.
        """
        if self.front is not None:
            return self.front
        if self.kept is None:
            return stack.enter_context(MemoryFile("koordpolicy-webhook"))
        self.kept.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.kept.chmod(0o700)
        return self.kept


class MirroredObjects:
    """The objects of mirrors, as `KnownObjects`."""

    def __init__(self, mirrors: Mapping[Resource, Mirror]) -> None:
        self._mirrors = mirrors

    def find(self, resource: Resource, name: str, *, namespace: str | None = None) -> Object | None:
        """See `KnownObjects.find`."""
        return self._mirrors[resource].get(name, namespace or "")

    def every(self, resource: Resource) -> Iterable[Object]:
        """See `KnownObjects.every`."""
        return self._mirrors[resource].objects.values()

    def follow(self, resource: Resource, handler: Handler) -> None:
        """See `KnownObjects.follow`."""
        self._mirrors[resource].follow(handler)


class ServedWebhooks:
    """Serves on every replica; `lead` is for the one that leads. `mirrors` are those that are fed already."""

    def __init__(
        self, component: RunningComponent, options: WebhookOptions, mirrors: Mapping[Resource, Mirror]
    ) -> None:
        self._component = component
        self._options = options
        process, live = component.process, component.live
        read = dict.fromkeys(resource for webhook in WEBHOOKS for resource in webhook.reads)
        own = {resource: Mirror() for resource in read if resource not in mirrors}
        backoff = component.watch_backoff()
        self._watching = [
            Watching(component.cluster, resource, mirror, backoff) for resource, mirror in own.items()
        ]
        reporter = AdmissionReporter(
            lambda: live.graph,
            component.revision_of,
            component.counts,
            process.metrics,
            component.troubles,
            component.recorder,
        )
        context = WebhookContext(
            lambda: live.graph,
            MirroredObjects({**mirrors, **own}),
            now_ns,
            lambda: component.draw(_DRAWS) * 100 / _DRAWS,
            reporter.observe,
            None
            if component.source is None
            else LivePolicyObjects(component.source, component.trials, component.max_cost, now_ns),
            QuotaWrites(component.cluster),
            None if component.slo_config is None else component.slo_config.data,
            self._warned_elsewhere,
            None if component.tracing is None else _spans(component, component.tracing),
        )
        served = tuple(webhook.here(context) for webhook in WEBHOOKS if webhook.serves(context))
        self._server = WebhookServer(
            context,
            process.metrics,
            reporter,
            waiting=self._waiting,
            audit=self._audit,
            protection=Protection.OPEN if options.clients is None else Protection.WRITE,
            webhooks=served,
        )
        self._shared: SharedCertificate | None = None
        self._authority: Callable[[], bytes] = lambda: b""
        self._native = NativePolicies(
            component.cluster,
            spared(options.address),
            enabled=options.native,
            objects=cluster_profiles(context).beside,
        )
        self.configurations = WebhookConfigurations(
            component.cluster,
            lambda: live.graph,
            served,
            options.address,
            self._bundle,
            self._native,
            component.backoff(initial=0.2, longest=10.0),
        )
        live.subscribe(lambda _: self.configurations.again())
        context.objects.follow(CLUSTER_COLOCATION_PROFILES, lambda _: self.configurations.again())
        self._synced = asyncio.Event()

    async def run(self, tasks: Tasks) -> None:
        """Serve until the process has been told to stop, and a little longer."""
        process, options = self._component.process, self._options
        process.readiness.wait_for(_CONDITION, "the webhooks are not served yet")
        process.status.add(self.status)
        async with AsyncExitStack() as stack:
            endpoint = await self._with_certificate(stack, tasks)
            for watching in self._watching:
                tasks.start(f"watch {watching.resource}", watching.run())
            tasks.start("webhooks ready", self._ready())
            tasks.start("admission policies in force", self._follow_native())
            server = await serve(
                stack,
                endpoint,
                self._server.routes(),
                process.metrics,
                reviews=self._component.reviews,
                limits=LIMITS,
            )
            await process.stopped()
            server.closing = True
            await asyncio.sleep(options.drain)

    def lead(self, tasks: Tasks) -> None:
        """Keep the configurations while the tasks run. A revision has to be active."""
        tasks.start("webhook configurations", self._configure())

    def status(self) -> dict[str, Any]:
        """What `/statusz` shows."""
        trouble, native = self.configurations.trouble, self._native
        return {
            "webhooks": {
                "serving": not self._waiting(),
                "configurationsWritten": self.configurations.written,
                **({"configurationsTrouble": trouble} if trouble else {}),
                "admissionPoliciesWritten": native.written,
                **({"admissionPolicyTroubles": native.troubles} if native.troubles else {}),
            }
        }

    async def _with_certificate(self, stack: AsyncExitStack, tasks: Tasks) -> Endpoint:
        component, options = self._component, self._options
        if options.endpoint.tls is not None:
            if options.authority is not None:
                file = options.authority
                self._authority = lambda: _read(file)
            return self._endpoint(options.endpoint.tls)
        shared = self._shared = SharedCertificate(
            component.cluster,
            options.address.namespace,
            options.certificate,
            options.place(stack),
            component.process.metrics,
            component.backoff(initial=0.2, longest=5.0),
            now_ns,
            lambda: believed(component.cluster),
        )
        shared.on_change = self.configurations.again
        self._authority = lambda: shared.bundle
        await shared.first()
        tasks.start("webhook certificate", shared.run())
        return self._endpoint(shared.tls)

    def _endpoint(self, tls: Tls) -> Endpoint:
        """Where this process serves: by TLS, or to a front, which does that."""
        options = self._options
        if options.front is not None:
            return replace(options.endpoint, tls=None, front_clients=options.clients is not None)
        return replace(options.endpoint, tls=replace(tls, clients=options.clients))

    async def _configure(self) -> None:
        """What is asked about depends on objects, too: with some of them unknown, pods would be passed over."""
        await self._synced.wait()
        await self.configurations.run()

    def _warned_elsewhere(self, graph: RuleGraph) -> frozenset[str]:
        return self._native.told(graph)

    async def _follow_native(self) -> None:
        await self._synced.wait()
        await self._native.follow(lambda: self._component.live.graph)

    async def _ready(self) -> None:
        await self._component.live.ready.wait()
        for watching in self._watching:
            await watching.settled.wait()
        self._synced.set()
        self._component.process.readiness.reached(_CONDITION)

    def _bundle(self) -> bytes:
        return self._authority()

    def _waiting(self) -> str:
        return "" if self._synced.is_set() else "the manager has not read policies and namespaces yet"

    def _audit(self) -> Mapping[str, str]:
        return {"revision": self._component.revision_of(self._component.live.graph.digest)}


def _spans(component: RunningComponent, tracing: Tracing) -> AdmissionSpans:
    live = component.live
    return AdmissionSpans(
        tracing,
        lambda: component.revision_of(live.graph.digest),
        lambda: f"{component.draw(_SEEDS):x} {component.draw(_SEEDS):x}",
        now_ns,
    )


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError:
        return b""  # what is injected already stays
