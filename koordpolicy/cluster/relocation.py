"""Whether a pod that is on a node would end better elsewhere: what is asked of whoever places pods, and how that answers."""

from dataclasses import dataclass
from typing import Protocol

from koordpolicy.model.pod import Pod


@dataclass(frozen=True, slots=True)
class Relocation:
    """Where a pod would go if it came anew, its own node among those that may take it; empty where none would.

    `gain` is by how much that node counts for more than its own, in points of the profile that places it; None where its own node
    would not take it again, or where it would find no other. `why` says why it found none.
    """

    node: str
    gain: float | None = None
    why: str = ""


class Relocations(Protocol):
    """Answers for one round of moves, each in view of those that are to go already."""

    def begin(self) -> None:
        """A round begins: nothing goes yet."""

    def of(self, pod: Pod) -> Relocation:
        """Where a pod that is on a node would go now. What it uses there does not count against that node."""

    def goes(self, pod: Pod, node: str) -> None:
        """From now on it counts there."""

    def end(self) -> None:
        """The round is over: everything counts where it is."""
