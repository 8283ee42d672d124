"""What people are told of gangs that wait."""

from koordpolicy.algorithms.gang import Gang
from koordpolicy.algorithms.gang_book import GangBook
from koordpolicy.scheduler.decision import PostFilterResult


def not_initialised_text(named: str, *, by_object: bool) -> str:
    """Why a gang cannot be placed of which not enough is said."""
    if by_object:
        return f"there is no PodGroup {named}"
    return f"no pod says how many pods gang {named} needs"


def lacking_text(book: GangBook, gang: Gang) -> str:
    """Which gangs keep one from being tried, and why."""
    parts = []
    for named in book.lacking(gang):
        found = book.gangs.get(named)
        if found is None or found.parameters is None:
            parts.append(
                f"gang {named} is not there" if found is None else f"nothing is said of gang {named}"
            )
        else:
            parts.append(f"gang {named} does not have its {found.parameters.minimum} pods yet")
    return ", ".join(parts)


def room_text(named: str, found: PostFilterResult) -> str:
    """Who goes for a gang, in a line."""
    pods = counted(len(found.beside) + 1, "pod")
    if not found.victims:
        return f"preemption: {pods} of gang {named} are promised nodes from which nobody has to go"
    gone = counted(len(found.victims), "pod")
    nodes = counted(len({victim.node for victim in found.victims}), "node")
    return f"preemption: room for {pods} of gang {named} is made by sending {gone} away from {nodes}"


def no_room_text(named: str, reason: str, *, waits: bool) -> str:
    """Why nobody goes for a gang; `waits`: nobody else does yet."""
    if waits:
        return f"preemption: gang {named} waits: {reason}"
    return f"preemption: nobody goes for gang {named}: {reason}"


def counted(number: int, what: str) -> str:
    """`1 pod`, `2 pods`."""
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
