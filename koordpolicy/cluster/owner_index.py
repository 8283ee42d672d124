"""Which reservations a pod can own at all, found by what their owner terms compare for equality.

A term is filed under one thing that it asks for: a UID, a name, a controller, or a label with each of the values that it may have.
What asks for nothing of that kind is found for every pod. Whether a pod does own one, `algorithms/reservation_match.owns` says.
"""

from collections.abc import Iterator

from koordpolicy.model.labels import Operator
from koordpolicy.model.pod import Pod
from koordpolicy.model.reservation import OwnerTerm, Reservation

_Key = tuple[str, ...]
_ANY: _Key = ("any",)


class OwnerIndex:
    """Reservations by what they ask of their owners, in the order in which they came."""

    __slots__ = ("_by_key", "_count", "_keys", "_numbers")

    def __init__(self) -> None:
        self._by_key: dict[_Key, dict[str, None]] = {}
        self._keys: dict[str, frozenset[_Key]] = {}
        self._numbers: dict[str, int] = {}
        self._count = 0

    def add(self, reservation: Reservation) -> None:
        """File one that was not there."""
        uid = reservation.uid
        keys = self._keys[uid] = frozenset(key for term in reservation.owners for key in _keys_of(term))
        self._count += 1
        self._numbers[uid] = self._count
        for key in keys:
            self._by_key.setdefault(key, {})[uid] = None

    def remove(self, uid: str) -> None:
        """Take one out, if it is there."""
        self._numbers.pop(uid, None)
        for key in self._keys.pop(uid, ()):
            there = self._by_key[key]
            del there[uid]
            if not there:
                del self._by_key[key]

    def find(self, pod: Pod) -> list[str]:
        """UIDs of those that the pod may own."""
        by_key = self._by_key
        found = {uid for key in _asked_by(pod) if key in by_key for uid in by_key[key]}
        return sorted(found, key=self._numbers.__getitem__)


def _keys_of(term: OwnerTerm) -> Iterator[_Key]:
    """Where a term is filed: under one condition that any owner meets, the rarest first."""
    named, controlled = term.object, term.controller
    if named is not None and named.uid:
        yield "uid", named.uid
    elif named is not None and named.name:
        yield "name", named.name
    elif controlled is not None and controlled.uid:
        yield "controller uid", controlled.uid
    elif controlled is not None and controlled.name:
        yield "controller", controlled.name
    else:
        requirements = () if term.selector is None else term.selector.requirements
        equal = [one for one in requirements if one.operator is Operator.IN]
        if equal:
            fewest = min(equal, key=lambda one: (len(one.values), one.key))
            for value in fewest.values:
                yield "label", fewest.key, value
        else:
            yield _ANY


def _asked_by(pod: Pod) -> Iterator[_Key]:
    yield _ANY
    yield "uid", pod.uid
    yield "name", pod.name
    for owner in pod.owners:
        yield "controller uid", owner.uid
        yield "controller", owner.name
    for name, value in pod.labels.items():
        yield "label", name, value
