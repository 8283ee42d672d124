"""What a front is told when it is started."""

from dataclasses import dataclass, field
from pathlib import Path

from koordpolicy.runtime.tls import Tls


@dataclass(frozen=True, slots=True)
class FrontLimits:
    """What clients may take: numbers of connections, bytes, seconds.

    `connections` at once, but never more than a quarter of the files that the process may open. `handshake` seconds for
    TLS, `head` bytes and `head_seconds` for a request's first lines, `body` bytes of a body and `bodies` of all at a
    time, each there after `body_seconds`; `idle` seconds between requests, more than Go's clients keep a connection.
    `carriers` requests are carried elsewhere at a time, with `pause` seconds between tries; a server has the part
    `patience` of a request's time before another is asked, too. `reread` seconds between looks at the certificate.
    """

    connections: int = 512
    handshake: float = 10.0
    head: int = 65_536
    head_seconds: float = 10.0
    body: int = 16_000_000
    bodies: int = 64_000_000
    body_seconds: float = 30.0
    idle: float = 300.0
    carriers: int = 64
    pause: float = 0.1
    patience: float = 0.5
    reread: float = 1.0


@dataclass(frozen=True, slots=True)
class FrontSettings:
    """Where a front listens, by which certificate, and whom it asks.

    `server` is the Unix socket of the server behind it. `peers` is a name that stands for other replicas, with their `peer_port`, each
    believed by `authority` as `peer_name`; "" for none. Once told to stop, it answers `drain` seconds more whoever still comes.
    """

    host: str
    port: int
    tls: Tls
    server: Path
    peers: str = ""
    peer_port: int = 0
    peer_name: str = ""
    authority: Path | None = None
    drain: float = 5.0
    limits: FrontLimits = field(default_factory=FrontLimits)
