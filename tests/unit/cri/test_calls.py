"""Calls that a server hands on: streams in both directions, errors amid them, and clients that go."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest

from koordpolicy.cri.calls import CallFailed, Channel, GrpcCall, GrpcServer, Handler

EVENTS = "/runtime.v1.RuntimeService/GetContainerEvents"


class Streaming(grpc.GenericRpcHandler):  # type: ignore[misc]  # grpcio has no types
    """Answers each message by two; `fail` ends the call by an error, `wait` never ends."""

    def __init__(self) -> None:
        self.cancelled = asyncio.Event()

    def service(self, details: Any) -> Any:
        return grpc.stream_stream_rpc_method_handler(self.answers)

    async def answers(self, requests: AsyncIterator[bytes], context: Any) -> AsyncIterator[bytes]:
        await context.send_initial_metadata((("first", "1"),))
        async for one in requests:
            if one == b"fail":
                await context.abort(grpc.StatusCode.DATA_LOSS, "amid it", (("last", "2"),))
            yield one + b"1"
            yield one + b"2"
            if one == b"wait":
                try:
                    await asyncio.sleep(30)
                finally:
                    self.cancelled.set()


def story(folder: Path, work: Callable[[Channel, Streaming], Awaitable[None]]) -> None:
    async def main() -> None:
        backend, handler = grpc.aio.server(), Streaming()
        backend.add_generic_rpc_handlers((handler,))
        backend.add_insecure_port(f"unix:{folder}/backend.sock")
        await backend.start()
        onward = Channel(folder / "backend.sock")
        between = GrpcServer(folder / "between.sock", {}, onward)
        await between.start()
        client = Channel(folder / "between.sock")
        async with asyncio.timeout(20):
            await work(client, handler)
        await client.close()
        await between.stop()
        await onward.close()
        await backend.stop(0)

    asyncio.run(main())


async def several(*messages: bytes) -> AsyncIterator[bytes]:
    for one in messages:
        yield one


def test_streams_pass_in_both_directions(tmp_path: Path) -> None:
    async def work(client: Channel, _: Streaming) -> None:
        call = client.stream(EVENTS, several(b"a", b"b"), GrpcCall(b"", seconds=10))
        assert [one async for one in call] == [b"a1", b"a2", b"b1", b"b2"]
        assert ("first", "1") in tuple(await call.initial_metadata())

    story(tmp_path, work)


def test_an_error_amid_a_stream_passes(tmp_path: Path) -> None:
    async def work(client: Channel, _: Streaming) -> None:
        call = client.stream(EVENTS, several(b"a", b"fail"), GrpcCall(b"", seconds=10))
        heard: list[bytes] = []

        async def hear() -> None:
            async for one in call:
                heard.append(one)  # noqa: PERF401  # what came before the error counts

        with pytest.raises(grpc.aio.AioRpcError) as failed:
            await hear()
        assert heard == [b"a1", b"a2"]
        assert (failed.value.code(), failed.value.details()) == (grpc.StatusCode.DATA_LOSS, "amid it")
        assert ("last", "2") in tuple(failed.value.trailing_metadata())

    story(tmp_path, work)


def test_a_client_that_goes_ends_the_call_behind(tmp_path: Path) -> None:
    async def work(client: Channel, handler: Streaming) -> None:
        call = client.stream(EVENTS, several(b"wait"), GrpcCall(b"", seconds=10))
        async for _ in call:
            break
        call.cancel()
        await handler.cancelled.wait()

    story(tmp_path, work)


def test_one_that_ends_leaves_the_socket_of_its_successor(tmp_path: Path) -> None:
    def handlers(word: bytes) -> dict[str, Handler]:
        async def answer(_: GrpcCall) -> bytes:
            return word

        return {"/s/m": answer}

    async def main() -> None:
        path = tmp_path / "s.sock"
        old, new = GrpcServer(path, handlers(b"old")), GrpcServer(path, handlers(b"new"))
        client = Channel(path)
        await old.start()
        assert path.stat().st_mode & 0o777 == 0o660
        assert await client.call("/s/m", GrpcCall(b"", seconds=10)) == b"old"
        await new.start()
        await old.stop()
        del old  # with it gRPC takes away what it has bound
        again = Channel(path)
        assert await again.call("/s/m", GrpcCall(b"", seconds=10)) == b"new"
        for one in (client, again, new):
            await (one.stop() if isinstance(one, GrpcServer) else one.close())

    asyncio.run(main())
    assert list(tmp_path.iterdir()) == []


def test_an_error_of_ours_costs_the_call_that_met_it_alone(tmp_path: Path) -> None:
    async def answer(call: GrpcCall) -> bytes:
        if call.request == b"fail":
            raise KeyError("x")
        return call.request

    async def main() -> None:
        server, client = GrpcServer(tmp_path / "s.sock", {"/s/m": answer}), Channel(tmp_path / "s.sock")
        await server.start()
        before, failed, after = await asyncio.gather(
            *(client.call("/s/m", GrpcCall(one, seconds=10)) for one in (b"1", b"fail", b"2")),
            return_exceptions=True,
        )
        assert (before, after) == (b"1", b"2")
        assert isinstance(failed, CallFailed)
        assert failed.code == "UNKNOWN"
        await client.close()
        await server.stop()

    asyncio.run(main())
