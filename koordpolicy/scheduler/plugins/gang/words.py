"""What people are told of gangs that wait."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Final

from koordpolicy.algorithms.gang import Gang, GangGroup
from koordpolicy.algorithms.gang_book import GangBook
from koordpolicy.model.protocol import (
    BOUND_GANG_GROUP,
    BOUND_GANG_GROUP_OLD,
    BOUND_GANG_MEMBERS,
    BOUND_GANG_MEMBERS_OLD,
    GANG_GROUPS,
)
from koordpolicy.scheduler.decision import PostFilterResult
from koordpolicy.scheduler.plugins.gang.policy import KIND, TooMany

_TOLD: Final = 4
"""Gangs that a text names; it counts the others."""
_LONGEST: Final = 63 + 1 + 253
"""Characters of a namespace and a name, as long as an object may have them; annotations name gangs with longer ones."""


def shown(named: str) -> str:
    """The id of a gang as texts have it: cut where it is longer than that of any object."""
    return named if len(named) <= _LONGEST else f"{named[: _LONGEST - 1]}…"


def some(parts: Iterable[str], count: int, most: int = _TOLD) -> str:
    """The first `most` of so many phrases, and how many more there are."""
    told = ", ".join(islice(parts, most))
    return told if count <= most else f"{told} and {count - most:,} more"


def not_initialised_text(named: str, *, by_object: bool) -> str:
    """Why a gang cannot be placed of which not enough is said."""
    if by_object:
        return f"there is no PodGroup {shown(named)}"
    return f"no pod says how many pods gang {shown(named)} needs"


def too_many_text(named: str, found: TooMany) -> str:
    """Why a gang is not placed that names more gangs than policy allows."""
    return (
        f"gang {shown(named)} names {found.named:,} gangs to be placed together, and {KIND}.mostTogether allows {found.most:,}: "
        f"name fewer in the annotation {GANG_GROUPS}, or raise mostTogether"
    )


def lacking_text(book: GangBook, gang: Gang) -> str:
    """Which gangs keep one from being tried, and why."""
    lacking = book.lacking(gang)
    return some((_lacking_text(book, named) for named in lacking), len(lacking))


def _lacking_text(book: GangBook, named: str) -> str:
    found = book.gangs.get(named)
    if found is None:
        return f"gang {shown(named)} is not there"
    if found.parameters is None:
        return f"nothing is said of gang {shown(named)}"
    return f"gang {shown(named)} does not have its {found.parameters.minimum} pods yet"


def waiting_text(gangs: Sequence[Gang]) -> str:
    """How many pods of gangs have a node; empty where nothing is said of any of them."""
    said = [(one, one.parameters.minimum) for one in gangs if one.parameters is not None]
    return some(
        (
            f"{len(one.waiting) + len(one.bound)} of {minimum} pods of gang {shown(one.id)} have a node"
            for one, minimum in said
        ),
        len(said),
    )


def bound_together(group: GangGroup) -> Mapping[str, str]:
    """What annotations of pods say that are bound together: of which gangs they are, and how many."""
    named, count = ",".join(group.gangs), str(len(group.members))
    return {
        BOUND_GANG_GROUP: named,
        BOUND_GANG_MEMBERS: count,
        BOUND_GANG_GROUP_OLD: named,
        BOUND_GANG_MEMBERS_OLD: count,
    }


def room_text(named: str, found: PostFilterResult) -> str:
    """Who goes for a gang, in a line."""
    pods = counted(len(found.beside) + 1, "pod")
    if not found.victims:
        return f"preemption: {pods} of gang {shown(named)} are promised nodes from which nobody has to go"
    gone = counted(len(found.victims), "pod")
    nodes = counted(len({victim.node for victim in found.victims}), "node")
    return f"preemption: room for {pods} of gang {shown(named)} is made by sending {gone} away from {nodes}"


def no_room_text(named: str, reason: str, *, waits: bool) -> str:
    """Why nobody goes for a gang; `waits`: nobody else does yet."""
    if waits:
        return f"preemption: gang {shown(named)} waits: {reason}"
    return f"preemption: nobody goes for gang {shown(named)}: {reason}"


def counted(number: int, what: str) -> str:
    """`1 pod`, `2 pods`."""
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
