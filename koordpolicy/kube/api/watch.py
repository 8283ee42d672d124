"""A stream of lines, cut into events."""

from collections import deque
from collections.abc import AsyncIterator
from types import MappingProxyType
from typing import Any, Final

import aiohttp
import msgspec

from koordpolicy.kube.api.codec import Codec
from koordpolicy.kube.api.statuses import failed_watch
from koordpolicy.kube.errors import Unreachable
from koordpolicy.kube.port import EventType, WatchEvent
from koordpolicy.kube.resources import Resource

_LONGEST: Final = 64 * 2**20
"""Bytes of one event. Objects end near 3 MiB; what is larger is no event."""

_TYPES: Final = MappingProxyType({kind.value: kind for kind in EventType})


class WatchEvents:
    """The events of a watch, until the server ends it or the connection breaks, which is the same to us.

    What arrived together is cut together and decoded one by one, as it is taken.
    """

    def __init__(self, content: aiohttp.StreamReader, resource: Resource, codec: Codec) -> None:
        self._content = content
        self._resource = resource
        self._codec = codec
        self._decode = codec.frames(resource).decode
        self._lines: deque[bytes] = deque()
        self._rest: list[bytes] = []
        self._rest_size = 0

    def __aiter__(self) -> AsyncIterator[WatchEvent]:
        return self

    async def __anext__(self) -> WatchEvent:
        while not self._lines:
            await self._more()
        line = self._lines.popleft()
        try:
            frame: Any = self._decode(line)
            kind = _TYPES.get(frame.type)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            if b'"ERROR"' in line[:64]:
                raise failed_watch(line) from None
            raise Unreachable(f"the watch of {self._resource} sent no event: {error}") from error
        if kind is None:
            if frame.type == "ERROR":
                raise failed_watch(line)
            raise Unreachable(f"the watch of {self._resource} sent an event of type {frame.type!r}")
        return WatchEvent(kind, self._codec.finished(self._resource, frame.object))

    async def _more(self) -> None:
        """Take what came in the meantime, or wait for it."""
        try:
            chunk = await self._content.readany()
        except (aiohttp.ClientError, TimeoutError, OSError):
            raise StopAsyncIteration from None
        if not chunk:
            raise StopAsyncIteration
        *lines, rest = chunk.split(b"\n")
        if lines:
            lines[0] = b"".join((*self._rest, lines[0]))
            self._rest.clear()
            self._rest_size = 0
            self._lines.extend(line for line in lines if line)
        if rest:
            self._rest.append(rest)
            self._rest_size += len(rest)
            if self._rest_size > _LONGEST:
                raise Unreachable(f"the watch of {self._resource} sent an event without end")
