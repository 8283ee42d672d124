"""The certificate that all replicas serve: kept in a Secret which every one of them looks at, and renews when that is due."""

import asyncio
import base64
import binascii
import logging
import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from koordpolicy.files import MemoryFile
from koordpolicy.kube.backoff import Backoff
from koordpolicy.kube.errors import AlreadyExists, Conflict, Forbidden, KubeError, NotFound
from koordpolicy.kube.port import Cluster, Object
from koordpolicy.kube.resources import SECRETS
from koordpolicy.manager.webhooks.rotation import Chain, Lifetimes, renewed
from koordpolicy.model.time import NANOSECONDS, time_text
from koordpolicy.runtime.http.issuing import validity
from koordpolicy.runtime.logs import CERTIFICATE_REMINDER, LoggedOnce
from koordpolicy.runtime.metrics import Metrics
from koordpolicy.runtime.tls import Tls

LOG: Final = logging.getLogger(__name__)

SECRET: Final = "koordpolicy-webhook-cert"  # noqa: S105 - its name
SERVING: Final = "serving.pem"
AUTHORITY: Final = "authority.pem"
"""Files that a front reads, too."""
_ATTEMPTS: Final = 5
_DAY: Final = 86_400 * NANOSECONDS


@dataclass(frozen=True, slots=True)
class CertificateSettings:
    """Names that the webhooks are called by, how long certificates hold, and seconds between two looks at the Secret."""

    names: tuple[str, ...]
    lifetimes: Lifetimes = field(default=Lifetimes(90 * _DAY, 365 * _DAY, 60 * NANOSECONDS))
    look: float = 10.0


class SharedCertificate:
    """The pair that this replica serves: as a file in a directory of its own, and beside it the bundle by which it is believed, or in memory
    alone, where nobody else has to find it.

    `believed` asks which bundle API servers have been given, None where nobody knows. `on_change` is told when the bundle
    is another.
    """

    def __init__(
        self,
        cluster: Cluster,
        namespace: str,
        settings: CertificateSettings,
        place: Path | MemoryFile,
        metrics: Metrics,
        backoff: Backoff,
        now: Callable[[], int],
        believed: Callable[[], Awaitable[bytes | None]],
    ) -> None:
        self.bundle = b""
        self._place = place
        pair = place.path if isinstance(place, MemoryFile) else place / SERVING
        self.tls = Tls(pair, pair)
        self.on_change: Callable[[], None] = lambda: None
        self._cluster = cluster
        self._namespace = namespace
        self._settings = settings
        self._metrics = metrics
        self._backoff = backoff
        self._now = now
        self._believed = believed
        self._served = b""

    async def first(self) -> None:
        """Return once there is a pair to serve: made, or taken from the Secret. Waits as long as the cluster lets it."""
        failures = 0
        while True:
            try:
                await self.look()
                return
            except KubeError as error:
                failures += 1
                if failures == 1:
                    LOG.warning("the webhooks' certificate cannot be had: %s", error)
                await self._backoff.sleep(self._backoff.delay(failures))

    async def run(self) -> None:
        """Look at the Secret again and again, until cancelled. A cluster that does not answer leaves all as it is."""
        trouble = LoggedOnce(LOG, remind=CERTIFICATE_REMINDER, clock=lambda: self._now() / NANOSECONDS)
        while True:
            await asyncio.sleep(self._settings.look)
            try:
                await self.look()
                trouble.over()
            except KubeError as error:
                # One trouble, however many words a server has for it from look to look.
                trouble.met(SECRET, "the webhooks' certificate cannot be looked after: %s", error)

    async def look(self) -> None:
        """Renew what is due, and serve what is shared. Raises KubeError."""
        for _ in range(_ATTEMPTS):
            try:
                self._take(await self._shared())
                return
            except (Conflict, AlreadyExists):
                continue  # another replica was quicker: theirs is as good
        raise Conflict(f"{SECRET} is written by others all the time")

    async def _shared(self) -> Chain:
        try:
            found: Object | None = await self._cluster.get(SECRETS, SECRET, namespace=self._namespace)
        except NotFound:
            found = None
        before = Chain() if found is None else Chain.read(_data(found))
        believed = None if before.following is None else await self._believed()
        chain = renewed(before, self._settings.names, self._settings.lifetimes, self._now(), believed)
        if chain == before:
            return chain
        data = {key: base64.b64encode(value).decode() for key, value in chain.data().items()}
        if found is None:
            made = {"metadata": {"name": SECRET}, "type": "Opaque", "data": data}
            try:
                await self._cluster.create(SECRETS, made, namespace=self._namespace)
            except Forbidden as error:
                raise Forbidden(
                    f"there is no Secret {SECRET} in {self._namespace}, and none may be created here: apply deploy/manager/secret.yaml"
                ) from error
        else:
            await self._cluster.update(SECRETS, {**found, "data": data})
        LOG.info("the webhooks' certificate was renewed; it holds until %s", time_text(_until(chain)))
        return chain

    def _take(self, chain: Chain) -> None:
        assert chain.serving is not None
        pair = chain.serving.certificate + chain.serving.key
        if pair != self._served:
            if isinstance(self._place, MemoryFile):
                self._place.write(pair)
            else:
                _write(self.tls.certificate, pair)
            self._served = pair
        self._metrics.set(
            "koordpolicy_webhook_certificate_end_timestamp_seconds", _until(chain) / NANOSECONDS
        )
        if chain.trusted != self.bundle:
            self.bundle = chain.trusted
            if not isinstance(self._place, MemoryFile):
                _write(self._place / AUTHORITY, self.bundle)
            self.on_change()


def names_of(service: str, namespace: str, host: str = "") -> tuple[str, ...]:
    """What webhooks are called by: a host where one is given, and a Service in a namespace, by which fronts call each other."""
    called = f"{service}.{namespace}.svc"
    return tuple(dict.fromkeys((host or called, called, "localhost")))


def _until(chain: Chain) -> int:
    assert chain.serving is not None
    return validity(chain.serving.certificate).until


def _data(secret: Object) -> dict[str, bytes]:
    """What a Secret holds; entries that are not what Kubernetes writes count as missing, and are made anew."""
    found: Any = secret.get("data") or {}
    read: dict[str, bytes] = {}
    for key, value in found.items():
        try:
            read[key] = base64.b64decode(value, validate=True)
        except (binascii.Error, TypeError, ValueError):
            continue
    return read


def _write(path: Path, text: bytes) -> None:
    """Put a file in place whole, to be read by nobody else."""
    made = path.with_suffix(".new")
    descriptor = os.open(made, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as out:
        out.write(text)
    made.replace(path)
