"""A client of the kubelet of one node: the pods that it runs, and how it is configured."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

import aiohttp
import msgspec

from koordpolicy.kube.api.session import session_of
from koordpolicy.kube.api.statuses import refusal
from koordpolicy.kube.errors import KubeError, Unreachable
from koordpolicy.kube.port import Object

_MOST: Final = 64 << 20
"""Bytes of an answer. A thousand large pods are a tenth of that."""
_CONNECTIONS: Final = 2
_BROKEN: Final = (aiohttp.ClientError, TimeoutError, OSError, RuntimeError, ValueError)


@dataclass(frozen=True, slots=True)
class KubeletAccess:
    """Where a kubelet is, `https://10.0.0.7:10250`, and whom to trust.

    Without `token_file` no token is sent; without `ca_file` the system's authorities are trusted, and with `insecure`
    anybody. `server_name` is the name that its certificate must show where it is not the address.
    """

    url: str
    token_file: Path | None = None
    ca_file: Path | None = None
    insecure: bool = False
    server_name: str = ""


RequestTold: TypeAlias = Callable[[str, int, float], None]
"""Hears of a request: its path, the status of the answer (0 for none), and the seconds until it was there."""


class Kubelet:
    """Asks one kubelet. Every method raises `KubeError`, `Unreachable` where there was no answer in time."""

    def __init__(
        self, session: aiohttp.ClientSession, access: KubeletAccess, told: RequestTold | None = None
    ) -> None:
        self._session = session
        self._access = access
        self._told = told

    async def pods(self, seconds: float) -> tuple[Object, ...]:
        """The pods that it knows, in `seconds` at most."""
        found = await self._get("/pods", seconds)
        items = found.get("items")
        if not isinstance(items, list) or not all(isinstance(item, Mapping) for item in items):
            raise Unreachable(f"{self._access.url} does not answer with a list of pods")
        return tuple(items)

    async def configuration(self, seconds: float) -> Mapping[str, Any]:
        """Its configuration (`KubeletConfiguration`), in `seconds` at most."""
        found = (await self._get("/configz", seconds)).get("kubeletconfig")
        if not isinstance(found, Mapping):
            raise Unreachable(f"{self._access.url} does not answer with its configuration")
        return found

    async def _get(self, path: str, seconds: float) -> Mapping[str, Any]:
        clock, status = asyncio.get_running_loop().time, 0
        began = clock()
        try:
            status, body = await self._asked(path, seconds)
        finally:
            if self._told is not None:
                self._told(path, status, clock() - began)
        if status != 200:
            raise refusal(status, body)
        try:
            found = msgspec.json.decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise Unreachable(f"{self._access.url}{path} does not answer in JSON: {error}") from error
        if not isinstance(found, Mapping):
            raise Unreachable(f"{self._access.url}{path} does not answer with an object")
        return found

    async def _asked(self, path: str, seconds: float) -> tuple[int, bytes]:
        """The status and the body of an answer."""
        access = self._access
        try:
            async with asyncio.timeout(seconds):
                tls, headers = await asyncio.to_thread(_credentials, access)
                async with self._session.get(
                    access.url + path,
                    headers=headers,
                    ssl=tls,
                    server_hostname=access.server_name or None,
                    allow_redirects=False,
                ) as answer:
                    body = await answer.content.read(_MOST + 1)
                    while not answer.content.at_eof() and len(body) <= _MOST:
                        body += await answer.content.read(_MOST + 1)
        except _BROKEN as error:
            raise _unreachable(access, error) from error
        if len(body) > _MOST:
            raise Unreachable(f"{access.url}{path} answers with more than {_MOST >> 20} MiB")
        return answer.status, body


@asynccontextmanager
async def connect_kubelet(
    access: KubeletAccess, component: str, told: RequestTold | None = None
) -> AsyncIterator[Kubelet]:
    """A client for the time of the block; `told` hears of each request."""
    async with session_of(_CONNECTIONS, f"koordpolicy-{component}") as session:
        yield Kubelet(session, access, told)


def _credentials(access: KubeletAccess) -> tuple[ssl.SSLContext | bool, dict[str, str]]:
    """As they are on disk now: tokens and certificates are renewed there. Raises OSError, ValueError."""
    headers = {}
    if access.token_file is not None:
        headers["Authorization"] = f"Bearer {access.token_file.read_text('ascii').strip()}"
    if not access.url.startswith("https:"):
        return True, headers
    if access.insecure:
        return False, headers
    if access.ca_file is None:
        return True, headers
    return ssl.create_default_context(cafile=access.ca_file), headers


def _unreachable(access: KubeletAccess, error: Exception) -> KubeError:
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        signer = f"`{access.ca_file}`" if access.ca_file is not None else "an authority of the system"
        what = (
            f"{error.certificate_error}: it has to be signed by {signer} for `{access.server_name or error.host}`;"
            " where kubelets sign their own certificates, `--kubelet-insecure-tls` takes any"
        )
        return Unreachable(f"the kubelet at {access.url} cannot be trusted: {what}")
    if isinstance(error, aiohttp.ClientConnectorError) and not isinstance(error, aiohttp.ClientSSLError):
        what = error.os_error.strerror or str(error.os_error)
    else:
        what = str(error) or type(error).__name__
    return Unreachable(f"the kubelet at {access.url} does not answer: {what}")
