"""Sockets that listen: at a host and a port, or at a path."""

import errno
import os
import socket
from pathlib import Path
from typing import Final

UNIX: Final = "unix:"
"""What stands before the path of a Unix socket, in place of a host."""


def listen(host: str, port: int, backlog: int) -> list[socket.socket]:
    """Sockets that listen at all addresses of a host, "" for every one there is, with one port; or at a path. Raises OSError."""
    if host.startswith(UNIX):
        return [_listen_at(Path(host.removeprefix(UNIX)), backlog)]
    sockets: list[socket.socket] = []
    try:
        for family, address in _addresses(host):
            try:
                one = socket.create_server(
                    (address, port),
                    family=family,
                    backlog=backlog,
                    dualstack_ipv6=not host and family == socket.AF_INET6,
                )
            except OSError as error:
                if error.errno in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT) and sockets:
                    continue  # such as ::1 of `localhost` where there is no IPv6
                raise
            one.setblocking(False)
            sockets.append(one)
            port = int(one.getsockname()[1])
    except BaseException:
        for one in sockets:
            one.close()
        raise
    return sockets


def _listen_at(path: Path, backlog: int) -> socket.socket:
    """A Unix socket for processes of our own user; what an earlier process has left there goes."""
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    fresh = path.with_name(f"{path.name}.new")
    try:
        fresh.unlink(missing_ok=True)
        before = os.umask(0o177)
        try:
            made.bind(str(fresh))
        finally:
            os.umask(before)
        made.listen(backlog)
        made.setblocking(False)
        fresh.replace(path)
    except BaseException:
        made.close()
        raise
    return made


def _addresses(host: str) -> list[tuple[socket.AddressFamily, str]]:
    if not host:
        both = socket.has_dualstack_ipv6()
        return [(socket.AF_INET6, "::")] if both else [(socket.AF_INET, "0.0.0.0")]  # noqa: S104  # it was asked for
    found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    ordered = sorted(found, key=lambda one: one[0] != socket.AF_INET)
    return list(dict.fromkeys((one[0], str(one[4][0])) for one in ordered))
