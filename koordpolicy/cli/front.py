"""`koordpolicy front`: what holds API servers' connections before a manager's webhooks."""

import argparse
import logging
import signal
import socket
import ssl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from koordpolicy.cli.command import CannotRunError
from koordpolicy.cli.host_port import host_and_port
from koordpolicy.cli.terminal import Terminal
from koordpolicy.cli.tls import certificate_pair
from koordpolicy.model.time import NANOSECONDS, parse_duration
from koordpolicy.runtime.front.server import Front
from koordpolicy.runtime.front.settings import FrontSettings
from koordpolicy.runtime.front.telling import Telling
from koordpolicy.runtime.listening import listen
from koordpolicy.runtime.logs import LogFormat, set_up_logging
from koordpolicy.runtime.tls import Tls

LOG = logging.getLogger(__name__)

_LOOK = 0.2
"""Seconds between looks for the certificate, which a manager makes once it has begun."""
_BACKLOG = 1024
_FEW = 16


def run(arguments: argparse.Namespace, terminal: Terminal) -> int:
    """Serve until told to stop."""
    settings = settings_of(arguments)
    set_up_logging(LogFormat(arguments.log_format), verbose=arguments.verbose)
    stopped: list[int] = []
    fronts: list[Front] = []

    def stop(number: int, _: FrameType | None) -> None:
        stopped.append(number)
        for front in fronts:
            front.stop()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    with _telling(arguments.http, fronts):
        return _serve(arguments.listen, settings, fronts, stopped)


def _serve(address: str, settings: FrontSettings, fronts: list[Front], stopped: list[int]) -> int:
    """Serve once there is a certificate, until told to stop. Raises `CannotRunError`."""
    if not _has_files(settings.tls, stopped):
        return 0
    try:
        sockets = listen(settings.host, settings.port, _BACKLOG)
    except OSError as error:
        raise CannotRunError(f"{address} cannot be served: {error.strerror}") from None
    try:
        front = Front(settings, sockets)
    except ssl.SSLError as error:
        raise CannotRunError(
            f"{settings.tls.certificate} cannot be used to serve by TLS: {error.reason}"
        ) from None
    fronts.append(front)
    if not stopped:
        LOG.info("%s serves what %s answers", address, settings.server)
        front.run()
    _close(sockets)
    return 0


@contextmanager
def _telling(address: str, fronts: list[Front]) -> Iterator[None]:
    """Serve health and metrics meanwhile, if an address is said, of the first front once there is one. Raises `CannotRunError`."""
    if not address:
        yield
        return
    host, port = host_and_port("--http", address, "")
    try:
        sockets = listen(host, port, _FEW)
    except OSError as error:
        raise CannotRunError(f"--http {address} cannot be served: {error.strerror}") from None
    telling = Telling(
        sockets,
        {
            b"/healthz": lambda: fronts[0].health() if fronts else (200, b"waits for its certificate\n"),
            b"/metrics": lambda: fronts[0].metrics() if fronts else (200, b""),
        },
    )
    telling.start()
    try:
        yield
    finally:
        telling.stop()
        _close(sockets)


def settings_of(arguments: argparse.Namespace) -> FrontSettings:
    """What the flags say. Raises `CannotRunError`."""
    host, port = host_and_port("--listen", arguments.listen, "")
    beside: Path = arguments.server.parent
    own = beside / "serving.pem"
    certificate, key = certificate_pair(arguments) or (own, own)
    peers, peer_port = "", 0
    if arguments.peers:
        peers, peer_port = host_and_port("--peers", arguments.peers, "")
        if not peers:
            raise CannotRunError("--peers takes a host and a port, such as koordpolicy-manager-peers:9876")
    try:
        drain = parse_duration(arguments.drain) / NANOSECONDS
    except ValueError as problem:
        raise CannotRunError(f"--drain: {problem}") from None
    if not 0 <= drain <= 3600:
        raise CannotRunError("--drain takes a duration from 0 s to an hour")
    return FrontSettings(
        host,
        port,
        Tls(certificate, key, arguments.tls_client_ca_file),
        arguments.server,
        peers,
        peer_port,
        arguments.peer_name,
        arguments.peer_ca_file or beside / "authority.pem",
        drain,
    )


def _has_files(tls: Tls, stopped: list[int]) -> bool:
    """Wait until there is a certificate; false where the process is told to stop before."""
    waits = False
    while not stopped:
        missing = [one for one in tls.files if not one.exists()]
        if not missing:
            return True
        if not waits:
            LOG.info("%s is not there yet", missing[0])
            waits = True
        time.sleep(_LOOK)
    return False


def _close(sockets: list[socket.socket]) -> None:
    for one in sockets:
        one.close()
