"""In which order migrations that wait are released."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class Decided(StrEnum):
    """What becomes of a migration in one round of arbitration."""

    PASSED = "passed"
    WAITING = "waiting"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class WaitingMigration:
    """A migration that waits. `rank`: sort keys of its pod, None where there is no pod any more.

    `together`: a text that migrations share which are to follow each other, such as the UID of a Job that owns their pods, empty
    for none; `under_way`: how many migrations of it are under way.
    """

    name: str
    created_at: float
    rank: tuple[Any, ...] | None = None
    together: str = ""
    under_way: int = 0


def arbitration_order(waiting: Sequence[WaitingMigration]) -> list[WaitingMigration]:
    """Those first of whose group most are under way; then, group by group, by their pods, and the newest of equals.

    As in Koordinator, sorts in turn that keep the order of equals.
    """
    ordered = sorted(waiting, key=lambda one: -one.created_at)
    ordered.sort(key=lambda one: (one.rank is not None, one.rank or ()))
    first: dict[str, int] = {}
    for place, one in enumerate(ordered):
        if one.together:
            first.setdefault(one.together, place)
    places = {id(one): first.get(one.together, place) for place, one in enumerate(ordered)}
    ordered.sort(key=lambda one: places[id(one)])
    ordered.sort(key=lambda one: -one.under_way if one.together else 0)
    return ordered


def arbitrate(
    waiting: Sequence[WaitingMigration],
    permitted: Callable[[WaitingMigration], bool],
    has_room: Callable[[WaitingMigration], bool],
) -> list[tuple[WaitingMigration, Decided]]:
    """One round: each migration in its order. `permitted`: whether its pod may be moved at all; `has_room`: whether now.

    Both are asked in this order, after what was decided before, so that limits may count what passed.
    """
    decided: list[tuple[WaitingMigration, Decided]] = []
    for one in arbitration_order(waiting):
        if one.rank is None:
            decided.append((one, Decided.PASSED))
        elif not permitted(one):
            decided.append((one, Decided.FAILED))
        else:
            decided.append((one, Decided.PASSED if has_room(one) else Decided.WAITING))
    return decided
