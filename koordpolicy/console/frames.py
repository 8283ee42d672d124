"""What nodes look like at one moment after another, in so few bytes that a whole day of thousands of nodes is kept."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

COLUMNS: Final = (
    "used",
    "services",
    "bestEffort",
    "withheld",
    "memory",
    "requested",
    "offered",
    "class",
    "band",
    "revision",
    "pods",
)
"""What is kept of a node, a byte each. Shares are of the node's capacity in half percents, `offered` and `requested` of CPU;
`class`, `band` and `revision` are places in the lists of the world, the first two of what uses most CPU there; `pods` ends at 255."""

NOBODY: Final = 255
"""In the columns `class` and `band`: no pod; in all with codes: one that has none, as there are so many."""

_MOST_BYTES: Final = 96 * 2**20
_AT_A_TIME: Final = 8 * 2**20


@dataclass(frozen=True, slots=True)
class Frame:
    """The nodes at one moment, in nanoseconds since 1970: a row of bytes a node, and sums of the whole cluster by name."""

    time: int
    rows: bytes
    sums: Mapping[str, float]


@dataclass(slots=True)
class Frames:
    """Frames in order of time. Where they become too many bytes every second one goes, and `generation` is another."""

    generation: int = 0
    kept: list[Frame] = field(default_factory=list)
    _every: int = 1
    _come: int = 0

    def add(self, frame: Frame) -> None:
        """Keep a frame, unless frames have become rarer."""
        self._come += 1
        if self._come % self._every:
            return
        self.kept.append(frame)
        if len(self.kept) * max(len(frame.rows), 1) > _MOST_BYTES:
            self.kept = self.kept[::2]
            self._every *= 2
            self.generation += 1

    def begin(self) -> None:
        """Forget all: the nodes are others."""
        self.kept.clear()
        self.generation += 1
        self._every, self._come = 1, 0

    def rows(self, first: int, last: int) -> bytes:
        """The rows of some frames, one after another; fewer than were asked for where they are many."""
        size = max(len(self.kept[-1].rows), 1) if self.kept else 1
        last = min(last, first + max(_AT_A_TIME // size, 1))
        return b"".join(frame.rows for frame in self.kept[first:last])

    def series(self, first: int) -> list[dict[str, Any]]:
        """Times in seconds since 1970, and sums, of the frames from one on."""
        return [{"time": frame.time / 1e9, **frame.sums} for frame in self.kept[first:]]


def share(part: NDArray[Any], whole: NDArray[Any]) -> NDArray[np.uint8]:
    """Parts of wholes in half percents; nothing where there is no whole."""
    with np.errstate(divide="ignore", invalid="ignore"):
        found = np.where(whole > 0, 200.0 * part / whole, 0.0)
    return np.clip(np.rint(found), 0, 255).astype(np.uint8)


def leading(node: Sequence[int], code: Sequence[int], weight: NDArray[Any], count: int) -> NDArray[np.uint8]:
    """By node the code that has most weight there; `NOBODY` where none has any."""
    found = np.full(count, NOBODY, np.uint8)
    if not len(node):
        return found
    codes = max(code) + 1
    sums = np.bincount(np.asarray(node) * codes + np.asarray(code), weight, count * codes).reshape(
        count, codes
    )
    some = sums.max(axis=1) > 0
    found[some] = sums.argmax(axis=1)[some].astype(np.uint8)
    return found
