"""Scores of all nodes brought to 0 to 100."""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

BEST: Final = 100

Scores = NDArray[Any]
"""One score a node, int64 or float64."""


def normalized(how: str, scores: Scores) -> Scores:
    """Scores by the name of a normalisation, whole numbers unless `how` is `None`.

    `Maximum`: the best has 100, the others their share of it (all 0 where none is above 0). `MinMax`:
    the best has 100, the worst 0 (all 0 where they are equal). `Reverse...`: 100 less that, so that
    little is good. Raises ValueError for another name.
    """
    match how:
        case "None":
            return scores
        case "Maximum":
            return _share(scores)
        case "ReverseMaximum":
            return BEST - _share(scores)
        case "MinMax":
            return _between(scores)
        case "ReverseMinMax":
            return BEST - _between(scores)
    raise ValueError(f"`{how}` is no normalisation")


def _share(scores: Scores) -> Scores:
    most = scores.max(initial=0)
    return _floor(scores * BEST / most) if most > 0 and _is_float(scores) else _whole_share(scores, most)


def _whole_share(scores: Scores, most: Any) -> Scores:
    return scores * BEST // most if most > 0 else np.zeros(len(scores), np.int64)


def _between(scores: Scores) -> Scores:
    if not len(scores):
        return scores
    least, most = scores.min(), scores.max()
    if least == most:
        return np.zeros(len(scores), np.int64)
    above = (scores - least) * BEST
    return _floor(above / (most - least)) if _is_float(scores) else above // (most - least)


def _is_float(scores: Scores) -> bool:
    return scores.dtype.kind == "f"


def _floor(scores: Scores) -> Scores:
    return np.floor(scores).astype(np.int64)
