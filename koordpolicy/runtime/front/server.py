"""The loop of a front: plain sockets and no library, for each review passes here and is to cost next to nothing.

Of all that a client may do, how it keeps us waiting is bounded as in `http/connections.py`: each turn has a deadline, and
where all places are taken, the address with most connections loses the one that has waited longest.
"""

import logging
import selectors
import socket
import ssl
import sys
from collections import Counter, deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from time import monotonic
from typing import Final

from koordpolicy.runtime.front.carrying import Carried, Carriers, Peers, Proof
from koordpolicy.runtime.front.connections import READ, Client, Server, Turn, Watched
from koordpolicy.runtime.front.counts import AnsweredBy, FrontCounts, told
from koordpolicy.runtime.front.messages import CERTIFICATE, MessageProblem, plain_answer, with_headers
from koordpolicy.runtime.front.settings import FrontSettings
from koordpolicy.runtime.logs import CERTIFICATE_REMINDER, LoggedOnce
from koordpolicy.runtime.tls import context_of, stamp_of

if sys.platform != "win32":
    import resource

LOG: Final = logging.getLogger(__name__)

_SWEEP: Final = 0.25
"""Seconds between looks at deadlines."""
_ACCEPTED: Final = 16
"""Connections taken in one go."""
_LEFT: Final = 64
"""Of those that wait to connect at the end, so many times that number."""
_LEAST: Final = 16
_STUCK: Final = 10.0
"""Seconds without a look at deadlines after which the loop is taken for stuck."""
_NEWCOMERS: Final = 2.0
"""Seconds for a request of who connected before the end, and has not asked yet."""


class Front:
    """Serves from `run` until `stop`. Listening `sockets` do not block."""

    def __init__(self, settings: FrontSettings, sockets: Sequence[socket.socket]) -> None:
        self.limits = settings.limits
        self.closing = False
        self.proof = Proof()
        self.counts = FrontCounts()
        self._settings = settings
        self._sockets = sockets
        self._selector = selectors.DefaultSelector()
        self._interest: dict[Watched, int] = {}
        self._clients: dict[Client, None] = {}
        self._idle: list[Server] = []
        self._held = 0
        self._carriers = Carriers(settings, self.proof, Peers(settings))
        self._answers: deque[tuple[Client, bytes, AnsweredBy]] = deque()
        self._wake, self._woken = socket.socketpair()
        self._away = LoggedOnce(LOG)
        self._unfit = LoggedOnce(LOG, remind=CERTIFICATE_REMINDER)
        self._carried_before = 0
        self._end: float | None = None
        self._context: ssl.SSLContext
        self._stamp: object = None
        self._looked = 0.0
        self._swept = self.now()
        self._renew()

    def run(self) -> None:
        """Serve until told to stop, and then whoever still comes for a while."""
        select, accepting = self._selector.select, True
        self._woken.setblocking(False)
        self._wake.setblocking(False)
        self._selector.register(self._woken, selectors.EVENT_READ, self._take_answers)
        for one in self._sockets:
            self._selector.register(one, selectors.EVENT_READ, self._accepts(one))
        self._swept = self.now()
        while True:
            for key, mask in select(_SWEEP):
                key.data(mask)
            now = self.now()
            if now - self._swept < _SWEEP:
                continue
            self._swept = now
            self._sweep(now)
            if self._end is not None and now >= self._end:
                if accepting:
                    accepting = False
                    self._accept_no_more()
                if not self._clients:
                    break
        self._close()

    def _accept_no_more(self) -> None:
        """The time is over: whoever has connected until now is answered, and nobody who has asked is left without an answer."""
        for one in self._sockets:
            accept = self._accepts(one)
            for _ in range(_LEFT):
                accept(READ)
            self._selector.unregister(one)
            one.close()  # whoever comes later is refused at once, and not left waiting
        for client in tuple(self._clients):
            client.end_when_idle(_NEWCOMERS)

    def _close(self) -> None:
        self._carriers.stop()
        for server in tuple(self._idle):
            server.close()
        self._selector.close()
        for one in (self._wake, self._woken):
            one.close()

    @staticmethod
    def now() -> float:
        """Seconds that only grow."""
        return monotonic()

    def stop(self) -> None:
        """Answer what is asked, and for a while whoever still comes, each for the last time; to be called by a signal."""
        if self._end is None:
            self.closing = True
            self._end = self.now() + self._settings.drain
            self._ring()

    # --- what is told, from any thread ------------------------------------------------------------

    def health(self) -> tuple[int, bytes]:
        """Whether the loop goes round; the server behind has its own word on this."""
        late = self.now() - self._swept
        return (200, b"ok\n") if late < _STUCK else (503, f"nothing was done for {late:.0f} s".encode())

    def metrics(self) -> tuple[int, bytes]:
        """The counts of this front."""
        clients = tuple(self._clients)
        waiting = [one for one in clients if one.turn is Turn.SERVER]
        at_manager = sum(one.server is not None for one in waiting)
        in_flight = {"manager": at_manager, "elsewhere": len(waiting) - at_manager}
        return 200, told(self.counts, len(clients), in_flight)

    # --- clients ----------------------------------------------------------------------------------

    def _accepts(self, listening: socket.socket) -> Callable[[int], None]:
        def accept(_: int) -> None:
            for _ in range(_ACCEPTED):
                try:
                    accepted, peer = listening.accept()
                except BlockingIOError:
                    return
                except OSError:
                    self._make_room()  # as where the process may open no more files
                    return
                if len(self._clients) >= self._places:
                    self._make_room()
                self._meet(accepted, str(peer[0]))

        return accept

    @property
    def _places(self) -> int:
        if sys.platform == "win32":
            return self.limits.connections
        files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        if files == resource.RLIM_INFINITY:
            return self.limits.connections
        return min(self.limits.connections, max(_LEAST, files // 4))

    def _meet(self, accepted: socket.socket, address: str) -> None:
        try:
            accepted.setblocking(False)
            accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            wrapped = self._context.wrap_socket(accepted, server_side=True, do_handshake_on_connect=False)
        except OSError:
            accepted.close()
            return
        client = Client(self, wrapped, address)
        self._clients[client] = None
        self.watch(client, READ)

    def _make_room(self) -> None:
        waiting = [one for one in self._clients if one.turn is not Turn.SERVER]
        if not waiting:
            return
        most = Counter(one.address for one in waiting).most_common(1)[0][0]
        self.counts.closed["room"] += 1
        next(one for one in waiting if one.address == most).close()

    def hold(self, count: int) -> int:
        """Make room for a body's bytes. Raises `MessageProblem` where too many are held."""
        if self._held + count > self.limits.bodies:
            raise MessageProblem(503, "too many large requests at a time")
        self._held += count
        return count

    def release(self, count: int) -> int:
        """Give it back."""
        self._held -= count
        return 0

    def watch(self, what: Watched, interest: int) -> None:
        """Hear when a socket can be read or written."""
        before = self._interest.get(what)
        if before is None:
            self._selector.register(what.socket, interest, what.ready)
        elif before != interest:
            self._selector.modify(what.socket, interest, what.ready)
        self._interest[what] = interest

    def forget(self, what: Watched) -> None:
        """A connection ends."""
        if self._interest.pop(what, None) is not None:
            self._selector.unregister(what.socket)
        if isinstance(what, Client):
            self._clients.pop(what, None)
        elif what in self._idle:
            self._idle.remove(what)

    # --- the server behind ------------------------------------------------------------------------

    def ask(self, client: Client, certificate: str, *, forwarded: bool) -> None:
        """Ask the server behind, or elsewhere where it is gone."""
        request = client.request
        assert request is not None
        self._clients[client] = self._clients.pop(client)  # of those that wait, it has waited least
        said = {CERTIFICATE: certificate} if certificate else {}
        text = (with_headers(request.text, said) if said else request.text) + client.body
        server: Server | None = None
        try:
            server = self._idle.pop() if self._idle else self._connected()
            server.certificate, server.forwarded = certificate, forwarded
            server.until = self.now() + request.seconds * self.limits.patience
            server.ask(client, text)
        except OSError:
            if server is None:
                self.carry(client, certificate, forwarded=forwarded)
            else:
                server.lost()

    def _connected(self) -> Server:
        made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            made.setblocking(False)
            made.connect(str(self._settings.server))
        except OSError:  # EAGAIN as well, where too many wait to connect
            made.close()
            raise
        return Server(self, made)

    def free(self, server: Server) -> None:
        """It can be asked again."""
        self._idle.append(server)
        if self._carriers.count != self._carried_before:
            self._back()

    def carry(self, client: Client, certificate: str, *, forwarded: bool) -> None:
        """The server is gone or not ready, or takes too long: have the request answered elsewhere."""
        request = client.request
        if client.closed or request is None:
            return
        if forwarded:
            later = plain_answer(503, "this replica cannot answer now", later=True)
            client.answer(later, AnsweredBy.NOBODY, last=True)
            return
        self._away.met(
            "away", "the server behind %s does not answer: others are asked", self._settings.server
        )
        carried = Carried(request.text, client.body, certificate, client.until, request.has_answer_body)
        self.counts.carried += 1
        self._carriers.carry(carried, lambda answer, by: self._carried(client, answer, by))

    def _back(self) -> None:
        count = self._carriers.count - self._carried_before
        self._carried_before = self._carriers.count
        self._away.over()
        LOG.info("the server behind answers again; %d requests were carried to it later or to others", count)

    def _carried(self, client: Client, answer: bytes, by: AnsweredBy) -> None:
        self._answers.append((client, answer, by))
        self._ring()

    def _ring(self) -> None:
        with suppress(OSError):  # it rings already, or nobody is there any more
            self._wake.send(b"\0")

    def _take_answers(self, _: int) -> None:
        with suppress(BlockingIOError):
            self._woken.recv(4096)
        while self._answers:
            client, answer, by = self._answers.popleft()
            client.answer(answer, by)

    # --- now and then -----------------------------------------------------------------------------

    def _sweep(self, now: float) -> None:
        for client in tuple(self._clients):
            server = client.server
            if server is not None and server.until <= now and not server.forwarded:
                server.lost()
            elif client.deadline <= now:
                self.counts.closed["idle" if client.idle else "slow"] += 1
                client.close()
        if now - self._looked >= self.limits.reread:
            self._looked = now
            stamp = stamp_of(self._settings.tls)
            if stamp == self._stamp:
                self._unfit.over()
                return
            try:
                self._renew()
                self._unfit.over()
                LOG.info("the certificate was renewed")
            except (OSError, ssl.SSLError) as error:
                self._unfit.met(repr(stamp), "the renewed certificate is of no use yet: %s", error)

    def _renew(self) -> None:
        tls = self._settings.tls
        stamp = stamp_of(tls)
        self._context = context_of(tls)
        self.proof.take(tls.key)
        self._stamp = stamp
