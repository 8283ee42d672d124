"""Messages between the processes of a trial: Python's own pickles, each behind its length.

Both ends are one program that forked; what policies hold crosses as plain values and is never unpickled from text.
"""

import io
import os
import pickle
import select
import socket
import time
from collections.abc import Hashable, Iterator, Mapping
from itertools import islice
from typing import Any, Final

from koordpolicy.runtime.pickling import Pickler, dumps

_HEAD: Final = 8
_CHUNK: Final = 200
"""Entries after which whoever reads a long mapping lets other threads run."""
MOST: Final = 1 << 30
"""Bytes of one message at most: more than any tree may hold."""


class Closed(ConnectionError):
    """The other end is gone."""


def send(channel: socket.socket, message: Any) -> None:
    """Send one message. Raises `Closed`."""
    body = dumps(message)
    try:
        channel.sendall(len(body).to_bytes(_HEAD, "big") + body)
    except OSError as error:
        raise Closed(str(error)) from None


def receive(channel: socket.socket) -> Any:
    """The next message. Raises `Closed`; `TimeoutError` where the channel has a time-out and it passes."""
    return pickle.loads(_exactly(channel, int.from_bytes(_exactly(channel, _HEAD), "big")))  # noqa: S301 - from our own fork


def packed(entries: Mapping[Hashable, object]) -> bytes:
    """A long mapping of plain values, in which what is shared stays shared.

    Raises what `pickle` raises for values that are not plain.
    """
    stream = io.BytesIO()
    pickler = Pickler(stream)
    waiting = iter(entries.items())
    while chunk := dict(islice(waiting, _CHUNK)):
        pickler.dump(chunk)
    return stream.getvalue()


def unpacked(text: bytes) -> Iterator[Mapping[Hashable, object]]:
    """The mapping again, piece by piece: one call for all would hold up other threads."""
    stream = io.BytesIO(text)
    unpickler = pickle.Unpickler(stream)  # noqa: S301 - from our own fork
    while stream.tell() < len(text):
        yield unpickler.load()


def _exactly(channel: socket.socket, size: int) -> bytearray:
    if size > MOST:
        raise Closed(f"a message of {size:,} bytes")
    parts = bytearray()
    while len(parts) < size:
        try:
            part = channel.recv(min(size - len(parts), 1 << 20))
        except TimeoutError:
            raise
        except OSError as error:
            raise Closed(str(error)) from None
        if not part:
            raise Closed("the other end is gone")
        parts += part
    return parts  # messages are long: not copied


def read_until(pipe: int, watched: socket.socket, seconds: float) -> bytes | None:
    """All that comes through a pipe until its other end closes; None past the time.

    Raises `Closed` when the watched channel's other end goes meanwhile, or says something out of turn.
    """
    deadline, parts = time.monotonic() + seconds, bytearray()
    while (left := deadline - time.monotonic()) > 0:
        ready, _, _ = select.select([pipe, watched.fileno()], [], [], left)
        if watched.fileno() in ready:
            raise Closed("the live process is gone")
        if pipe in ready:
            part = os.read(pipe, 1 << 20)
            if not part:
                return bytes(parts)
            parts += part
    return None
