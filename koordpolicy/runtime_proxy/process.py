"""The runtime proxy as a process."""

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from koordpolicy.cri.calls import CallFailed, Channel, GrpcCall, GrpcServer
from koordpolicy.runtime.process import CannotStart, Process
from koordpolicy.runtime_proxy.checkpoint import Checkpoint
from koordpolicy.runtime_proxy.hook_servers import HookServers
from koordpolicy.runtime_proxy.interceptor import RUNTIME_SERVICE, Interceptor

LOG: Final = logging.getLogger(__name__)

NAME: Final = "runtime-proxy"
_VERSION_WITHIN: Final = 5.0
_PAUSE: Final = 1.0
"""Seconds until a runtime is asked again that is not there yet."""


@dataclass(frozen=True, slots=True)
class ProxySettings:
    """Where it listens, where the runtime does, who announces hook servers, where records of what runs are kept, and how long
    a hook server may take, in seconds.

    `skip` is a label, key and value, of pods that hooks are not asked about.
    """

    listen: Path
    runtime: Path
    hooks: Path
    records: Path
    hook_timeout: float
    skip: tuple[str, str]


async def run_proxy(process: Process, settings: ProxySettings) -> None:
    """Serve until the process is told to stop. Raises `CannotStart`."""
    key, value = settings.skip

    def skips(labels: Mapping[str, str]) -> bool:
        return labels.get(key) == value

    try:
        settings.hooks.mkdir(mode=0o755, parents=True, exist_ok=True)
    except OSError as error:
        raise CannotStart(f"--hooks {settings.hooks}: {error.strerror}") from None
    runtime, servers = Channel(settings.runtime), HookServers(settings.hooks, settings.hook_timeout)
    interceptor = Interceptor(runtime, servers, skips, Checkpoint(settings.records))
    server = GrpcServer(settings.listen, interceptor.handlers(), runtime)
    try:
        if not await process.before_stop(_runtime_is_there(runtime)):
            return
        await interceptor.take_over()
        servers.known()
        try:
            await server.start()
        except OSError as error:
            raise CannotStart(f"--listen {settings.listen}: {error.strerror or error}") from None
        LOG.info("%s serves what %s answers", settings.listen, settings.runtime)
        process.readiness.reached("running")
        await process.stopped()
        await server.stop()
    finally:
        await servers.close()
        await runtime.close()


async def _runtime_is_there(runtime: Channel) -> None:
    """Wait for a runtime that speaks CRI v1: kubelets wait as well. Raises `CannotStart` where it speaks another."""
    told = False
    while True:
        try:
            await runtime.call(RUNTIME_SERVICE + "Version", GrpcCall(b"", seconds=_VERSION_WITHIN))
            return
        except CallFailed as failure:
            if failure.code == "UNIMPLEMENTED":
                raise CannotStart(
                    f"{runtime.path} does not speak CRI v1 (`runtime.v1.RuntimeService`): {failure.details}"
                ) from None
            if not told:
                LOG.warning("%s does not answer yet: %s", runtime.path, failure)
                told = True
        await asyncio.sleep(_PAUSE)
