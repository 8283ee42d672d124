"""What people are told of gangs that wait."""

from koordpolicy.algorithms.gang import Gang
from koordpolicy.algorithms.gang_book import GangBook


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
