"""Where an agent answers runtime proxies; apart from what answers, whose gRPC most agents never load."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class HookPlaces:
    """The agent's own socket, where it stands on the node if that is another place, and the directory of announcements."""

    socket: Path
    directory: Path
    on_node: Path | None = None
