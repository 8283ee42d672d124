"""Who may ask a server for what, over real sockets."""

import ssl
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from koordpolicy.kube.memory import MemoryCluster, Store
from koordpolicy.runtime.http import HttpServer, Route
from koordpolicy.runtime.http.authentication import Authentication, Authenticator, Protection, user_of
from koordpolicy.runtime.http.limits import ServerLimits
from koordpolicy.runtime.http.reviews import ClusterReviews
from koordpolicy.runtime.tls import Tls
from tests.unit.runtime.http.certificates import Pair, certificate
from tests.unit.runtime.http.clients import client, play, trusting, well
from tests.unit.runtime.scenes import until

ROUTES = tuple(Route("GET", f"/{one}", well, one) for one in Protection)
USUAL = ServerLimits()
OPEN, READ, WRITE, SIGNED = (f"/{one}" for one in Protection)


@dataclass
class Site:
    """A server with TLS and a CA for clients, and certificates for them."""

    folder: Path
    settings: Authentication
    own: Pair = field(default_factory=lambda: certificate(1))
    known: Pair = field(default_factory=lambda: certificate(2, "/O=system:nodes/O=extra/CN=scheduler"))
    stranger: Pair = field(default_factory=lambda: certificate(3, "/CN=scheduler"))
    server: HttpServer | None = None

    def write(self, name: str, pair: Pair) -> tuple[Path, Path]:
        pem, key = self.folder / f"{name}.pem", self.folder / f"{name}.key"
        pem.write_bytes(pair.pem)
        key.write_bytes(pair.key)
        return pem, key

    def serve(self, limits: ServerLimits = USUAL) -> HttpServer:
        pem, key = self.write("own", self.own)
        authority, _ = self.write("known", self.known)
        self.server = HttpServer(
            "127.0.0.1",
            0,
            ROUTES,
            tls=Tls(pem, key, authority),
            limits=limits,
            authenticator=Authenticator(self.settings, client_certificates=True),
        )
        return self.server

    async def ask(self, path: str, shown: Pair | None = None, *headers: bytes) -> int:
        """The status; 0 where the connection was ended instead."""
        assert self.server is not None
        context = trusting(self.own.pem)
        if shown is not None:
            context.load_cert_chain(*self.write("shown", shown))
        try:
            async with client(self.server, context) as one:
                one.send(b"\r\n".join([f"GET {path} HTTP/1.1".encode(), b"Host: x", *headers]) + b"\r\n\r\n")
                return await one.status()
        except (ssl.SSLError, ConnectionError):
            return 0


def test_a_client_certificate_opens_what_is_not_open(tmp_path: Path) -> None:
    async def scene() -> None:
        site = Site(tmp_path, Authentication())
        async with site.serve():
            assert [await site.ask(path) for path in (OPEN, SIGNED, READ, WRITE)] == [200, 200, 401, 401]
            assert [await site.ask(path, site.known) for path in (OPEN, READ, WRITE)] == [200, 200, 200]
            # Neither a certificate of somebody else nor one of the right name signed by nobody.
            assert [await site.ask(path, site.stranger) for path in (READ, WRITE)] == [0, 0]
            assert await site.ask(WRITE, None, b"Authorization: Bearer x") == 401

    play("uvloop", scene)


@pytest.mark.parametrize(("names", "expected"), [(("other", "scheduler"), 200), (("sched",), 403), ((), 200)])
def test_only_the_names_that_are_wanted(tmp_path: Path, names: Sequence[str], expected: int) -> None:
    async def scene() -> None:
        site = Site(tmp_path, Authentication(names=tuple(names)))
        async with site.serve():
            assert await site.ask(WRITE, site.known) == expected
            assert await site.ask(OPEN, site.known) == 200

    play("uvloop", scene)


TOKENS = [
    (b"Authorization: Bearer s3cret", 200),
    (b"authorization: bearer   s3cret", 200),
    (b"Authorization: Bearer s3cre", 401),
    (b"Authorization: Bearer s3crett", 401),
    (b"Authorization: Bearer", 401),
    (b"Authorization: Bearer  ", 401),
    (b"Authorization: Basic s3cret", 401),
    (b"Authorization: s3cret", 401),
    (b"Authorization: Bearer \xff\xfe", 401),
    (b"Authorization: Bearer \xc3\xa4", 401),
    (b"Authorization: \xff \xff", 401),
    (b"X: y", 401),
]


@pytest.mark.parametrize(("header", "expected"), TOKENS, ids=repr)
def test_the_token_of_a_file(
    tmp_path: Path, header: bytes, expected: int, caplog: pytest.LogCaptureFixture
) -> None:
    token = tmp_path / "token"
    token.write_text("s3cret\n")

    async def scene() -> None:
        site = Site(tmp_path, Authentication(token_file=token))
        async with site.serve():
            assert await site.ask(WRITE, None, header) == expected
            assert await site.ask(OPEN, None, header) == 200
            assert await site.ask(READ, site.known, header) == 200
            token.write_text("another")
            assert await site.ask(WRITE, None, b"Authorization: Bearer s3cret") == 401
            assert await site.ask(WRITE, None, b"Authorization: Bearer another") == 200

    play("uvloop", scene)
    assert caplog.records == []


@pytest.mark.parametrize("content", [None, b"", b" \n", b"\xff"], ids=repr)
def test_a_token_file_that_holds_none_opens_nothing(tmp_path: Path, content: bytes | None) -> None:
    token = tmp_path / "token"
    if content is not None:
        token.write_bytes(content)

    async def scene() -> None:
        site = Site(tmp_path, Authentication(token_file=token))
        async with site.serve():
            assert await site.ask(WRITE, None, b"Authorization: Bearer x") == 503
            assert await site.ask(WRITE, None, b"Authorization: Bearer ") == 401

    play("uvloop", scene)


def test_a_cluster_that_does_not_answer_opens_nothing() -> None:
    async def scene() -> None:
        # The in-memory cluster has no users, and says so.
        reviews = ClusterReviews(MemoryCluster(Store(lambda: 0)))
        authenticator = Authenticator(Authentication(delegated=True), reviews=reviews)
        async with HttpServer("127.0.0.1", 0, ROUTES, authenticator=authenticator) as server:
            async with client(server) as one:
                one.send(f"GET {READ} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer x\r\n\r\n".encode())
                status, body = await one.answer()
            assert status == 503
            assert b"credentials cannot be checked now" in body

    play("uvloop", scene)


def test_without_settings_reading_is_open_and_writing_is_not() -> None:
    async def scene() -> None:
        async with HttpServer("127.0.0.1", 0, ROUTES) as server:
            for path, expected in ((OPEN, 200), (READ, 200), (SIGNED, 200), (WRITE, 401)):
                async with client(server) as one:
                    one.send(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
                    assert await one.status() == expected
                async with client(server) as one:
                    one.send(f"HEAD {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
                    assert await one.status() == expected

    play("uvloop", scene)


def test_the_body_of_who_may_not_ask_is_not_waited_for() -> None:
    async def scene() -> None:
        routes = (Route("POST", "/write", well),)
        async with HttpServer("127.0.0.1", 0, routes) as server, client(server) as one:
            one.send(b"POST /write HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n")
            assert await one.status() == 401

    play("uvloop", scene)


def test_a_certificates_user_is_its_name_and_organizations(tmp_path: Path) -> None:
    subject = ((("organizationName", "a"),), (("organizationName", "b"),), (("commonName", "n"),))
    user = user_of({"subject": subject})
    assert (user.name, user.groups) == ("n", ("a", "b"))
    assert user_of({}).name == ""


def test_an_authority_that_was_taken_away_does_not_count_any_more(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scene() -> None:
        site = Site(tmp_path, Authentication())
        async with site.serve(ServerLimits(reread=0.02)):
            assert await site.ask(WRITE, site.known) == 200
            (tmp_path / "known.pem").write_bytes(site.stranger.pem)
            await until(lambda: "was renewed" in caplog.text)
            assert await site.ask(WRITE, site.known) == 0
            assert await site.ask(WRITE, site.stranger) == 200

    caplog.set_level("INFO", "koordpolicy")
    play("uvloop", scene)
