"""ttrpc over a Unix socket: questions that cross, errors with their status, servers that go and come back."""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from koordpolicy.cri.ttrpc import (
    Disconnected,
    Refused,
    Status,
    TtrpcChannel,
    TtrpcServer,
    answer_of,
    frame,
    frames,
    not_known,
    payload_of,
    question,
    refusal_of,
)


def echo(method: str, data: bytes) -> bytes:
    if method == "Refuse":
        raise Refused("not now", Status.FAILED_PRECONDITION)
    if method == "Fail":
        raise KeyError("a secret")
    if method != "Echo":
        raise not_known(method)
    return data


def story(folder: Path, work: Callable[[TtrpcServer, TtrpcChannel], Awaitable[None]]) -> None:
    async def main() -> None:
        server, client = TtrpcServer(folder / "s.sock", echo), TtrpcChannel(folder / "s.sock")
        async with asyncio.timeout(20):
            await work(server, client)
        await client.close()
        await server.stop()
        await asyncio.sleep(0)  # what is closed hears of it in the next turn

    asyncio.run(main())


def test_questions_are_answered_whatever_their_size(tmp_path: Path) -> None:
    async def work(server: TtrpcServer, client: TtrpcChannel) -> None:
        await server.start()
        sizes = (0, 1, 127, 128, 4096, 1 << 20)
        found = await asyncio.gather(*(client.call("s", "Echo", b"x" * size, 10) for size in sizes))
        assert tuple(map(len, found)) == sizes
        with pytest.raises(Refused, match="not now") as refused:
            await client.call("s", "Refuse", b"", 10)
        assert refused.value.status is Status.FAILED_PRECONDITION
        with pytest.raises(Refused, match="Unheard is not known") as refused:
            await client.call("s", "Unheard", b"", 10)
        assert refused.value.status is Status.UNIMPLEMENTED

    story(tmp_path, work)


def test_an_error_of_ours_costs_the_call_that_met_it_alone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def work(server: TtrpcServer, client: TtrpcChannel) -> None:
        await server.start()
        await client.call("s", "Echo", b"", 10)  # all that follow come over this connection
        for _ in range(2):
            names = ("Echo", "Fail", "Echo")
            before, failed, after = await asyncio.gather(
                *(client.call("s", name, b"1", 10) for name in names), return_exceptions=True
            )
            assert (before, after) == (b"1", b"1")
            assert isinstance(failed, Refused)
            assert failed.status is Status.UNKNOWN
            assert "secret" not in str(failed)
            assert "not known" not in str(failed)

    story(tmp_path, work)
    (told,) = [one for one in caplog.records if one.exc_info]
    assert "Fail" in told.getMessage()


def test_one_that_ends_leaves_the_socket_of_its_successor(tmp_path: Path) -> None:
    async def work(server: TtrpcServer, client: TtrpcChannel) -> None:
        await server.start()
        successor = TtrpcServer(server.path, lambda _, data: b"new")
        await successor.start()
        await server.stop()
        assert await client.call("s", "Echo", b"", 10) == b"new"
        await successor.stop()

    story(tmp_path, work)
    assert list(tmp_path.iterdir()) == []


def test_a_server_that_goes_is_missed_and_found_again(tmp_path: Path) -> None:
    async def work(server: TtrpcServer, client: TtrpcChannel) -> None:
        with pytest.raises(OSError, match=r".+"):
            await client.call("s", "Echo", b"", 10)
        await server.start()
        assert await client.call("s", "Echo", b"1", 10) == b"1"
        await server.stop()
        await asyncio.sleep(0.01)
        with pytest.raises((OSError, Disconnected)):
            await client.call("s", "Echo", b"", 10)
        await server.start()
        assert await client.call("s", "Echo", b"2", 10) == b"2"

    story(tmp_path, work)


def test_one_that_is_silent_or_goes_meanwhile_is_waited_for_no_longer(tmp_path: Path) -> None:
    async def work(_: TtrpcServer, client: TtrpcChannel) -> None:
        with socket.socket(socket.AF_UNIX) as silent:
            silent.bind(str(client.path))
            silent.listen()
            with pytest.raises(TimeoutError):
                await client.call("s", "Echo", b"", 0.05)
            asked = asyncio.create_task(client.call("s", "Echo", b"", 10))
            await asyncio.sleep(0.05)
            accepted, _ = silent.accept()
            accepted.close()
            with pytest.raises(Disconnected):
                await asked

    story(tmp_path, work)


@pytest.mark.parametrize(
    "said", [b"\xff" * 10, frame(1, 1, b"\xff")], ids=["longer than there is", "no message"]
)
def test_whoever_says_no_messages_is_left_and_others_are_answered(tmp_path: Path, said: bytes) -> None:
    async def work(server: TtrpcServer, client: TtrpcChannel) -> None:
        await server.start()
        reader, writer = await asyncio.open_unix_connection(str(server.path))
        writer.write(said)
        assert await reader.read() == b""
        writer.close()
        assert await client.call("s", "Echo", b"1", 10) == b"1"

    story(tmp_path, work)


def test_frames_come_in_pieces() -> None:
    whole = frame(1, 1, question("s", "Echo", b"abc")) + frame(3, 2, b"")
    buffer, found = bytearray(), []
    for byte in whole:
        buffer.append(byte)
        found += list(frames(buffer))
    assert found == [(1, 1, question("s", "Echo", b"abc")), (3, 2, b"")]
    assert not buffer


def test_known_bytes() -> None:
    """As `ttrpc.Request` and `ttrpc.Response` of containerd are written, and a status that nobody has heard of."""
    assert question("s", "M", b"\x01").hex() == "0a0173" + "12014d" + "1a0101"
    assert payload_of(bytes.fromhex("120101")) == b"\x01"
    assert payload_of(answer_of(b"")) == b""
    with pytest.raises(Refused, match="no") as refused:
        payload_of(bytes.fromhex("0a0608631202" + "6e6f"))
    assert refused.value.status is Status.UNKNOWN
    assert payload_of(bytes.fromhex("0a00" + "120101")) == b"\x01"
    assert refusal_of(Refused("no")).hex() == "0a060802" + "12026e6f"
