"""TLS: whom we trust, who trusts us, and what happens when papers change. Certificates are made by openssl."""

import asyncio
import base64
import contextlib
import shutil
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
import uvloop

from koordpolicy.kube import Unreachable
from koordpolicy.kube.api import ApiCluster, ClientLimits, Connection, connect
from koordpolicy.kube.api.access import Access
from koordpolicy.kube.api.sockets import ask_for_signs_of_life
from koordpolicy.kube.api.wires import wires_of
from koordpolicy.kube.resources import PODS
from tests.unit.kube.api.scripted import POD, Scripted, kubeconfig, says, serving


@pytest.fixture
def papers(tmp_path: Path) -> Path:
    """A folder with two authorities (`ca`, `other`), a server and a client certificate of the first."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl: not on this machine")

    def openssl(*arguments: str) -> None:
        subprocess.run(["openssl", *arguments], cwd=tmp_path, check=True, capture_output=True)

    key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    for name in ("ca", "other"):
        openssl("req", "-x509", *key, "-keyout", f"{name}.key", "-out", f"{name}.crt", "-subj", f"/CN={name}")
    for name, alternative in (("server", "DNS:kube.example.org,IP:127.0.0.1"), ("client", "DNS:client")):
        openssl("req", *key, "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", f"/CN={name}")
        (tmp_path / "names").write_text(f"subjectAltName={alternative}")
        openssl(
            *("x509", "-req", "-in", f"{name}.csr", "-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial"),
            *("-out", f"{name}.crt", "-extfile", "names"),
        )
    return tmp_path


def data(file: Path) -> str:
    return base64.b64encode(file.read_bytes()).decode()


def play(
    papers: Path,
    scene: Callable[[ApiCluster, Scripted], Coroutine[Any, Any, None]],
    user: Any = None,
    *,
    asks_clients: bool = False,
    host: str = "127.0.0.1",
    **cluster: Any,
) -> Scripted:
    """Let a client and a server with TLS play a scene."""
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(papers / "server.crt", papers / "server.key")
    if asks_clients:
        tls.load_verify_locations(papers / "ca.crt")
        tls.verify_mode = ssl.CERT_REQUIRED

    async def run() -> Scripted:
        async with serving(says(POD), tls=tls) as server:
            connection = Connection.load(kubeconfig(papers, f"https://{host}:{server.port}", user, **cluster))
            async with connect(connection, jitter=lambda: 0.0, limits=ClientLimits(attempts=2)) as made:
                await scene(made, server)
            return server

    return asyncio.run(run())


async def succeeds(cluster: ApiCluster, server: Scripted) -> None:
    assert (await cluster.get(PODS, "a"))["metadata"]["name"] == "a"


async def fails(cluster: ApiCluster, server: Scripted) -> None:
    with pytest.raises(Unreachable):
        await cluster.get(PODS, "a")


def test_a_server_is_trusted_by_its_authority(papers: Path) -> None:
    trusted: dict[str, Any] = {"certificate-authority": str(papers / "ca.crt")}
    assert play(papers, succeeds, **trusted).tried == 1
    inline: dict[str, Any] = {"certificate-authority-data": data(papers / "ca.crt")}
    assert play(papers, succeeds, **inline).tried == 1


def test_a_server_of_another_authority_is_not(papers: Path) -> None:
    other: dict[str, Any] = {"certificate-authority": str(papers / "other.crt")}
    assert play(papers, fails, **other).tried == 0
    assert play(papers, fails).tried == 0
    assert play(papers, succeeds, **{**other, "insecure-skip-tls-verify": True}).tried == 1


def test_the_name_on_the_certificate_may_be_another_but_must_be_the_one_told(papers: Path) -> None:
    told: dict[str, Any] = {"certificate-authority": str(papers / "ca.crt")}
    assert play(papers, fails, host="localhost", **told).tried == 0
    assert (
        play(papers, succeeds, host="localhost", **{**told, "tls-server-name": "kube.example.org"}).tried == 1
    )
    assert play(papers, fails, **{**told, "tls-server-name": "other.example.org"}).tried == 0


def test_we_show_our_certificate_where_it_is_asked_for(papers: Path) -> None:
    told: dict[str, Any] = {"certificate-authority": str(papers / "ca.crt"), "asks_clients": True}
    files = {"client-certificate": str(papers / "client.crt"), "client-key": str(papers / "client.key")}
    inline = {
        "client-certificate-data": data(papers / "client.crt"),
        "client-key-data": data(papers / "client.key"),
    }
    for user in (files, inline):
        assert play(papers, succeeds, user, **told).tried == 1
    assert play(papers, fails, {"token": "secret"}, **told).tried == 0


def test_a_new_authority_is_read_when_the_old_one_is_not_enough(papers: Path) -> None:
    file = papers / "known.crt"
    file.write_bytes((papers / "other.crt").read_bytes())

    async def scene(cluster: ApiCluster, server: Scripted) -> None:
        file.write_bytes((papers / "ca.crt").read_bytes())
        await succeeds(cluster, server)

    told: dict[str, Any] = {"certificate-authority": str(file)}
    assert play(papers, scene, **told).tried == 1


def test_a_connection_given_up_within_its_handshake_holds_up_no_end(
    papers: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """uvloop closes such a socket without a word to its protocol, where the step that waits for it comes too late."""
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(papers / "server.crt", papers / "server.key")
    given_up: list[bool] = []

    async def run(port: int) -> None:
        loop = asyncio.get_running_loop()

        def slowly() -> None:
            time.sleep(0.02)  # the server's part of the handshake is there before the next turn
            turns[0] = loop.call_soon(slowly)

        turns = [loop.call_soon(slowly)]

        def give_up(sock: socket.socket) -> None:
            ask_for_signs_of_life(sock)
            given_up.append(asking.cancel())

        monkeypatch.setattr("koordpolicy.kube.api.wires.ask_for_signs_of_life", give_up)
        trust = ssl.create_default_context(cafile=str(papers / "ca.crt"))
        async with asyncio.timeout(20), wires_of("agent/1", 5.0) as connections:
            place = connections.place(Access(f"https://127.0.0.1:{port}", tls=trust))
            assert place is not None
            asking = asyncio.create_task(connections.request(place, "GET", "/", None, "", 5.0))
            with pytest.raises(asyncio.CancelledError):
                await asking
            turns[0].cancel()

    def answer(listening: socket.socket) -> None:
        with contextlib.suppress(OSError), listening.accept()[0] as taken:
            taken.settimeout(10)
            tls.wrap_socket(taken, server_side=True).close()

    with socket.create_server(("127.0.0.1", 0)) as listening:
        answering = threading.Thread(target=answer, args=(listening,))
        answering.start()
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(run(listening.getsockname()[1]))
        answering.join(timeout=10)
    assert given_up == [True]
