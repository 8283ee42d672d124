"""gRPC over Unix sockets with messages as bytes: calls, handlers, and the way on for every call that nobody handles.

The one door to grpcio. Messages are never decoded here, so that whatever a newer kubelet and runtime say to each other passes unseen.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

import grpc
import grpc.aio

from koordpolicy.cri.methods import UNARY
from koordpolicy.cri.sockets import OwnSocket

Metadata: TypeAlias = Sequence[tuple[str, str | bytes]]

_OPTIONS: Final = (
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_send_message_length", -1),
    ("grpc.max_metadata_size", 1 << 20),
)
_CLIENT: Final = (
    *_OPTIONS,
    ("grpc.default_authority", "localhost"),  # Go's servers refuse the path of a socket as one
    # On one machine trying again costs nothing, and whoever is back is wanted at once.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 100),
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.enable_retries", 0),
)
_SERVER: Final = (*_OPTIONS, ("grpc.so_reuseport", 0))
_OWN: Final = frozenset({"user-agent", "content-type", "te", "grpc-encoding", "grpc-accept-encoding", "grpc-timeout"})  # fmt: skip
"""What gRPC says for itself on every connection."""
_UNSENT: Final = "Internal error from Core"
"""What grpcio says where the other side ended a stream before a request had gone out, in place of what that one said."""
_ATTEMPTS: Final = 6
_GRACE: Final = 2.0
"""Seconds that calls may take to end once the server is told to."""


class CallFailed(Exception):
    """A call that was answered by an error, or not at all. `code` is gRPC's name for it, such as `UNAVAILABLE`."""

    def __init__(self, code: str, details: str, trailing: Metadata = ()) -> None:
        super().__init__(f"{code}: {details}")
        self.code = code
        self.details = details
        self.trailing = trailing

    @property
    def unanswered(self) -> bool:
        """Whether nobody was there to answer."""
        return self.code == "UNAVAILABLE"


@dataclass(frozen=True, slots=True)
class GrpcCall:
    """A call as it came: its request, who asks with which metadata, and the seconds that are left for it."""

    request: bytes
    metadata: Metadata = ()
    seconds: float | None = None


Handler: TypeAlias = Callable[[GrpcCall], Awaitable[bytes]]
"""Answers one call. Raises `CallFailed`, which the caller gets as it stands."""


class Channel:
    """A client of the server at a Unix socket, which may come later, or again."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._channel = grpc.aio.insecure_channel(f"unix:{path}", options=_CLIENT)
        self._unary: dict[str, Any] = {}

    async def call(self, method: str, asked: GrpcCall, meanwhile: Callable[[], None] | None = None) -> bytes:
        """The answer to a call; `meanwhile` is called once, while the other side is at work. Raises `CallFailed`."""
        made = self.begin(method, asked)
        try:
            if meanwhile is not None:
                await asyncio.sleep(0)  # it goes out in a task of its own
                meanwhile()
            answer: bytes = await made
        except grpc.aio.AioRpcError as error:
            raise _failed(error) from None
        finally:
            made.cancel()  # which does nothing to one that is done
        return answer

    def begin(self, method: str, asked: GrpcCall) -> Any:
        """The same as it is made: what is awaited for the answer, and knows the metadata beside it."""
        made = self._unary.get(method)
        if made is None:
            made = self._unary[method] = self._channel.unary_unary(method)
        return made(asked.request, timeout=asked.seconds, metadata=_handed_on(asked.metadata))

    def stream(self, method: str, requests: Any, asked: GrpcCall) -> Any:
        """A call of any sort, as it is made: an iterator of answers."""
        return self._channel.stream_stream(method)(
            requests, timeout=asked.seconds, metadata=_handed_on(asked.metadata)
        )

    async def close(self) -> None:
        """Give the connection up."""
        await self._channel.close()


class GrpcServer:
    """A server at a Unix socket: handlers by method, and a channel that everything else goes on to, if any."""

    def __init__(self, path: Path, handlers: Mapping[str, Handler], onward: Channel | None = None) -> None:
        self.path = path
        self._socket = OwnSocket(path)
        self._server = grpc.aio.server(options=_SERVER)
        self._server.add_generic_rpc_handlers((_Methods(handlers, onward),))

    async def start(self, mode: int = 0o660) -> None:
        """Listen. A socket that a killed process left is taken away. Raises OSError."""
        self._socket.prepare()
        try:
            self._server.add_insecure_port(f"unix:{self._socket.early}")
        except RuntimeError as error:
            raise OSError(f"cannot listen there: {error}") from None
        self._socket.place(mode)
        await self._server.start()

    async def stop(self) -> None:
        """End, once calls that are under way have, or after two seconds."""
        self._socket.unlink()
        await self._server.stop(_GRACE)


class _Methods(grpc.GenericRpcHandler):  # type: ignore[misc]  # grpcio has no types of its own
    def __init__(self, handlers: Mapping[str, Handler], onward: Channel | None) -> None:
        self._handlers = {
            method: grpc.unary_unary_rpc_method_handler(_answering(handler))
            for method, handler in handlers.items()
        }
        self._onward = onward

    def service(self, details: Any) -> Any:
        found = self._handlers.get(details.method)
        if found is not None or self._onward is None:
            return found
        if details.method in UNARY:
            return grpc.unary_unary_rpc_method_handler(_passing_one(details.method, self._onward))
        return grpc.stream_stream_rpc_method_handler(_passing(details.method, self._onward))


def _answering(handler: Handler) -> Callable[[bytes, Any], Awaitable[bytes]]:
    async def answer(request: bytes, context: Any) -> bytes:
        try:
            return await handler(_asked(request, context))
        except CallFailed as failure:
            await _abort(context, failure)
            raise  # the line above does

    return answer


def _passing_one(method: str, onward: Channel) -> Callable[[bytes, Any], Awaitable[bytes]]:
    """Hands a call of one request and one answer on."""

    async def answer(request: bytes, context: Any) -> bytes:
        call = onward.begin(method, _asked(request, context))
        try:
            found: bytes = await call
            if first := _handed_on(await call.initial_metadata()):
                await context.send_initial_metadata(first)
            if last := _handed_on(await call.trailing_metadata()):
                context.set_trailing_metadata(last)
        except grpc.aio.AioRpcError as error:
            await _abort(context, _failed(error))
            raise  # the line above does
        return found

    return answer


def _passing(method: str, onward: Channel) -> Callable[[Any, Any], AsyncIterator[bytes]]:
    """Hands a call on, and its answers back, whatever sort it is.

    Where the other side ends a call before it has taken the request, as Go's servers do with a method that they do not know, grpcio
    gives an error of its own in place of the status about once in thirty times. Nothing was taken then, so the call is made again.
    """

    async def answers(requests: AsyncIterator[bytes], context: Any) -> AsyncIterator[bytes]:
        asked, again = _asked(b"", context), _Requests(requests)
        for left in reversed(range(_ATTEMPTS)):
            call, answered = onward.stream(method, again.all(), asked), False
            try:
                if first := _handed_on(await call.initial_metadata()):
                    await context.send_initial_metadata(first)
                    answered = True
                async for answer in call:
                    answered = True
                    yield answer
                context.set_trailing_metadata(_handed_on(await call.trailing_metadata()))
                return
            except grpc.aio.AioRpcError as error:
                if left and error.details() == _UNSENT and again.whole and not answered:
                    continue
                await _abort(context, _failed(error))
            finally:
                call.cancel()

    return answers


class _Requests:
    """The requests of a call; the first one can be had again, as long as it is the only one."""

    def __init__(self, requests: AsyncIterator[bytes]) -> None:
        self._requests = requests
        self._first: bytes | None = None
        self.whole = True
        """Whether `all` gives all of them once more."""

    async def all(self) -> AsyncIterator[bytes]:
        if self._first is not None:
            yield self._first
        async for one in self._requests:
            self.whole = self._first is None
            self._first = one
            yield one


def _asked(request: bytes, context: Any) -> GrpcCall:
    return GrpcCall(request, tuple(context.invocation_metadata() or ()), context.time_remaining())


async def _abort(context: Any, failure: CallFailed) -> None:
    await context.abort(grpc.StatusCode[failure.code], failure.details, _handed_on(failure.trailing))


def _failed(error: grpc.aio.AioRpcError) -> CallFailed:
    return CallFailed(error.code().name, error.details() or "", tuple(error.trailing_metadata() or ()))


def _handed_on(metadata: Any) -> tuple[tuple[str, str | bytes], ...]:
    return tuple((key, value) for key, value in metadata or () if key.lower() not in _OWN)
