"""A stream of bytes cut into events, however it arrives."""

import asyncio
import itertools
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from koordpolicy.kube import EventType, Gone, KubeError, Unreachable, WatchEvent
from koordpolicy.kube.api import watch
from koordpolicy.kube.api.codec import Codec
from koordpolicy.kube.api.watch import WatchEvents
from koordpolicy.kube.resources import CONFIG_MAPS


class Content:
    """Chunks in turn, as a connection gives them; then the end, or what it breaks with."""

    def __init__(self, chunks: list[bytes], error: Exception | None = None) -> None:
        self._chunks = chunks
        self._error = error

    async def readany(self) -> bytes:
        if self._chunks:
            return self._chunks.pop(0)
        if self._error is not None:
            raise self._error
        return b""


def events_of(chunks: list[bytes], error: Exception | None = None) -> list[WatchEvent]:
    async def read() -> list[WatchEvent]:
        content: Any = Content(chunks, error)
        return [event async for event in WatchEvents(content, CONFIG_MAPS, Codec())]

    return asyncio.run(read())


def frame(kind: str, number: int, text: str = "") -> bytes:
    metadata = {"name": f"c{number}", "resourceVersion": str(number)}
    return json.dumps({"type": kind, "object": {"metadata": metadata, "data": {"a": text}}}).encode()


@given(
    st.lists(st.tuples(st.sampled_from(list(EventType)), st.text(max_size=40)), max_size=12),
    st.lists(st.integers(0, 2000), max_size=20),
    st.sampled_from([b"\n", b"\r\n", b"\n\n"]),
)
def test_where_the_stream_is_cut_does_not_matter(
    sent: list[tuple[EventType, str]], cuts: list[int], ending: bytes
) -> None:
    whole = b"".join(frame(kind, number, text) + ending for number, (kind, text) in enumerate(sent))
    places = [0, *sorted(min(cut, len(whole)) for cut in cuts), len(whole)]
    chunks = [whole[a:b] for a, b in itertools.pairwise(places) if a != b]
    seen = events_of(chunks)
    assert [(event.type, event.object["data"]["a"]) for event in seen] == sent
    assert [event.resource_version for event in seen] == [str(number) for number in range(len(sent))]


def test_a_connection_that_breaks_ends_the_stream_like_a_server_that_ends_it() -> None:
    chunks = [frame("ADDED", 1) + b"\n" + frame("ADDED", 2)[:20]]
    for error in (None, ConnectionResetError("reset"), TimeoutError()):
        assert [event.resource_version for event in events_of(list(chunks), error)] == ["1"]


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        (b'{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired"}}', Gone),
        (b'{"object":{"kind":"Status","code":410},"type":"ERROR"}', Gone),
        (b'{"type":"ERROR","object":{"kind":"Status","code":500}}', Unreachable),
        (b'{"type":"PANIC","object":{}}', Unreachable),
        (b'{"type":"ADDED"}', Unreachable),
        (b'{"type":"ADDED","object":7}', Unreachable),
        (b"<html>", Unreachable),
        (b"\xff\xfe", Unreachable),
        (b'{"type":"ADDED","object":{"a":' + b"[" * 100_000, Unreachable),
    ],
)
def test_what_is_no_event_is_an_error(line: bytes, kind: type[KubeError]) -> None:
    with pytest.raises(kind):
        events_of([line + b"\n"])


def test_an_event_without_end_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "_LONGEST", 1000)
    with pytest.raises(Unreachable, match="without end"):
        events_of([b"x" * 300] * 10)
