"""Health and metrics of a front, on an address of their own: in a thread, so that whoever asks keeps no review waiting.

One request at a time, each within a deadline: Prometheus and kubelets ask seldom, and nobody else is to.
"""

import logging
import selectors
import socket
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from time import monotonic
from typing import Final

from koordpolicy.runtime.front.messages import MessageProblem, RequestHead, plain_answer, read_request

LOG: Final = logging.getLogger(__name__)

_SECONDS: Final = 2.0
"""For a request and its answer."""
_HEAD: Final = 8_192
_PIECE: Final = 4_096

Page = Callable[[], tuple[int, bytes]]
"""Gives a status and a text."""


class Telling:
    """Answers `pages` by path on listening sockets, from `start` until `stop`."""

    def __init__(self, sockets: Sequence[socket.socket], pages: Mapping[bytes, Page]) -> None:
        self._sockets = sockets
        self._pages = pages
        self._stopped = False
        self._thread = threading.Thread(target=self._run, name="telling", daemon=True)

    def start(self) -> None:
        """Answer from now on."""
        self._thread.start()

    def stop(self) -> None:
        """Answer no more."""
        self._stopped = True
        self._thread.join(2 * _SECONDS)

    def _run(self) -> None:
        with selectors.DefaultSelector() as selector:
            for one in self._sockets:
                selector.register(one, selectors.EVENT_READ)
            while not self._stopped:
                for key, _ in selector.select(0.25):
                    listening = key.fileobj
                    assert isinstance(listening, socket.socket)
                    with suppress(OSError):  # it went again, or was too slow
                        accepted, _ = listening.accept()
                        with accepted:
                            self._answer(accepted)

    def _answer(self, client: socket.socket) -> None:
        until, received = monotonic() + _SECONDS, bytearray()
        try:
            while (head := read_request(received, _HEAD, 0)) is None:
                client.settimeout(max(until - monotonic(), 0.01))
                piece = client.recv(_PIECE)
                if not piece or monotonic() > until:
                    return
                received += piece
            answer = self._page(head)
        except MessageProblem as problem:
            answer = plain_answer(problem.status, str(problem))
        client.settimeout(_SECONDS)
        client.sendall(answer)

    def _page(self, head: RequestHead) -> bytes:
        page = self._pages.get(head.path.partition(b"?")[0])
        if page is None:
            return plain_answer(404, "nothing is here")
        if head.method not in {"GET", "HEAD"}:
            return plain_answer(405, "this is to be read")
        status, text = page()
        if status != 200:
            return plain_answer(status, text.decode())
        line = (
            "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n"
            f"Content-Length: {len(text)}\r\nConnection: close\r\n\r\n"
        )
        return line.encode() + (text if head.has_answer_body else b"")
