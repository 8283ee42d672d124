"""Which profiles are in one another's way where API servers apply some of them before the webhook is asked.

Of profiles that ask for labels, only those are compared that may ask for the same ones.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from typing import Final

from koordpolicy.graph.native import NotNative
from koordpolicy.manager.native.footprints import (
    ANNOTATIONS,
    BAND,
    LABELS,
    RESOURCES,
    Footprint,
    common_places,
    place_text,
)
from koordpolicy.model.protocol import EXTENDED_RESOURCE_SPEC

_MOST_COMPARED: Final = 100_000
"""Pairs of profiles that are compared: a second of work."""
_SHARED: Final = frozenset({RESOURCES, (ANNOTATIONS, EXTENDED_RESOURCE_SPEC)})
"""What profiles change in the same way where both do: names of resources by the band."""
_Label = tuple[str, str]


class Neighbours:
    """Footprints of all `profiles` of policies, by name, with `others` beside them."""

    def __init__(self, profiles: Iterable[Footprint], others: Sequence[Footprint]) -> None:
        self._profiles = {one.name: one for one in profiles}
        self._compared = 0
        every = [*self._profiles.values(), *others]
        self._label = _most_asked_for(every)
        self._by_value: dict[str, list[Footprint]] = defaultdict(list)
        self._anywhere: list[Footprint] = []
        for one in every:
            values = _values(one, self._label)
            for value in values or ():
                self._by_value[value].append(one)
            if values is None:
                self._anywhere.append(one)
        self._every = every

    def check(self, name: str, native: Collection[str]) -> None:
        """Raises NotNative where another profile is in the way of one; `native` are those which API servers apply already."""
        own = self._profiles[name]
        for other in self._near(own):
            self._compared += 1
            if self._compared > _MOST_COMPARED:
                raise NotNative("there are too many profiles to compare it with")
            if other.name != name and own.may_meet(other):
                _check_pair(own, other, native=other.name in native)

    def _near(self, own: Footprint) -> Iterable[Footprint]:
        values = _values(own, self._label)
        if values is None:
            return self._every
        found = {id(one): one for value in values for one in self._by_value[value]}
        return [*found.values(), *self._anywhere]


def _check_pair(own: Footprint, other: Footprint, *, native: bool) -> None:
    if spoiled := common_places(own.writes, other.reads):
        raise NotNative(
            f"`{other.name}` reads {place_text(spoiled[0])} of pods as they are submitted, which it changes before"
        )
    if own.translates and other.translates is not True:
        raise NotNative(f"its pods' resources keep their names where `{other.name}` applies")
    if own.translates and (band := common_places(other.writes - {RESOURCES}, BAND - {RESOURCES})):
        raise NotNative(
            f"its pods' resources are named by their band, for which `{other.name}` changes {place_text(band[0])}"
        )
    if own.selects_by & own.writes and other.writes:
        raise NotNative(
            f"`{other.name}` may be about its pods, too, and the webhook would not know them once they are changed"
        )
    if native and (both := common_places(own.writes - _SHARED, other.writes - _SHARED)):
        raise NotNative(
            f"`{other.name}` changes {place_text(both[0])} as well, and an API server keeps to no order of policies"
        )


def _most_asked_for(every: Sequence[Footprint]) -> _Label:
    """The label, by root and key, that most profiles ask for by value, and none changes."""
    changed = {key for one in every for part, key in one.writes if part in (LABELS, "*")}
    counts: Counter[_Label] = Counter()
    for one in every:
        asked = [
            {(line.root, line.key) for line in lines if line.operator == "In"} for lines in one.alternatives
        ]
        counts.update(set.intersection(*asked) if asked else ())
    for (root, key), _ in counts.most_common():
        if root != "pod" or not {key, "*"} & changed:
            return root, key
    return "", ""


def _values(one: Footprint, label: _Label) -> frozenset[str] | None:
    """The values of the label of which a profile's pods have one; None where it may be any."""
    found: set[str] = set()
    for lines in one.alternatives:
        said = [line.values for line in lines if (line.root, line.key) == label and line.operator == "In"]
        if not said:
            return None
        found.update(said[0])
    return frozenset(found)
