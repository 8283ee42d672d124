"""Connections for small requests, against servers that speak, or fall silent, byte by byte."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from koordpolicy.kube.api.access import Access
from koordpolicy.kube.api.wires import NotConnected, ServerAddress, Wires, wires_of

Scene = Callable[[Wires, ServerAddress, "_Server"], Awaitable[None]]


class _Server:
    """Answers each request, up to its empty line, by `says`; `None` closes the connection instead."""

    def __init__(self, says: Callable[[bytes], bytes | None]) -> None:
        self.says = says
        self.heads: list[bytes] = []
        self.open: list[asyncio.StreamWriter] = []
        self.connections = 0
        self.tasks: list[asyncio.Task[Any]] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        serving = asyncio.current_task()
        assert serving is not None
        self.tasks.append(serving)
        self.open.append(writer)
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                self.heads.append(head)
                answer = self.says(head)
                if answer is None:
                    break
                writer.write(answer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()
            self.open.remove(writer)


def _play(scene: Scene, says: Callable[[bytes], bytes | None], **access: Any) -> _Server:
    server = _Server(says)

    async def run() -> None:
        serving = await asyncio.start_server(server.serve, "127.0.0.1", 0)
        port = serving.sockets[0].getsockname()[1]
        async with serving, wires_of("agent/1", 2.0) as wires:
            place = wires.place(Access(f"http://127.0.0.1:{port}/below", **access))
            assert place is not None
            async with asyncio.timeout(10):
                await scene(wires, place, server)
                await wires.close()
                await asyncio.gather(*server.tasks)

    asyncio.run(run())
    return server


def _ok(_head: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


async def _get(wires: Wires, place: ServerAddress, target: str = "/a", seconds: float = 5.0) -> bytes:
    answer = await wires.request(place, "GET", target, None, "", seconds)
    return answer.body


def test_a_request_is_what_it_should_be_and_connections_serve_again() -> None:
    async def scene(wires: Wires, place: ServerAddress, _: _Server) -> None:
        assert await _get(wires, place, "/a?b=c") == b"ok"
        assert await _get(wires, place) == b"ok"

    server = _play(scene, _ok, authorization="Bearer me")
    first = server.heads[0].decode().split("\r\n")
    assert first[0] == "GET /below/a?b=c HTTP/1.1"
    assert first[1].startswith("Host: 127.0.0.1:")
    assert first[2:] == [
        "User-Agent: agent/1",
        "Accept: application/json",
        "Accept-Encoding: identity",
        "Authorization: Bearer me",
        "",
        "",
    ]
    assert (len(server.heads), server.connections) == (2, 1)


def test_as_many_connections_as_requests_at_a_time() -> None:
    async def scene(wires: Wires, place: ServerAddress, _: _Server) -> None:
        for _round in range(2):
            assert await asyncio.gather(*(_get(wires, place) for _ in range(5))) == [b"ok"] * 5

    assert _play(scene, _ok).connections == 5


def test_a_connection_that_was_closed_meanwhile_is_not_used() -> None:
    async def scene(wires: Wires, place: ServerAddress, server: _Server) -> None:
        assert await _get(wires, place) == b"ok"
        for writer in server.open:
            writer.close()
        await asyncio.sleep(0.05)
        assert await _get(wires, place) == b"ok"

    assert _play(scene, _ok).connections == 2


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nbad",
    ],
)
def test_a_connection_that_says_so_or_says_too_much_serves_no_further_request(answer: bytes) -> None:
    async def scene(wires: Wires, place: ServerAddress, _: _Server) -> None:
        assert await _get(wires, place) == b"ok"
        assert await _get(wires, place) == b"ok"

    assert _play(scene, lambda head: answer).connections == 2


def test_what_comes_unasked_is_no_answer_to_the_next_request() -> None:
    async def scene(wires: Wires, place: ServerAddress, server: _Server) -> None:
        assert await _get(wires, place) == b"ok"
        server.open[0].write(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nbad")
        await asyncio.sleep(0.05)
        assert await _get(wires, place) == b"ok"

    assert _play(scene, _ok).connections == 2


@pytest.mark.parametrize(
    "says", [lambda head: None, lambda head: b"nonsense\r\n\r\n", lambda head: b"HTTP/1.1 200 OK\r\n\r"]
)
def test_an_answer_that_does_not_come_is_an_error(says: Callable[[bytes], bytes | None]) -> None:
    async def scene(wires: Wires, place: ServerAddress, server: _Server) -> None:
        asking = asyncio.create_task(_get(wires, place))
        await asyncio.sleep(0.1)
        for writer in server.open:
            writer.close()
        with pytest.raises(ConnectionError) as caught:
            await asking
        assert not isinstance(caught.value, NotConnected)

    _play(scene, says)


def test_patience_ends_and_so_does_the_connection() -> None:
    async def scene(wires: Wires, place: ServerAddress, _: _Server) -> None:
        with pytest.raises(TimeoutError):
            await _get(wires, place, "/never", seconds=0.1)
        assert await _get(wires, place) == b"ok"

    server = _play(scene, lambda head: b"" if b"never" in head else _ok(head))
    assert server.connections == 2


def test_requests_at_a_time_are_given_up_each_in_its_time() -> None:
    ended: list[str] = []

    async def given_up(wires: Wires, place: ServerAddress, target: str, seconds: float) -> None:
        with pytest.raises(TimeoutError):
            await _get(wires, place, target, seconds)
        ended.append(target)

    async def scene(wires: Wires, place: ServerAddress, _: _Server) -> None:
        async with asyncio.TaskGroup() as group:
            for target, seconds in (("/never-2", 0.4), ("/never-3", 0.7), ("/never-1", 0.1)):
                group.create_task(given_up(wires, place, target, seconds))
            assert await _get(wires, place) == b"ok"
        await given_up(wires, place, "/never-4", 0.1)

    _play(scene, lambda head: b"" if b"never" in head else _ok(head))
    assert ended == ["/never-1", "/never-2", "/never-3", "/never-4"]


def test_an_answer_to_a_request_that_was_given_up_goes_to_nobody() -> None:
    async def scene(wires: Wires, place: ServerAddress, _: _Server) -> None:
        asking = asyncio.create_task(_get(wires, place, "/slow"))
        await asyncio.sleep(0.05)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert await _get(wires, place) == b"ok"

    server = _play(scene, lambda head: b"" if b"slow" in head else _ok(head))
    assert server.connections == 2


def test_nobody_there() -> None:
    async def run() -> None:
        async with wires_of("agent/1", 2.0) as wires:
            place = wires.place(Access("http://127.0.0.1:1"))
            assert place is not None
            with pytest.raises(NotConnected):
                await _get(wires, place)

    asyncio.run(run())


@pytest.mark.parametrize(
    "access",
    [
        Access("https://server", proxy="http://proxy:3128"),
        Access("https://"),
        Access("ftp://server"),
        Access("http://server:port"),
        Access("https://server", authorization="Bearer a\r\nb: c"),
        Access("https://server", authorization="Bearer ü"),
    ],
)
def test_what_this_is_not_for(access: Access) -> None:
    async def run() -> None:
        async with wires_of("agent/1", 2.0) as wires:
            assert wires.place(access) is None

    asyncio.run(run())
