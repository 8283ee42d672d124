"""What is asked of every socket."""

import socket
from asyncio.trsock import TransportSocket
from typing import Final

_SIGNS_OF_LIFE: Final = (
    ("TCP_KEEPIDLE", 15),
    ("TCP_KEEPINTVL", 5),
    ("TCP_KEEPCNT", 3),
    ("TCP_USER_TIMEOUT", 30_000),
)
"""Asking a silent peer after 15 s, every 5 s, and giving it up after three times or 30 s without an answer."""


def ask_for_signs_of_life(made: socket.socket | TransportSocket) -> None:
    """Notice a peer that is gone without a word."""
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _SIGNS_OF_LIFE:
        option = getattr(socket, name, None)  # not every system has them
        if option is not None:
            made.setsockopt(socket.IPPROTO_TCP, option, value)
