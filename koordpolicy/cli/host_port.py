"""Hosts and ports as flags say them."""

from koordpolicy.cli.command import CannotRunError


def host_and_port(flag: str, said: str, otherwise: str = "") -> tuple[str, int]:
    """Host and port of a flag, an empty host for every address. Raises `CannotRunError`."""
    host, colon, port = said.rpartition(":")
    if not colon or not (port.isascii() and port.isdecimal()) or int(port[:6]) > 65_535:
        raise CannotRunError(f"{flag} takes [HOST]:PORT{otherwise}, not `{said}`")
    return host.strip("[]"), int(port)
