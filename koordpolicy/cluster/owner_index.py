"""Which reservations a pod owns, found by what their owner terms compare for equality.

A term is filed under one thing that it asks for: a UID, a name, a controller, a label with each of the values that it may have, or
a label as such. What asks for nothing of that kind is asked for every pod. Equal terms are asked once, however many have them.
"""

from collections.abc import Iterator

from koordpolicy.algorithms.reservation_match import owns
from koordpolicy.model.labels import Operator
from koordpolicy.model.pod import Pod
from koordpolicy.model.reservation import OwnerTerm, Reservation

_Key = tuple[str, ...]
_ANY: _Key = ("any",)


class OwnerIndex:
    """Reservations by what they ask of their owners, in the order in which they came."""

    __slots__ = ("_by_key", "_count", "_filed", "_found", "_numbers")

    def __init__(self) -> None:
        self._by_key: dict[_Key, dict[OwnerTerm, dict[str, None]]] = {}
        self._filed: dict[str, frozenset[tuple[_Key, OwnerTerm]]] = {}
        self._numbers: dict[str, int] = {}
        self._count = 0
        self._found: tuple[Pod, list[str]] | None = None

    def add(self, reservation: Reservation) -> None:
        """File one that was not there."""
        uid = reservation.uid
        filed = self._filed[uid] = frozenset(
            (key, term) for term in reservation.owners for key in _keys_of(term)
        )
        self._count += 1
        self._numbers[uid] = self._count
        self._found = None
        for key, term in filed:
            self._by_key.setdefault(key, {}).setdefault(term, {})[uid] = None

    def remove(self, uid: str) -> None:
        """Take one out, if it is there."""
        self._numbers.pop(uid, None)
        self._found = None
        for key, term in self._filed.pop(uid, ()):
            there = self._by_key[key]
            del there[term][uid]
            if not there[term]:
                del there[term]
            if not there:
                del self._by_key[key]

    def find(self, pod: Pod) -> list[str]:
        """UIDs of those that the pod owns. A pod is asked about several times in a row: it is looked for once."""
        if self._found is not None and self._found[0] is pod:
            return self._found[1]
        by_key, found = self._by_key, set[str]()
        for key in _asked_by(pod):
            for term, uids in by_key.get(key, {}).items():
                if not found.issuperset(uids) and owns(pod, (term,)):
                    found.update(uids)
        told = sorted(found, key=self._numbers.__getitem__)
        self._found = pod, told
        return told


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
            there = next((one.key for one in requirements if one.operator is Operator.EXISTS), None)
            yield _ANY if there is None else ("any label", there)


def _asked_by(pod: Pod) -> Iterator[_Key]:
    yield _ANY
    yield "uid", pod.uid
    yield "name", pod.name
    for owner in pod.owners:
        yield "controller uid", owner.uid
        yield "controller", owner.name
    for name, value in pod.labels.items():
        yield "label", name, value
        yield "any label", name
