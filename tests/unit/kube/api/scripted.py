"""An HTTP server on loopback that answers as a test says, and a client that talks to it."""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from aiohttp import web

from koordpolicy.kube.api import ApiCluster, ClientLimits, Connection, connect

Answer: TypeAlias = web.StreamResponse | Awaitable[web.StreamResponse]
QUICK = ClientLimits(connect=2.0, request=2.0, list=2.0)


@dataclass(frozen=True, slots=True)
class Asked:
    """One request as it arrived. `target` is path and query."""

    method: str
    target: str
    headers: dict[str, str]
    body: Any


@dataclass(slots=True)
class Scripted:
    """Answers the requests of a test in turn by `script`, the last one for ever; `asked` holds what came."""

    script: list[Callable[[web.BaseRequest], Answer]]
    asked: list[Asked] = field(default_factory=list)
    port: int = 0

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        raw = await request.read()
        headers = {name.lower(): value for name, value in request.headers.items()}
        self.asked.append(Asked(request.method, request.path_qs, headers, json.loads(raw) if raw else None))
        step = self.script.pop(0) if len(self.script) > 1 else self.script[0]
        answer = step(request)
        return await answer if isinstance(answer, Awaitable) else answer

    @property
    def tried(self) -> int:
        return len(self.asked)


def says(body: Any, code: int = 200, **headers: str) -> Callable[[web.BaseRequest], Answer]:
    """An answer of JSON. Underlines in names of headers stand for dashes."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda request: web.json_response(body, status=code, headers=named)


def refuses(
    code: int, reason: str = "", message: str = "no", details: Any = None, **headers: str
) -> Callable[[web.BaseRequest], Answer]:
    """A Status."""
    body = {"kind": "Status", "code": code, "reason": reason, "message": message, "details": details}
    return says(body, code, **headers)


def drops(request: web.BaseRequest) -> Answer:
    """The connection breaks before an answer."""
    assert request.transport is not None
    request.transport.abort()
    return web.Response()


async def never(request: web.BaseRequest) -> web.StreamResponse:
    """No answer within any test's patience."""
    await asyncio.sleep(60)
    return web.Response()


POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "resourceVersion": "1"}, "spec": {}}


def kubeconfig(folder: Path, server: str, user: Any = None, **cluster: Any) -> str:
    """A kubeconfig file; JSON is YAML too."""
    text = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": server, **cluster}}],
        "users": [{"name": "u", "user": user or {"token": "secret"}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    file = folder / "kubeconfig"
    file.write_text(json.dumps(text))
    return str(file)


@asynccontextmanager
async def serving(
    *script: Callable[[web.BaseRequest], Answer], tls: ssl.SSLContext | None = None
) -> AsyncIterator[Scripted]:
    """A server that runs."""
    scripted = Scripted(list(script))
    runner = web.ServerRunner(web.Server(scripted.handle), shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls)
    await site.start()
    try:
        scripted.port = runner.addresses[0][1]
        yield scripted
    finally:
        await runner.cleanup()


def play(
    folder: Path,
    scene: Callable[[ApiCluster, Scripted], Coroutine[Any, Any, None]],
    *script: Callable[[web.BaseRequest], Answer],
    user: Any = None,
    **options: Any,
) -> Scripted:
    """Let a client and a server play a scene; gives the server with what it was asked."""

    async def run() -> Scripted:
        async with serving(*script) as server:
            connection = Connection.load(kubeconfig(folder, f"http://127.0.0.1:{server.port}", user))
            settings = {"jitter": lambda: 0.0, "limits": QUICK, **options}
            async with connect(connection, **settings) as cluster:
                await scene(cluster, server)
            return server

    return asyncio.run(run())
