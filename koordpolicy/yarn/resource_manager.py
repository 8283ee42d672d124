"""A client of YARN's ResourceManager, by its REST API: which NodeManagers there are, and what they may give out."""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias
from urllib.parse import quote

import aiohttp

from koordpolicy.model.reading import ObjectError, parse_json
from koordpolicy.yarn.nodes import NodeManager, YARNAmounts, read_node_managers

_NODES: Final = "/ws/v1/cluster/nodes"
_MOST: Final = 64 << 20
"""Bytes of an answer: some ten thousand nodes."""
_CONNECTIONS: Final = 4
_LEAVE: Final = 1.0
"""Seconds that connections get to close."""
_SHOWN: Final = 200
"""Characters of an error that are repeated."""
_BROKEN: Final = (aiohttp.ClientError, TimeoutError, OSError, ValueError)


class ResourceManagerError(Exception):
    """A ResourceManager did not do what was asked; `status` is that of its answer, 0 where there was none."""

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, slots=True)
class ResourceManagerAccess:
    """Where ResourceManagers are, `http://rm-0:8088`, one of which is active, and as whom they are asked.

    `user` is the name of simple authentication, empty for none; `token_file` holds a bearer token, and `ca_file` the authorities
    that are trusted instead of the system's.
    """

    urls: tuple[str, ...]
    user: str = ""
    token_file: Path | None = None
    ca_file: Path | None = None


RequestHeard: TypeAlias = Callable[[str, int], None]
"""Hears of a request: what was asked (`nodes`, `update`), and the status of the answer, 0 for none."""


class ResourceManager:
    """Asks the ResourceManagers of one cluster, the one first that answered last. Every method raises `ResourceManagerError`."""

    def __init__(
        self, session: aiohttp.ClientSession, access: ResourceManagerAccess, heard: RequestHeard
    ) -> None:
        self._session = session
        self._access = access
        self._heard = heard
        self._first = 0

    async def node_managers(self, seconds: float) -> Mapping[str, NodeManager]:
        """The NodeManagers that run, by id; each ResourceManager is waited for that many seconds."""
        body = await self._ask("nodes", "GET", _NODES, None, seconds)
        try:
            return await asyncio.to_thread(_read, body)
        except (ObjectError, ValueError, RecursionError) as error:
            raise ResourceManagerError(f"the list of nodes cannot be read: {error}") from error

    async def offer(self, node: str, amounts: YARNAmounts, grace: int, seconds: float) -> None:
        """Let YARN use these amounts of a NodeManager; containers beyond them may go on for `grace` milliseconds.

        The answer says what was so before as often as what is so now: the next list of nodes tells.
        """
        body = {
            "resource": {"memory": amounts.memory, "vCores": amounts.vcores},
            "overCommitTimeout": grace,
        }
        path = f"{_NODES}/{quote(node, safe=':')}/resource"
        await self._ask("update", "POST", path, json.dumps(body).encode(), seconds)

    async def _ask(self, what: str, method: str, path: str, body: bytes | None, seconds: float) -> bytes:
        """The body of the active one's answer. One that is on standby, or does not answer, is passed over."""
        urls, problems = self._access.urls, []
        for step in range(len(urls)):
            at = (self._first + step) % len(urls)
            try:
                answer = await self._ask_one(what, method, urls[at], path, body, seconds)
            except ResourceManagerError as error:
                if error.status and not _is_elsewhere(error.status):
                    raise
                problems.append(error)
            else:
                self._first = at
                return answer
        raise ResourceManagerError("; ".join(map(str, problems)), problems[-1].status)

    async def _ask_one(
        self, what: str, method: str, url: str, path: str, body: bytes | None, seconds: float
    ) -> bytes:
        status = 0
        try:
            async with asyncio.timeout(seconds):
                tls, headers = await asyncio.to_thread(_credentials, self._access, url)
                async with self._session.request(
                    method,
                    url + path,
                    params={"user.name": self._access.user} if self._access.user else None,
                    data=body,
                    headers=headers,
                    ssl=tls,
                    allow_redirects=False,
                ) as answer:
                    status, text = answer.status, await _body(answer)
        except _BROKEN as error:
            raise ResourceManagerError(
                f"{url} does not answer: {str(error) or f'nothing within {seconds:g} s'}"
            ) from error
        finally:
            self._heard(what, status)
        if len(text) > _MOST:
            raise ResourceManagerError(f"{url} answers with more than {_MOST >> 20} MiB")
        # A ResourceManager on standby says so in a page that browsers reload.
        if status != 200 or text.startswith(b"This is standby RM"):
            raise ResourceManagerError(_refusal(url, status, text), 307 if status == 200 else status)
        return text


@asynccontextmanager
async def connect_resource_manager(
    access: ResourceManagerAccess, heard: RequestHeard = lambda what, status: None
) -> AsyncIterator[ResourceManager]:
    """A client for the time of the block; `heard` hears of each request."""
    session = aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=_CONNECTIONS),
        headers={"User-Agent": "koordpolicy-yarn-operator", "Accept": "application/json"},
        cookie_jar=aiohttp.DummyCookieJar(),
    )
    try:
        yield ResourceManager(session, access, heard)
    finally:
        with suppress(TimeoutError):  # a goodbye of TLS that does not come
            async with asyncio.timeout(_LEAVE):
                await session.close()


async def _body(answer: aiohttp.ClientResponse) -> bytes:
    body = await answer.content.read(_MOST + 1)
    while not answer.content.at_eof() and len(body) <= _MOST:
        body += await answer.content.read(_MOST + 1)
    return body


def _is_elsewhere(status: int) -> bool:
    """Whether another ResourceManager may be the one to ask."""
    return 300 <= status < 400 or status >= 500


def _read(body: bytes) -> Mapping[str, NodeManager]:
    found = parse_json(body.decode())
    if not isinstance(found, Mapping):
        raise ObjectError("not a JSON object")
    return read_node_managers(found)


def _credentials(access: ResourceManagerAccess, url: str) -> tuple[ssl.SSLContext | bool, dict[str, str]]:
    """As they are on disk now: tokens and certificates are renewed there. Raises OSError, ValueError."""
    headers = {"Content-Type": "application/json"}
    if access.token_file is not None:
        headers["Authorization"] = f"Bearer {access.token_file.read_text('ascii').strip()}"
    if access.ca_file is None or not url.startswith("https:"):
        return True, headers
    return ssl.create_default_context(cafile=access.ca_file), headers


def _refusal(url: str, status: int, body: bytes) -> str:
    """What a ResourceManager says against it, with the remedy where it is one of ours."""
    said = body.decode("utf-8", "replace")
    try:
        found: Any = json.loads(said)
        said = str(found["RemoteException"]["message"])
    except (ValueError, KeyError, TypeError, RecursionError):
        said = said if not said.lstrip().startswith("<") else ""
    said = " ".join(said.split())[:_SHOWN]
    remedy = ""
    if status in {401, 403}:
        remedy = " (is the user of --yarn-user, or the token of --yarn-token-file, one of yarn.admin.acl?)"
    return f"{url} answers {status}{': ' if said else ''}{said}{remedy}"
