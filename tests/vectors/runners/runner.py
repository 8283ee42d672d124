"""What a runner is."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tests.vectors.compare import EXACT, Comparison

SUCCESS, UNSCHEDULABLE, UNRESOLVABLE = "Success", "Unschedulable", "UnschedulableAndUnresolvable"
"""The words of kube-scheduler for what a filter says of a node."""


class Unsupported(Exception):
    """Raised by a runner for an input that the project cannot answer yet."""


@dataclass(frozen=True, slots=True)
class Runner:
    """How one kind is answered and compared. `answer` takes the vector's `input`.

    It has to read all of that; `irrelevant` are the paths of keys that the answer cannot depend on (see `reading.ReadInput`).
    """

    answer: Callable[[Mapping[str, object]], Mapping[str, object]]
    comparison: Comparison = EXACT
    irrelevant: frozenset[str] = frozenset()
