"""Servers at Unix sockets that note what reaches them: a runtime of CRI, and hook servers, as bytes over real gRPC."""

import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from koordpolicy.cri.calls import CallFailed, Channel, GrpcCall, GrpcServer, Handler
from koordpolicy.cri.shapes import CONTAINER_LIST, IDENTITY, POD_LIST
from koordpolicy.cri.stages import TTRPC_ENDPOINT, HookStage
from koordpolicy.cri.wire import Message
from koordpolicy.runtime_proxy.checkpoint import Checkpoint
from koordpolicy.runtime_proxy.hook_servers import HookServers
from koordpolicy.runtime_proxy.interceptor import RUNTIME_SERVICE, Interceptor

CALLS = (
    "RunPodSandbox", "StopPodSandbox", "CreateContainer", "StartContainer", "UpdateContainerResources", "StopContainer",
    "RemoveContainer", "RemovePodSandbox", "ListPodSandbox", "ListContainers", "Version", "Status",
)  # fmt: skip


@dataclass
class Noting:
    """What reached a server, in order; `answers` by method, bytes or what is raised."""

    heard: list[tuple[str, bytes]] = field(default_factory=list)
    metadata: list[tuple[tuple[str, str | bytes], ...]] = field(default_factory=list)
    answers: dict[str, bytes | CallFailed] = field(default_factory=dict)

    def handler(self, name: str) -> Handler:
        async def handle(asked: GrpcCall) -> bytes:
            self.heard.append((name, asked.request))
            self.metadata.append(tuple(asked.metadata))
            found = self.answers.get(name, b"")
            if isinstance(found, CallFailed):
                raise found
            return found

        return handle


def identity(value: str) -> bytes:
    made = Message(IDENTITY)
    made.put_text("id", value)
    return made.encoded()


@dataclass
class Place:
    """A runtime, a proxy before it, and where hook servers announce themselves."""

    folder: Path
    runtime: Noting
    kubelet: Channel
    interceptor: Interceptor

    async def call(self, name: str, request: bytes = b"", seconds: float = 10) -> bytes:
        return await self.kubelet.call(RUNTIME_SERVICE + name, GrpcCall(request, seconds=seconds))

    def announce(
        self, name: str, stages: list[HookStage], policy: str = "", at: str = "", *, ttrpc: bool = False
    ) -> None:
        announcement = {
            "remote-endpoint": str(self.folder / f"{at or name}.sock"),
            "failure-policy": policy,
            "runtime-hooks": stages,
            **({TTRPC_ENDPOINT: f"unix://{self.folder / name}.ttrpc"} if ttrpc else {}),
        }
        (self.folder / "hooks" / f"{name}.json").write_text(json.dumps(announcement))

    @asynccontextmanager
    async def hook_server(self, name: str) -> AsyncIterator[Noting]:
        noting = Noting()
        handlers = {stage.method: noting.handler(stage) for stage in HookStage}
        server = GrpcServer(self.folder / f"{name}.sock", handlers)
        await server.start()
        try:
            yield noting
        finally:
            await server.stop()


@asynccontextmanager
async def proxied(
    folder: Path,
    skips: Callable[[Mapping[str, str]], bool] = lambda labels: labels.get("skip") == "true",
    hook_seconds: float = 5.0,
    runtime: Noting | None = None,
) -> AsyncIterator[Place]:
    """A proxy before a runtime that notes."""
    noting = runtime or Noting()
    noting.answers = {
        "RunPodSandbox": identity("sandbox"),
        "CreateContainer": identity("container"),
        **noting.answers,
    }
    (folder / "hooks").mkdir(exist_ok=True)
    backend = GrpcServer(
        folder / "runtime.sock", {RUNTIME_SERVICE + name: noting.handler(name) for name in CALLS}
    )
    await backend.start()
    onward, servers = Channel(folder / "runtime.sock"), HookServers(folder / "hooks", hook_seconds)
    interceptor = Interceptor(onward, servers, skips, Checkpoint(folder / "records"))
    proxy = GrpcServer(folder / "proxy.sock", interceptor.handlers(), onward)
    await interceptor.take_over()
    await proxy.start()
    noting.heard.clear()
    kubelet = Channel(folder / "proxy.sock")
    try:
        yield Place(folder, noting, kubelet, interceptor)
    finally:
        await kubelet.close()
        await proxy.stop()
        await servers.close()
        await onward.close()
        await backend.stop()


def listed(name: str) -> bytes:
    """A list with one pod of that ID."""
    made = Message(POD_LIST)
    pod = Message(POD_LIST["items"].shape or {})
    pod.put_text("id", name)
    made.put_messages("items", [pod])
    return made.encoded()


def listed_container(name: str, sandbox: str) -> bytes:
    """A list with one container of that ID in a pod."""
    made = Message(CONTAINER_LIST)
    one = Message(CONTAINER_LIST["containers"].shape or {})
    one.put_text("id", name)
    one.put_text("pod_sandbox_id", sandbox)
    made.put_messages("containers", [one])
    return made.encoded()
