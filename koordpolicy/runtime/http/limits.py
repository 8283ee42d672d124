"""What clients of a server may take."""

import sys
from dataclasses import dataclass
from typing import Final

if sys.platform != "win32":
    import resource

_SHARE: Final = 4
"""A server takes no more than this part of the files that the process may open: there may be two, and there is work."""
_LEAST: Final = 16


@dataclass(frozen=True, slots=True)
class ServerLimits:
    """What clients may take: numbers of connections, bytes, seconds.

    `connections` at once, but never more than a quarter of the files that the process may open; `backlog` more may
    wait to connect. `handshake` seconds for TLS and `head` seconds for a request's first lines, whose lines and
    headers have `line` bytes each and are `headers` at most; `body` bytes of a body, sent or unpacked, which is there
    after `body_seconds`; `bodies` bytes of all of them at a time. `seconds` until a handler has answered, `idle`
    seconds for the answer to be taken and the next request to begin: more than the 90 after which Go's clients end a
    connection, so that none of them writes a request into one that we end. `reread` is the time between looks at the
    certificate's files.
    """

    connections: int = 512
    backlog: int = 1024
    handshake: float = 10.0
    head: float = 10.0
    line: int = 8190
    headers: int = 64
    body: int = 4_000_000
    body_seconds: float = 30.0
    bodies: int = 64_000_000
    seconds: float = 30.0
    idle: float = 120.0
    reread: float = 10.0

    @property
    def places(self) -> int:
        """Connections at once, with regard to the files that the process may open now."""
        if sys.platform == "win32":
            return self.connections
        files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        if files == resource.RLIM_INFINITY:
            return self.connections
        return min(self.connections, max(_LEAST, files // _SHARE))
