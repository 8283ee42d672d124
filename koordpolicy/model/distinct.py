"""The different values of an array, and those that are among others, as `np.unique` and `np.isin` give them.

Those ask whether an array is masked, and so load NumPy's masked arrays at their first use: a tenth of a second within a
decision, and more than a megabyte.
"""

from collections.abc import Collection
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

_FEW: Final = 8
"""Items up to which it is quicker to compare with each."""


def distinct(values: NDArray[Any]) -> NDArray[Any]:
    """In ascending order, each once."""
    ordered = np.sort(values, axis=None)
    first = np.empty(len(ordered), dtype=np.bool_)
    first[:1] = True
    np.not_equal(ordered[1:], ordered[:-1], out=first[1:])
    return ordered[first]


def among(values: NDArray[Any], items: Collection[Any]) -> NDArray[np.bool_]:
    """Whether each of the values, an array of one dimension, equals one of the items, which are of its class."""
    found = np.zeros(len(values), np.bool_)
    if len(items) <= _FEW:
        for item in items:
            found |= values == item
        return found
    ordered = np.sort(np.array([*items], dtype=values.dtype))
    places = np.searchsorted(ordered, values)
    np.minimum(places, len(ordered) - 1, out=places)
    return np.asarray(ordered[places] == values)
