"""The different values of an array."""

from typing import Any

import numpy as np
from numpy.typing import NDArray


def distinct(values: NDArray[Any]) -> NDArray[Any]:
    """In ascending order, each once, as `np.unique` gives them.

    That one asks whether the array is masked, and so loads NumPy's masked arrays at its first use: a tenth of a second within a
    decision, and more than a megabyte.
    """
    ordered = np.sort(values, axis=None)
    first = np.empty(len(ordered), dtype=np.bool_)
    first[:1] = True
    np.not_equal(ordered[1:], ordered[:-1], out=first[1:])
    return ordered[first]
