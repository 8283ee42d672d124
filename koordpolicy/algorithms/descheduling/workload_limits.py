"""How many pods of a workload may move or be unavailable at once, from its number of replicas."""

from collections.abc import Sequence
from typing import Final

Share = int | str
"""A number of pods, or a share of the replicas: `10%`."""

BY_REPLICAS: Final[Sequence[tuple[int, Share]]] = ((10, "10%"), (3, 2), (0, 1))
"""What Koordinator takes where nothing is set: above so many replicas, the share. The first that fits counts."""


def max_pods(
    replicas: int, share: Share | None, by_replicas: Sequence[tuple[int, Share]] = BY_REPLICAS
) -> int:
    """The pods that `share` allows of a workload: at least 1, and never more than it has.

    A percentage is rounded down. Without a share, that of `by_replicas` counts. Raises ValueError for a text that is no
    percentage.
    """
    if share is None:
        share = next((one for above, one in by_replicas if replicas > above), 0)
    return min(_pods(share, replicas) or 1, replicas)


def replicas_can_move(replicas: int, max_migrating: int, max_unavailable: int) -> bool:
    """Whether a workload is of a size that lets pods move: not a single pod, and not one that a limit allows to go as a whole."""
    return replicas not in (1, max_migrating, max_unavailable)


def _pods(share: Share, replicas: int) -> int:
    if isinstance(share, int):
        return share
    digits = share.removesuffix("%")
    if digits == share or not (digits.isascii() and digits.isdigit()):
        raise ValueError(f"{share!r} is neither a number of pods nor a percentage such as 10%")
    return replicas * int(digits) // 100
