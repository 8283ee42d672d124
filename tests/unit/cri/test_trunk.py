"""Two ends of one socket, each asking and answering, as a runtime and its plugin do."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from koordpolicy.cri.trunk import Answer, Trunk, connect
from koordpolicy.cri.ttrpc import Disconnected, Refused, Status, not_known

LARGE = b"x" * (1 << 20)


async def echo(method: str, data: bytes) -> bytes:
    if method == "Refuse":
        raise Refused("not now")
    if method == "Fail":
        raise KeyError("a secret")
    if method != "Echo":
        raise not_known(method)
    return data


def story(folder: Path, work: Callable[[Trunk, Trunk], Awaitable[None]], answer: Answer = echo) -> None:
    async def main() -> None:
        accepted: asyncio.Future[Trunk] = asyncio.get_running_loop().create_future()

        async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            accepted.set_result(Trunk(reader, writer, served=2, asked=1))

        server = await asyncio.start_unix_server(take, folder / "s.sock")
        mine = await connect(folder / "s.sock", served=1, asked=2)
        theirs = await accepted
        running = [asyncio.create_task(one.run(answer)) for one in (mine, theirs)]
        async with asyncio.timeout(20):
            await work(mine, theirs)
        for one in (mine, theirs):
            one.writer.close()
        ended = await asyncio.gather(*running, return_exceptions=True)
        assert {type(one) for one in ended} == {Disconnected}
        server.close()

    asyncio.run(main())


def test_both_ends_ask_and_answer(tmp_path: Path) -> None:
    async def work(mine: Trunk, theirs: Trunk) -> None:
        small, large, back = await asyncio.gather(
            mine.call("s", "Echo", b"\x0a\x01a", 10),
            mine.call("s", "Echo", b"\x0a" + b"\x80\x80\x40" + LARGE, 10),
            theirs.call("s", "Echo", b"", 10),
        )
        assert (small, back) == (b"\x0a\x01a", b"")
        assert large.endswith(LARGE)
        with pytest.raises(Refused, match="not now"):
            await mine.call("s", "Refuse", b"", 10)
        with pytest.raises(Refused, match="Unheard is not known"):
            await theirs.call("s", "Unheard", b"", 10)

    story(tmp_path, work)


def test_an_error_of_ours_ends_no_connection(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def work(mine: Trunk, theirs: Trunk) -> None:
        with pytest.raises(Refused, match="failed here") as refused:
            await mine.call("s", "Fail", b"", 10)
        assert refused.value.status is Status.UNKNOWN
        assert await mine.call("s", "Echo", b"1", 10) == b"1"
        assert await theirs.call("s", "Echo", b"2", 10) == b"2"

    story(tmp_path, work)
    assert any(one.exc_info for one in caplog.records)


def test_whoever_says_no_messages_is_left(tmp_path: Path) -> None:
    async def work(mine: Trunk, theirs: Trunk) -> None:
        theirs.writer.write(b"\0\0\0\1" + b"\xff" * 4)
        await theirs.writer.drain()
        while not mine.writer.is_closing():  # noqa: ASYNC110  # what closes it tells nobody
            await asyncio.sleep(0.01)

    story(tmp_path, work)
