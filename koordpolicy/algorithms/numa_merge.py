"""One NUMA affinity out of the hints of all who allocate something on a node: CPUs, memory, devices.

Whoever allocates says, by resource, on which sets of zones it could (`Hint`). `merge` combines one hint of every resource at a
time and takes the best combination; a policy says which are admitted. Sets of zones are bit masks: bit n is zone n. The rules
are those of kubelet's topology manager with Koordinator's scores and exclusive zones.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple

MOST_ZONES: Final = 16
"""Zones of which all sets are looked at: hints grow with the sets of zones. kubelet gives up beyond 8."""


class NUMAPolicy(StrEnum):
    """What of the possible affinities is admitted."""

    NONE = ""
    BEST_EFFORT = "BestEffort"
    RESTRICTED = "Restricted"
    SINGLE_NUMA_NODE = "SingleNUMANode"


class Exclusive(StrEnum):
    """Whether pods within one zone keep from those across several; only `REQUIRED` does something."""

    UNSET = ""
    PREFERRED = "Preferred"
    REQUIRED = "Required"


class ZoneUse(StrEnum):
    """By whom a zone's CPUs are used."""

    IDLE = "idle"
    SINGLE = "single"
    """By pods within this zone alone."""
    SHARED = "shared"
    """By a pod that spans several."""


class Hint(NamedTuple):
    """One way to allocate a resource: on these zones (a mask; None for any)."""

    zones: int | None
    preferred: bool
    score: int = 0


Hints = Mapping[str, Sequence[Hint] | None]
"""Hints by resource; None where any zones do, nothing where none do."""

ANYWHERE: Final = Hint(None, True)


@dataclass(frozen=True, slots=True)
class Affinity:
    """The zones on which a pod is to be allocated (None: not said), and whether the policy admits that.

    `reasons` say why not: of resources that no zones can give, or what was wanted and what there was.
    """

    admitted: bool
    zones: int | None
    preferred: bool = False
    score: int = 0
    unsatisfied: tuple[str, ...] = ()
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Zones:
    """The zones of a node: their mask, and who uses each, by number."""

    all: int
    uses: Mapping[int, ZoneUse]
    exclusive: Exclusive = Exclusive.UNSET


NOT_SAID: Final = Affinity(True, None)


class _List(NamedTuple):
    """What one resource has to offer, and whether that is nothing."""

    resource: str
    hints: tuple[Hint, ...]
    impossible: bool = False


class _Partial(NamedTuple):
    """Some hints combined: all that the rest depends on. `same` is the one affinity of all that have any, -1 for several."""

    zones: int
    preferred: bool
    same: int | None
    widest: int
    impossible: bool


class _Best(NamedTuple):
    zones: int
    preferred: bool
    score: int
    unsatisfied: bool


def merge(policy: NUMAPolicy, zones: Zones, providers: Iterable[Hints]) -> Affinity:
    """The affinity of the best combination, and whether the policy admits it."""
    if policy is NUMAPolicy.NONE:
        return NOT_SAID
    lists = [one for hints in providers for one in _lists(hints)]
    best_effort = policy is NUMAPolicy.BEST_EFFORT
    single = policy is NUMAPolicy.SINGLE_NUMA_NODE
    lacking = tuple(sorted({f"Unsatisfied NUMA {one.resource}" for one in lists if one.impossible}))
    if lacking and not best_effort:
        return Affinity(False, None if single else zones.all, unsatisfied=lacking)
    best = _best(zones, [_narrowed(one) for one in lists] if single else lists)
    if best_effort:
        if best.unsatisfied:
            return Affinity(True, zones.all)
        return Affinity(True, best.zones, best.preferred, best.score)
    reason = "" if best.preferred else _summary(lists, "," if single else " & ")
    if single and best.zones == zones.all:  # nothing is gained by saying so
        return Affinity(best.preferred, None, best.preferred, reason=reason)
    return Affinity(best.preferred, best.zones, best.preferred, best.score, reason=reason)


def zone_sets(zones: Sequence[int]) -> list[int]:
    """All sets of some zones but the empty one, smaller ones first, then by number. At most of `MOST_ZONES`."""
    masks = [0]
    for zone in zones[:MOST_ZONES]:
        masks += [mask | 1 << zone for mask in masks]
    return sorted(masks[1:], key=lambda mask: (mask.bit_count(), mask))


def zones_of(mask: int) -> list[int]:
    """The zones of a mask, by number."""
    return [zone for zone in range(mask.bit_length()) if mask >> zone & 1]


def mask_of(zones: Iterable[int]) -> int:
    """The mask of some zones."""
    mask = 0
    for zone in zones:
        mask |= 1 << zone
    return mask


def _lists(hints: Hints) -> list[_List]:
    if not hints:
        return [_List("", (ANYWHERE,))]
    found = []
    for resource, offered in hints.items():
        if offered is None:
            found.append(_List(resource, (ANYWHERE,)))
        elif offered:
            found.append(_List(resource, tuple(offered)))
        else:
            found.append(_List(resource, (Hint(None, False),), impossible=True))
    return found


def _narrowed(one: _List) -> _List:
    """The hints of single zones, or of any, that are preferred."""
    kept = (
        hint for hint in one.hints if hint.preferred and (hint.zones is None or hint.zones.bit_count() == 1)
    )
    return _List(one.resource, tuple(kept), one.impossible)


def _best(zones: Zones, lists: Sequence[_List]) -> _Best:
    """The best combination of one hint of each list.

    Lists are joined one after the other, and of combinations that are alike in all that counts later the one with the best score
    is kept: there are as many as sets of zones, not as ways to combine hints.
    """
    partials = {_Partial(zones.all, True, None, 0, False): 0}
    for one in lists:
        joined: dict[_Partial, int] = {}
        for partial, score in partials.items():
            for hint in one.hints:
                more, total = _join(partial, score, hint, impossible=one.impossible)
                if more.zones and joined.get(more, -1) < total:
                    joined[more] = total
        partials = joined
    best = _Best(zones.all, False, 0, False)
    for partial, score in partials.items():
        found = _finished(zones, partial, score)
        if _order(found) < _order(best):
            best = found
    return best


def _join(partial: _Partial, score: int, hint: Hint, *, impossible: bool) -> tuple[_Partial, int]:
    preferred, lacking = partial.preferred and hint.preferred, partial.impossible or impossible
    if hint.zones is None:
        return partial._replace(preferred=preferred, impossible=lacking), score
    merged = partial.zones & hint.zones
    same = hint.zones if partial.same in (None, hint.zones) else -1
    if merged != partial.zones:
        score = 0  # the affinities so far are wider than what is left
    if merged == hint.zones:
        score += hint.score
    return _Partial(merged, preferred, same, max(partial.widest, hint.zones.bit_count()), lacking), score


def _finished(zones: Zones, partial: _Partial, score: int) -> _Best:
    preferred = partial.preferred and partial.same != -1 and _keeps_apart(zones, partial.zones)
    unsatisfied = partial.impossible or (
        partial.same is not None and partial.widest != partial.zones.bit_count()
    )
    return _Best(partial.zones, preferred, score, unsatisfied)


def _order(best: _Best) -> tuple[bool, int, int, int]:
    return not best.preferred, best.zones.bit_count(), -best.score, best.zones


def _keeps_apart(zones: Zones, merged: int) -> bool:
    """Whether pods within one zone and those across several stay apart."""
    if zones.exclusive is not Exclusive.REQUIRED:
        return True
    unwanted = ZoneUse.SINGLE if merged.bit_count() > 1 else ZoneUse.SHARED
    return all(zones.uses.get(zone) is not unwanted for zone in zones_of(merged))


def _summary(lists: Sequence[_List], joint: str) -> str:
    parts = []
    for one in sorted(lists, key=lambda item: item.resource):
        if not one.resource:
            continue
        preferred = ", ".join(_shown(hint) for hint in one.hints if hint.preferred)
        among = ", ".join(_shown(hint) for hint in one.hints) if not one.impossible else ""
        parts.append(f"{one.resource} prefer [{preferred}] among [{among}]")
    return f"Unaligned NUMA Hint cause {joint.join(parts)}"


def _shown(hint: Hint) -> str:
    return "any" if hint.zones is None else "+".join(map(str, zones_of(hint.zones)))
