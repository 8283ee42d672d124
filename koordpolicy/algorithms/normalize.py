"""Scores of all nodes brought to 0 to 100."""

from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

BEST: Final = 100

Scores = NDArray[Any]
"""One score a node, int64 or float64."""

Extremes: TypeAlias = tuple[Any, Any] | None
"""The least and the greatest score that a normalisation looks at; None where it looks at none."""


def normalized(how: str, scores: Scores) -> Scores:
    """Scores by the name of a normalisation, whole numbers unless `how` is `None`.

    `Maximum`: the best has 100, the others their share of it (all 0 where none is above 0). `MinMax`:
    the best has 100, the worst 0 (all 0 where they are equal). `Reverse...`: 100 less that, so that
    little is good. Raises ValueError for another name.
    """
    return scaled(how, scores, extremes(how, scores)) if len(scores) else scores


def extremes(how: str, scores: Scores) -> Extremes:
    """What the normalisation has to know of all scores, of which there is at least one. Raises ValueError."""
    match how:
        case "None":
            return None
        case "Maximum" | "ReverseMaximum":
            return 0, max(_most(scores), 0)
        case "MinMax" | "ReverseMinMax":
            return scores.min(), _most(scores)
    raise ValueError(f"`{how}` is no normalisation")


def scaled(how: str, scores: Scores, between: Extremes) -> Scores:
    """Some or all of the scores, between the extremes of all."""
    if between is None:
        return scores
    least, most = between
    if least == most:
        found: Scores = np.zeros(len(scores), np.int64)
    else:
        found = (scores - least) * BEST if least else scores * BEST
        if found.dtype.kind == "f":
            found /= most - least
            np.floor(found, out=found)
        else:
            found //= most - least
    return BEST - found if how.startswith("Reverse") else found


def scaled_one(how: str, score: float, between: Extremes) -> float:
    """One of the scores, as `scaled` gives it."""
    if between is None:
        return score
    least, most = between
    found = int((score - least) * BEST // (most - least)) if least != most else 0
    return BEST - found if how.startswith("Reverse") else found


def _most(scores: Scores) -> Any:
    """The greatest score; to look where it is takes half the time of asking for it."""
    return scores[scores.argmax()]
