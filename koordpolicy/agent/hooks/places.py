"""Where an agent answers runtime proxies; apart from what answers, whose gRPC most agents never load."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class HookPlaces:
    """The agent's own socket, where it stands on the node if that is another place, and the directory of announcements.

    Beside the socket of gRPC, which any proxy asks at, stands one of ttrpc, at which ours does.
    """

    socket: Path
    directory: Path
    on_node: Path | None = None

    @property
    def ttrpc(self) -> Path:
        """The agent's socket of ttrpc."""
        return _beside(self.socket)

    @property
    def announced(self) -> tuple[Path, Path]:
        """Both sockets where proxies find them: gRPC's and ttrpc's."""
        there = self.on_node or self.socket
        return there, _beside(there)


def _beside(socket: Path) -> Path:
    return socket.with_name(f"{socket.name}.ttrpc")
