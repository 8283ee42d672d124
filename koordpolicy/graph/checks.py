"""The passes that decide nothing, as they only find what is wrong or prepare what is proved, imported when they first run.

They are a third of the compiler. A process that takes only revisions that others have checked, as an agent on each of
thousands of nodes does, never holds them.
"""

from collections.abc import Callable

from koordpolicy.graph.state import State


def availability(state: State) -> None:
    """See `passes/availability.py`."""
    from koordpolicy.graph.passes.availability import availability as run  # noqa: PLC0415

    run(state)


def invariants(state: State) -> None:
    """See `passes/invariants.py`."""
    from koordpolicy.graph.passes.invariants import invariants as run  # noqa: PLC0415

    run(state)


def conflicts(state: State) -> None:
    """See `passes/conflicts.py`."""
    from koordpolicy.graph.passes.conflicts import conflicts as run  # noqa: PLC0415

    run(state)


def cost(state: State) -> None:
    """See `passes/cost.py`."""
    from koordpolicy.graph.passes.cost import cost as run  # noqa: PLC0415

    run(state)


def meaning(state: State) -> None:
    """See `meaning/`."""
    from koordpolicy.graph.passes.meaning import meaning as run  # noqa: PLC0415

    run(state)


def foresight(state: State) -> None:
    """See `foresight/`."""
    from koordpolicy.graph.foresight import foresight as run  # noqa: PLC0415

    run(state)


CHECKS: frozenset[Callable[[State], None]] = frozenset(
    (availability, invariants, conflicts, cost, meaning, foresight)
)
"""The passes that a revision needs no more that was checked elsewhere."""
