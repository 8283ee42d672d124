"""Columns: one NumPy array a fact, one element a node, all in the order of the node table."""

from collections.abc import Mapping
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Column: TypeAlias = NDArray[np.int64]
"""One integer amount or score a node."""

Mask: TypeAlias = NDArray[np.bool_]
"""One answer a node."""

Columns: TypeAlias = Mapping[str, Column]
"""Columns by resource name. A resource without a column is 0 on every node."""
