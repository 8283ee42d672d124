"""A front between clients by TLS and servers on a Unix socket that die, wait, say nothing, or are not there."""

import http.client
import re
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest

from koordpolicy.runtime.front.counts import AnsweredBy, FrontCounts, told
from koordpolicy.runtime.front.messages import CERTIFICATE, FORWARDED
from koordpolicy.runtime.front.server import Front
from koordpolicy.runtime.front.settings import FrontLimits, FrontSettings
from koordpolicy.runtime.front.telling import Telling
from koordpolicy.runtime.listening import listen
from koordpolicy.runtime.metrics.table import METRICS
from koordpolicy.runtime.tls import Tls
from tests.unit.runtime.http.certificates import Pair, certificate

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
LATER = b"HTTP/1.1 503 Later\r\nRetry-After: 1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
DIES = b""
USUAL = FrontLimits()
HASTY = FrontLimits(handshake=0.3, head_seconds=0.3, body_seconds=0.3, idle=0.3)
FEW = FrontLimits(connections=4)
Answers = Callable[[bytes], bytes | None]
"""What a server answers to a request: nothing at all with None, and `DIES` when it ends instead."""


class Behind:
    """A server at a path that answers by a function; `asked` are the requests."""

    def __init__(self, path: Path, answers: Answers) -> None:
        self.asked: list[bytes] = []
        self.connections: list[socket.socket] = []
        self._answers = answers
        (self._listening,) = listen(f"unix:{path}", 0, 16)
        self._listening.setblocking(True)
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """End it, and wake whoever waits in it."""
        for one in (self._listening, *self.connections):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                one, _ = self._listening.accept()
                self.connections.append(one)
                threading.Thread(target=self._serve, args=(one,), daemon=True).start()

    def _serve(self, one: socket.socket) -> None:
        with one, suppress(OSError):
            while text := one.recv(65_536):
                self.asked.append(text)
                answer = self._answers(text)
                if answer is None:
                    continue
                if not answer:
                    return
                one.sendall(answer)


@pytest.fixture(scope="module")
def pair() -> Pair:
    return certificate(7)


class Place:
    """Fronts of one certificate."""

    def __init__(self, folder: Path, pair: Pair) -> None:
        self.folder = folder
        self.tls = Tls(folder / "pem", folder / "key", folder / "pem")
        self.tls.certificate.write_bytes(pair.pem)
        self.tls.key.write_bytes(pair.key)
        self.servers: list[Behind] = []
        self.fronts: list[Front] = []

    def behind(self, name: str, answers: Answers) -> Behind:
        """A server for fronts."""
        self.servers.append(Behind(self.folder / name, answers))
        return self.servers[-1]

    @contextmanager
    def front(self, server: str, peer: int = 0, limits: FrontLimits = USUAL) -> Iterator[int]:
        """A front before the server at a path; the port where it serves."""
        sockets = listen("127.0.0.1", 0, 16)
        settings = FrontSettings(
            "127.0.0.1", 0, self.tls, self.folder / server, "127.0.0.1" if peer else "", peer, "127.0.0.1",
            self.tls.certificate, 0.0, limits,
        )  # fmt: skip
        front = Front(settings, sockets)
        self.fronts.append(front)
        thread = threading.Thread(target=front.run, daemon=True)
        thread.start()
        try:
            yield int(sockets[0].getsockname()[1])
        finally:
            front.stop()
            thread.join(20)
            for one in sockets:
                one.close()
            assert not thread.is_alive()

    def connection(self, port: int, *, known: bool = False) -> http.client.HTTPSConnection:
        """A client's, who shows a certificate where it is known."""
        context = ssl.create_default_context(cafile=str(self.tls.certificate))
        if known:
            context.load_cert_chain(self.tls.certificate, self.tls.key)
        return http.client.HTTPSConnection("127.0.0.1", port, timeout=20, context=context)

    def ask(self, port: int, headers: Mapping[str, str] = {}) -> tuple[int, bytes]:
        """One request of a connection of its own."""
        connection = self.connection(port)
        try:
            connection.request("POST", "/mutate?timeout=5s", b"review", headers)
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()


@pytest.fixture
def place(tmp_path: Path, pair: Pair) -> Iterator[Place]:
    made = Place(tmp_path, pair)
    yield made
    for one in made.servers:
        one.close()


def in_turn(*answers: bytes | None) -> Answers:
    """One after the other, the last one for ever."""
    left = list(answers)
    return lambda _: left.pop(0) if len(left) > 1 else left[0]


@pytest.mark.parametrize(
    "first", [DIES, LATER, OK[:-1], b"rubbish\r\n\r\n"], ids=["dies", "later", "half", "rubbish"]
)
def test_a_request_that_is_not_answered_is_asked_again(place: Place, first: bytes) -> None:
    behind = place.behind("s", in_turn(first, OK))
    with place.front("s") as port:
        assert place.ask(port) == (200, b"ok")
    assert len(behind.asked) == 2


def test_a_request_waits_for_a_server_that_is_not_there_yet(place: Place) -> None:
    with place.front("s") as port:
        answers: list[tuple[int, bytes]] = []
        asking = threading.Thread(target=lambda: answers.append(place.ask(port)))
        asking.start()
        time.sleep(0.3)
        place.behind("s", in_turn(OK))
        asking.join(20)
        assert answers == [(200, b"ok")]


def test_with_nobody_left_the_client_is_told_in_time(place: Place) -> None:
    with place.front("s") as port:
        status, told = place.ask(port)
    assert status == 503
    assert b"no replica" in told


def numbers(place: Place) -> dict[str, float]:
    """What the last front counts, without what the process itself takes."""
    lines = place.fronts[-1].metrics()[1].decode().splitlines()
    pairs = (line.rsplit(" ", 1) for line in lines if line.startswith("koordpolicy_"))
    return {name.removeprefix("koordpolicy_front_"): float(value) for name, value in pairs if float(value)}


def test_a_front_counts_who_answers_and_what_it_refuses(place: Place) -> None:
    place.behind("s", in_turn(OK, OK, DIES, OK))
    place.behind("other", in_turn(OK))
    with place.front("other") as other, place.front("s", other) as port:
        kept = place.connection(port)
        for _ in range(3):
            kept.request("POST", "/mutate", b"a")
            assert kept.getresponse().read() == b"ok"
        found = numbers(place)
        assert found.pop('requests_total{answered_by="manager",code="200"}') in (2, 3)
        carried_to = found.pop('requests_total{answered_by="replica",code="200"}', 0)
        assert carried_to in (0, 1)
        assert found == {"carried_total": 1, "connections": 1}
        assert place.ask(port, {"X": "y" * 70_000})[0] == 431
        assert numbers(place)['requests_total{answered_by="front",code="431"}'] == 1
        kept.close()
    with place.front("gone") as port:
        asking = threading.Thread(target=place.ask, args=(port,))
        asking.start()
        until(lambda: numbers(place).get('requests_in_flight{where="elsewhere"}') == 1)
        asking.join(20)
        assert numbers(place)['requests_total{answered_by="nobody",code="503"}'] == 1


def until(holds: Callable[[], bool]) -> None:
    for _ in range(1000):
        if holds():
            return
        time.sleep(0.01)
    pytest.fail("it does not come to that")


def test_each_number_of_a_front_is_documented() -> None:
    counts = FrontCounts()
    counts.answered(AnsweredBy.MANAGER, OK)
    counts.closed["slow"] += 1
    page = told(counts, 1, {"manager": 1}).decode()
    shown = {}
    for line in page.splitlines():
        if found := re.fullmatch(r"(koordpolicy_\w+)(?:\{(.*)\})? \S+", line):
            shown[found[1]] = tuple(re.findall(r"(\w+)=", found[2] or ""))
    rows = {one.name: one for one in METRICS if one.name.startswith("koordpolicy_front_")}
    assert shown == {name: row.labels for name, row in rows.items()}
    assert all(f"# TYPE {name} {row.kind}\n" in page for name, row in rows.items())


ASKED = {
    b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n": b"HTTP/1.1 200 ",
    b"HEAD /healthz HTTP/1.1\r\nHost: a\r\n\r\n": b"HTTP/1.1 200 ",
    b"GET /statusz HTTP/1.1\r\nHost: a\r\n\r\n": b"HTTP/1.1 404 ",
    b"POST /metrics HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n": b"HTTP/1.1 405 ",
    b"POST /metrics HTTP/1.1\r\nHost: a\r\nContent-Length: 9999999\r\n\r\n": b"HTTP/1.1 413 ",
    b"\x16\x03\x01\x02\r\n\r\n": b"HTTP/1.1 400 ",
    b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 2000: b"HTTP/1.1 431 ",
    b"": b"",
}


def test_what_a_front_tells_of_itself_is_for_reading(place: Place) -> None:
    sockets = listen("127.0.0.1", 0, 16)
    with place.front("gone"):
        front = place.fronts[-1]
        telling = Telling(sockets, {b"/healthz": front.health, b"/metrics": front.metrics})
        telling.start()
        try:
            for asked, answer in ASKED.items():
                with socket.create_connection(sockets[0].getsockname(), timeout=20) as one:
                    one.sendall(asked)
                    one.shutdown(socket.SHUT_WR)
                    with suppress(ConnectionError):
                        assert one.recv(4096).startswith(answer), asked
        finally:
            telling.stop()
            for one in sockets:
                one.close()


def test_a_front_whose_loop_stands_says_so(place: Place) -> None:
    with place.front("gone"):
        front = place.fronts[-1]
        assert front.health() == (200, b"ok\n")
    front._swept -= 60  # its loop has ended
    assert front.health()[0] == 503


def test_another_replica_answers_and_is_told_who_has_asked(place: Place) -> None:
    behind = place.behind("other", in_turn(OK))
    with place.front("other") as other, place.front("gone", other) as port:
        connection = place.connection(port, known=True)
        connection.request("POST", "/mutate?timeout=5s", b"review")
        assert connection.getresponse().read() == b"ok"
        connection.close()
    (text,) = behind.asked
    assert f"\r\n{CERTIFICATE}: ".encode() in text
    assert FORWARDED.encode() not in text
    assert text.endswith(b"\r\n\r\nreview")


def test_two_fronts_without_servers_do_not_ask_one_another_for_ever(place: Place) -> None:
    with ExitStack() as stack:
        first = stack.enter_context(place.front("gone"))
        second = stack.enter_context(place.front("gone", first))
        assert place.ask(second)[0] == 503


def test_a_server_that_says_nothing_is_not_all_that_is_asked(place: Place) -> None:
    place.behind("silent", in_turn(None))
    place.behind("other", in_turn(OK))
    with place.front("other") as other, place.front("silent", other) as port:
        assert place.ask(port) == (200, b"ok")


def test_who_forges_what_fronts_say_is_refused(place: Place) -> None:
    behind = place.behind("s", in_turn(OK))
    with place.front("s") as port:
        assert place.ask(port, {FORWARDED: "0" * 64, CERTIFICATE: "e30="})[0] == 403
        assert place.ask(port, {CERTIFICATE: "e30="})[0] == 200
    (text,) = behind.asked
    assert CERTIFICATE.encode() not in text


def test_long_requests_and_answers_go_through_and_connections_are_kept(place: Place) -> None:
    long = b"x" * 3_000_000
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 3000000\r\n\r\n" + long
    received = bytearray()

    def answers(text: bytes) -> bytes | None:
        received.extend(text)
        if len(received) < received.index(b"\r\n\r\n") + 4 + len(long):
            return None
        received.clear()
        return answer

    place.behind("s", answers)
    with place.front("s") as port:
        connection = place.connection(port)
        for _ in range(3):
            connection.request("POST", "/mutate?timeout=20s", long)
            assert connection.getresponse().read() == long
        connection.close()


def test_what_is_no_http_ends_only_its_own_connection(place: Place) -> None:
    place.behind("s", in_turn(OK))
    with place.front("s") as port:
        kept = place.connection(port)
        kept.request("POST", "/mutate", b"a")
        assert kept.getresponse().read() == b"ok"
        with socket.create_connection(("127.0.0.1", port)) as plain:
            plain.sendall(b"GET / HTTP/1.1\r\n\r\n" * 10)
            with suppress(ConnectionError):
                plain.recv(100)
        status, _ = place.ask(port, {"X": "y" * 70_000})
        assert status == 431
        kept.request("POST", "/mutate", b"a")
        assert kept.getresponse().read() == b"ok"
        kept.close()


def test_whoever_connected_before_the_end_is_answered_once_more(place: Place) -> None:
    place.behind("s", in_turn(OK))
    with place.front("s") as port:
        kept, fresh = place.connection(port), place.connection(port)
        kept.request("POST", "/mutate", b"a")
        assert kept.getresponse().read() == b"ok"
        fresh.connect()
        with socket.create_connection(("127.0.0.1", port), timeout=20) as plain:
            time.sleep(0.1)
            place.fronts[0].stop()
            until_refused(port)
            # One that has been answered and asks no more is let go, two that have not asked yet are not.
            assert kept.sock.recv(1) == b""
            fresh.request("POST", "/mutate", b"a")
            answer = fresh.getresponse()
            assert (answer.status, answer.getheader("Connection"), answer.read()) == (200, "close", b"ok")
            fresh.close()
            kept.close()
            context = ssl.create_default_context(cafile=str(place.tls.certificate))
            with context.wrap_socket(plain, server_hostname="127.0.0.1") as late:
                late.sendall(b"POST /mutate HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n")
                told = late.recv(4096)
            assert told.startswith(b"HTTP/1.1 200 ")
            assert b"\r\nConnection: close\r\n" in told


def until_refused(port: int) -> None:
    """Until the end, newcomers are let in."""
    for _ in range(500):
        try:
            socket.create_connection(("127.0.0.1", port), timeout=20).close()
        except ConnectionRefusedError:
            return
        time.sleep(0.01)
    pytest.fail("it goes on to accept")


def test_what_has_come_when_the_time_is_over_is_answered(place: Place) -> None:
    """The last look at a connection is a look at what its client may have sent meanwhile."""
    place.behind("s", in_turn(OK))
    with place.front("s") as port:
        front = place.fronts[0]
        kept = place.connection(port)
        kept.request("POST", "/mutate", b"a")
        assert kept.getresponse().read() == b"ok"
        look = front._sweep

        def sent_meanwhile(now: float) -> None:
            """Between what the loop has read and its end."""
            look(now)
            if front.closing and kept.sock is not None and not asked:
                kept.request("POST", "/mutate", b"b")
                asked.append(True)
                time.sleep(0.05)

        asked: list[bool] = []
        front._sweep = sent_meanwhile  # type: ignore[method-assign]
        front.stop()
        for _ in range(500):
            if asked:
                break
            time.sleep(0.01)
        answer = kept.getresponse()
        assert (answer.status, answer.getheader("Connection"), answer.read()) == (200, "close", b"ok")
        kept.close()


HEAD = b"POST /mutate HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n"
STALLS = {"handshake": None, "idle": b"", "head": HEAD, "body": HEAD + b"\r\n" + b"x" * 50}


def stalled(place: Place, port: int, said: bytes | None) -> socket.socket:
    """A connection whose client does not go on."""
    plain = socket.create_connection(("127.0.0.1", port), timeout=20)
    if said is None:
        return plain
    context = ssl.create_default_context(cafile=str(place.tls.certificate))
    wrapped = context.wrap_socket(plain, server_hostname="127.0.0.1")
    wrapped.sendall(said)
    return wrapped


@pytest.mark.parametrize("stall", STALLS)
def test_who_keeps_a_front_waiting_is_ended(place: Place, stall: str) -> None:
    place.behind("s", in_turn(OK))
    with (
        place.front("s", limits=HASTY) as port,
        stalled(place, port, STALLS[stall]) as one,
        suppress(ConnectionError),
    ):
        assert one.recv(100) == b""


@pytest.mark.parametrize("stall", STALLS)
def test_who_keeps_a_front_waiting_shuts_nobody_out(place: Place, stall: str) -> None:
    place.behind("s", in_turn(OK))
    with place.front("s", limits=FEW) as port, ExitStack() as stack:
        for _ in range(2 * FEW.connections):
            stack.enter_context(stalled(place, port, STALLS[stall]))
        assert place.ask(port) == (200, b"ok")


def test_bodies_take_room_as_they_come(place: Place) -> None:
    place.behind("s", in_turn(OK))
    head = HEAD.replace(b"100", b"900") + b"\r\n"
    with place.front("s", limits=FrontLimits(bodies=1000)) as port, ExitStack() as stack:
        for _ in range(3):
            stack.enter_context(stalled(place, port, head))  # says that much is to come, and sends none of it
        assert place.ask(port) == (200, b"ok")
        stack.enter_context(stalled(place, port, head + b"x" * 890))
        until(lambda: place.fronts[-1]._held == 890)
        beyond = stack.enter_context(stalled(place, port, head + b"x" * 200))
        assert beyond.recv(4096).startswith(b"HTTP/1.1 503 ")


def test_half_a_head_behind_a_request_is_not_waited_for_as_long_as_a_next_request(place: Place) -> None:
    place.behind("s", in_turn(OK))
    request = b"POST /mutate HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\na"
    with (
        place.front("s", limits=FrontLimits(head_seconds=0.3)) as port,
        stalled(place, port, request + b"POST /mut") as one,
    ):
        told = b""
        while piece := one.recv(4096):  # which would time out while the front waits
            told += piece
    assert told.endswith(b"ok")


def test_a_request_before_the_answer_to_the_one_before_it_waits_for_its_turn(place: Place) -> None:
    behind = place.behind("s", in_turn(OK))
    request = b"POST /mutate HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\n"
    with place.front("s") as port, stalled(place, port, request + b"a" + request + b"b") as one:
        told = b""
        while told.count(b"ok") < 2:
            told += one.recv(4096)
    assert [text[-1:] for text in behind.asked] == [b"a", b"b"]


@pytest.mark.parametrize("chunk", [b"1\r\na\r\n0\r\n\r\n", b""])
def test_bodies_in_chunks_are_refused_and_end_their_connection(place: Place, chunk: bytes) -> None:
    behind = place.behind("s", in_turn(OK))
    said = b"POST /mutate HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
    with place.front("s") as port, stalled(place, port, said + chunk) as one:
        assert one.recv(4096).startswith(b"HTTP/1.1 411 ")
    assert not behind.asked
