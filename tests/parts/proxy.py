"""A TCP proxy that a test puts between a client and a server, to break the connection as networks do."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextlib import suppress
from types import TracebackType
from typing import Any, Self, TypeVar

from tests.parts.processes import free_port

T = TypeVar("T")


class Proxy:
    """Forwards bytes between its own port and a port of a server, both on loopback. A context manager.

    Of several servers connections go to the next in turn that takes them, as through a Service.

    Works in a thread of its own, so that a test's event loop may stand still. `port` stays the same.
    """

    def __init__(self, target: int, *more: int) -> None:
        self.port = free_port()
        self.targets = [target, *more]
        self._turn = 0
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxy", daemon=True)
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._flowing = asyncio.Event()
        self._flowing.set()

    def __enter__(self) -> Self:
        self._thread.start()
        self.accept()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.refuse()
        self._run(self._finish).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    def cut(self) -> None:
        """Reset all present connections; new ones are served."""

        async def cut() -> None:
            for writer in self._writers:
                writer.transport.abort()

        self._run(cut).result(10)

    def refuse(self) -> None:
        """Reset all connections and refuse new ones, as when the server's process is gone."""

        async def refuse() -> None:
            if self._server is not None:
                self._server.close()
                self._server = None

        self._run(refuse).result(10)
        self.cut()

    def accept(self) -> None:
        """Serve new connections again."""

        async def accept() -> None:
            if self._server is None:
                self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)

        self._run(accept).result(10)

    def hold(self) -> None:
        """Forward nothing more, and close nothing: the silence of a network that drops packets."""
        self._loop.call_soon_threadsafe(self._flowing.clear)

    def release(self) -> None:
        """Forward again, what was held back first."""
        self._loop.call_soon_threadsafe(self._flowing.set)

    def turn_to(self, target: int) -> None:
        """Lead the next connection to that server if it takes it, and those after it to others in turn."""
        at = self.targets.index(target)
        self.targets, self._turn = [*self.targets[at:], *self.targets[:at]], -1

    @property
    def connections(self) -> int:
        """How many connections go through it now."""
        return len(self._writers) // 2

    def _run(self, work: Callable[[], Coroutine[Any, Any, T]]) -> Future[T]:
        return asyncio.run_coroutine_threadsafe(work(), self._loop)

    async def _finish(self) -> None:
        tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far = await self._far()
        if far is None:
            writer.transport.abort()
            return
        far_reader, far_writer = far
        self._writers |= {writer, far_writer}
        try:
            with suppress(OSError, asyncio.CancelledError):
                await asyncio.gather(self._pump(reader, far_writer), self._pump(far_reader, writer))
        finally:
            self._writers -= {writer, far_writer}
            for end in (writer, far_writer):
                end.transport.abort()

    async def _far(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter] | None:
        self._turn += 1
        targets = self.targets
        for number in range(len(targets)):
            with suppress(OSError):
                return await asyncio.open_connection(
                    "127.0.0.1", targets[(self._turn + number) % len(targets)]
                )
        return None

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(1 << 16):
            await self._flowing.wait()
            writer.write(data)
            await writer.drain()
        with suppress(OSError):
            writer.write_eof()
