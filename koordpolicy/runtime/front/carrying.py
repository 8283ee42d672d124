"""Requests whose server has died, or asks to be asked later: carried to it once it is back, or to another replica.

In threads, one for each such request: they are few and rare, and what serves clients goes on without waiting for them.
"""

import hashlib
import hmac
import logging
import socket
import ssl
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, sleep
from typing import Final

from koordpolicy.runtime.front.counts import AnsweredBy
from koordpolicy.runtime.front.messages import (
    CERTIFICATE,
    FORWARDED,
    MessageProblem,
    ResponseHead,
    plain_answer,
    read_response,
    with_headers,
)
from koordpolicy.runtime.front.settings import FrontSettings
from koordpolicy.runtime.logs import LoggedOnce

LOG: Final = logging.getLogger(__name__)

_CONNECT: Final = 2.0
"""Seconds for the way to another replica: one whose machine is gone does not answer at all."""
_LOOK: Final = 5.0
"""Seconds between looks for other replicas."""
_PIECE: Final = 65_536


@dataclass(frozen=True, slots=True)
class Carried:
    """A request that has to be asked again: its head and body, who sent it, and when its client will have given up."""

    head: bytes
    body: bytes
    certificate: str
    deadline: float
    has_answer_body: bool


class Proof:
    """By what replicas know one another's fronts: all have one key, that of their certificate, and nobody else has."""

    def __init__(self) -> None:
        self._keys: list[bytes] = []

    def take(self, key: Path) -> None:
        """Take the key of a renewed certificate; the last one counts, too, for another replica may still have it. Raises OSError."""
        made = hashlib.sha256(b"koordpolicy front\n" + key.read_bytes()).digest()
        if made not in self._keys:
            self._keys = [made, *self._keys[:1]]

    def of(self, path: bytes, certificate: str, body: bytes) -> str:
        """The proof for a request."""
        return _mac(self._keys[0], path, certificate, body)

    def holds(self, said: str, path: bytes, certificate: str, body: bytes) -> bool:
        """Whether a front that has our key has sent it."""
        return any(
            hmac.compare_digest(said.encode(), _mac(key, path, certificate, body).encode())
            for key in self._keys
        )


def _mac(key: bytes, path: bytes, certificate: str, body: bytes) -> str:
    text = b"\n".join((path, certificate.encode("latin-1"), body))
    return hmac.new(key, text, hashlib.sha256).hexdigest()


class Peers:
    """Where the other replicas are, by a name that stands for all of them: looked up now and then, and never waited for."""

    def __init__(self, settings: FrontSettings) -> None:
        self.addresses: Sequence[tuple[str, int]] = ()
        self._settings = settings
        if settings.peers:
            threading.Thread(target=self._look, name="peers", daemon=True).start()

    def context(self) -> ssl.SSLContext:
        """How to believe them. Raises OSError and `ssl.SSLError`."""
        return ssl.create_default_context(cafile=str(self._settings.authority))

    def _look(self) -> None:
        settings = self._settings
        while True:
            try:
                found = socket.getaddrinfo(settings.peers, settings.peer_port, type=socket.SOCK_STREAM)
                self.addresses = tuple(dict.fromkeys((str(one[4][0]), int(one[4][1])) for one in found))
            except OSError as error:
                LOG.debug("no other replicas are known: %s", error)  # as while there are none
            sleep(_LOOK)


class Carriers:
    """Carries requests until somebody answers, or their time is over. `done` is called in a thread with the answer and whose it is."""

    def __init__(self, settings: FrontSettings, proof: Proof, peers: Peers) -> None:
        self.count = 0
        """Requests carried so far."""
        self._settings = settings
        self._proof = proof
        self._peers = peers
        self._stopped = False
        self._disbelief = LoggedOnce(LOG)
        self._pool = ThreadPoolExecutor(settings.limits.carriers, thread_name_prefix="carrier")

    def carry(self, request: Carried, done: Callable[[bytes, AnsweredBy], None]) -> None:
        """Have it answered."""
        self.count += 1
        self._pool.submit(self._carry, request, done)

    def stop(self) -> None:
        """Take no more."""
        self._stopped = True
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _carry(self, request: Carried, done: Callable[[bytes, AnsweredBy], None]) -> None:
        answer, by = b"", AnsweredBy.NOBODY
        try:
            answer, by = self._answer(request)
        except Exception:
            LOG.exception("a request could not be carried")
        done(answer or plain_answer(503, "no replica can answer now", later=True), by)

    def _answer(self, request: Carried) -> tuple[bytes, AnsweredBy]:
        last = b""
        while monotonic() < request.deadline and not self._stopped:
            for ask in (self._ask_server, *(self._peer(one) for one in self._peers.addresses)):
                left = request.deadline - monotonic()
                if left <= 0:
                    break
                try:
                    head, text = ask(request, left)
                except (
                    ssl.SSLError
                ) as error:  # nothing that goes away by itself, unlike a replica that is not there
                    self._disbelief.met(
                        str(error),
                        "a front of another replica is not believed as %s (--peer-name), or does not answer over TLS: %s",
                        self._settings.peer_name,
                        error,
                    )
                    continue
                except (OSError, MessageProblem) as error:
                    LOG.debug("not carried: %s", error)
                    continue
                if not head.again:
                    return text, AnsweredBy.MANAGER if ask == self._ask_server else AnsweredBy.REPLICA
                last = text
            sleep(self._settings.limits.pause)
        return last and plain_answer(503, "no replica is ready yet", later=True), AnsweredBy.NOBODY

    def _ask_server(self, request: Carried, seconds: float) -> tuple[ResponseHead, bytes]:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as to:
            # One that takes it and says nothing must not have all of the time.
            to.settimeout(max(seconds * self._settings.limits.patience, 0.01))
            to.connect(str(self._settings.server))
            said = {CERTIFICATE: request.certificate} if request.certificate else {}
            return _exchanged(to, with_headers(request.head, said) + request.body, request.has_answer_body)

    def _peer(self, address: tuple[str, int]) -> Callable[[Carried, float], tuple[ResponseHead, bytes]]:
        def ask(request: Carried, seconds: float) -> tuple[ResponseHead, bytes]:
            path = request.head.split(b" ", 2)[1]
            said = {FORWARDED: self._proof.of(path, request.certificate, request.body)}
            if request.certificate:
                said[CERTIFICATE] = request.certificate
            text = with_headers(request.head, said) + request.body
            with socket.create_connection(address, timeout=min(seconds, _CONNECT)) as way:
                context = self._peers.context()
                with context.wrap_socket(way, server_hostname=self._settings.peer_name) as to:
                    to.settimeout(seconds)
                    return _exchanged(to, text, request.has_answer_body)

        return ask


def _exchanged(to: socket.socket, text: bytes, has_answer_body: bool) -> tuple[ResponseHead, bytes]:
    """An answer, whole. Raises OSError and `MessageProblem`."""
    to.sendall(text)
    received = bytearray()
    while True:
        piece = to.recv(_PIECE)
        if not piece:
            raise ConnectionResetError("it ended before its answer did")
        received += piece
        head = read_response(received, _PIECE, body=has_answer_body)
        if head is not None and len(received) >= head.taken + head.length:
            with suppress(OSError):
                to.shutdown(socket.SHUT_WR)
            return head, head.text + bytes(received[head.taken : head.taken + head.length])
