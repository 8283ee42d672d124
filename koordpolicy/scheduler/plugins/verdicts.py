"""What filters and scores say of nodes, as columns."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from koordpolicy.algorithms.columns import Mask
from koordpolicy.algorithms.normalize import Scores

Refused = tuple[tuple[bool, ...], bool]
"""Of a node that a filter refuses: whether for each reason, and whether it is unresolvable."""


@dataclass(frozen=True, slots=True)
class Verdicts:
    """What a filter says of the nodes it was shown.

    Row i of `refused` marks the nodes refused for `reasons[i]`; `unresolvable` those that fewer pods on them
    would not help either. `none` says that it is known to refuse no node, so that nobody has to look; what it
    shows then are arrays that others share.
    """

    reasons: tuple[str, ...]
    refused: Mask
    unresolvable: Mask
    none: bool = False


class Missing(str):
    """Advice that names what is not there at all, on nodes that others may refuse as well."""

    __slots__ = ()


def one_reason(refused: Mask, reason: str) -> Verdicts:
    """A filter with one reason, which other pods have nothing to do with."""
    if not np.count_nonzero(refused):
        return refuses_none((reason,), len(refused))
    return Verdicts((reason,), refused[np.newaxis], refused)


@lru_cache(maxsize=64)
def refuses_none(reasons: tuple[str, ...], count: int) -> Verdicts:
    """What a filter says that refuses none of so many nodes."""
    refused = np.zeros((len(reasons), count), np.bool_)
    refused.flags.writeable = False
    return Verdicts(reasons, refused, refused[0], none=True)


@lru_cache(maxsize=16)
def the_same_for_all(count: int) -> Scores:
    """Scores of 0, in an array of one entry that is shown for each node."""
    return np.broadcast_to(np.int64(0), count)


def refused_of(reasons: tuple[str, ...], found: "Sequence[Refused | None]") -> Verdicts:
    """What was said of one node after the other, as columns."""
    refused = np.zeros((len(reasons), len(found)), np.bool_)
    unresolvable = np.zeros(len(found), np.bool_)
    for at, one in enumerate(found):
        if one is not None:
            refused[:, at], unresolvable[at] = one
    return Verdicts(reasons, refused, unresolvable)
