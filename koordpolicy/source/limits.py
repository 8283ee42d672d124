"""How much a tree may hold: whoever writes one decides neither our memory nor our disk."""

from dataclasses import dataclass, fields
from typing import Final


@dataclass(frozen=True, slots=True)
class TreeLimits:
    """The most that is taken of one tree.

    `files` counts files (and links), of `file_bytes` each at most and of `bytes` together; `entries` counts
    directories and all else that is looked at, too. `depth` counts directories one in another, `path` the bytes of a path.
    """

    bytes: int
    files: int
    file_bytes: int
    entries: int
    depth: int
    path: int

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """What can be limited, as people write it."""
        return tuple(one.name.replace("_", "-") for one in fields(cls))


READ: Final = TreeLimits(
    bytes=256_000_000, files=20_000, file_bytes=4_000_000, entries=500_000, depth=32, path=1_024
)
"""Of policies that are read: `files` and bytes are theirs, whatever else the tree holds counts among `entries`."""

CHECKED_OUT: Final = TreeLimits(
    bytes=512 << 20, files=100_000, file_bytes=64 << 20, entries=1_000_000, depth=64, path=1_024
)
"""Of a commit that is put on the disk, policies or not. `entries` counts what is not put there, too."""
