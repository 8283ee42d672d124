"""The console's process: the page served until it is told to stop."""

from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack
from typing import Any, Final

from koordpolicy.console.api import ConsoleApi
from koordpolicy.runtime.http.limits import ServerLimits
from koordpolicy.runtime.http.serving import Endpoint, serve
from koordpolicy.runtime.process import Process, Tasks

_LIMITS: Final = ServerLimits(connections=64, seconds=60.0)
"""A few browsers; what is asked of a large cluster may take a while."""


async def run_console(
    process: Process,
    endpoint: Endpoint,
    api: ConsoleApi,
    beside: Coroutine[Any, Any, None] | None,
    ready: Callable[[int], None],
) -> None:
    """Serve the page, with some work `beside` it, until the process is told to stop. `ready` is told the port."""
    async with AsyncExitStack() as stack:
        server = await serve(stack, endpoint, api.routes(), process.metrics, limits=_LIMITS)
        tasks = await stack.enter_async_context(Tasks())
        if beside is not None:
            tasks.start("pictures of the cluster", beside)
        ready(server.port)
        await process.stopped()
