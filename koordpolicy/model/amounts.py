"""How amounts are counted: exactly where they are added up, within int64 where they are shown.

Kubernetes caps a quantity at 2⁶³ - 1, and so do we; but sums have to go somewhere, too. These are the rules:

- An amount that is read is a whole number from 0 to 2⁶³ - 1. A larger quantity is read as 2⁶³ - 1, one below 0 or
  that is no quantity makes the object unreadable (`reading.read_amounts`).
- What one object asks for as a whole (the containers of a pod together) stops at 2⁶³ - 1.
- What many objects take together (the pods of a node) is kept exactly, so that an object that leaves takes away
  what it brought, whatever the sum was.
- What is shown of such a sum, in a fact, a column or to a plugin, is brought within int64 by `within` at that
  moment. Nothing wraps around, and nothing is raised.
"""

from koordpolicy.model.quantity import INT64_MAX, INT64_MIN
from koordpolicy.model.reading import Amounts


def within(number: int) -> int:
    """The number, or the end of int64 that it lies beyond."""
    return INT64_MIN if number < INT64_MIN else min(number, INT64_MAX)


def all_within(amounts: Amounts) -> Amounts:
    """The amounts, each within int64; the same mapping where they are."""
    for number in amounts.values():
        if not INT64_MIN <= number <= INT64_MAX:
            return {resource: within(number) for resource, number in amounts.items()}
    return amounts


def add_to(total: dict[str, int], more: Amounts) -> None:
    """Add amounts to a sum, exactly."""
    for resource, number in more.items():
        total[resource] = total.get(resource, 0) + number
