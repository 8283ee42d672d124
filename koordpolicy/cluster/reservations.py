"""The Reservations of a cluster: who has taken from them, who may, and what is left for them to count on their nodes.

A reserve pod counts on its node with what its owners there have not taken, so that nothing is counted twice whoever looks.
Which pod has taken from which is what its annotation says, and of pods on their way what was claimed for them: after a restart
the annotations alone say the same.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from koordpolicy.algorithms.reservation_capacity import governed, remained, sum_masked
from koordpolicy.algorithms.reservation_match import Match, MatchRules, match, owns
from koordpolicy.cluster.operating_pods import operating_reservation
from koordpolicy.cluster.owner_index import OwnerIndex
from koordpolicy.cluster.pods import PodView, own_millicores, with_amounts
from koordpolicy.cluster.reservation_policy import ATTEMPTS, ReservationPolicy
from koordpolicy.model.facts import Record
from koordpolicy.model.pod import Pod, PodKey
from koordpolicy.model.pod_reservations import NO_RESERVATIONS, operates_as_reservation
from koordpolicy.model.protocol import CPU
from koordpolicy.model.reading import NO_TEXT, Amounts, ObjectError
from koordpolicy.model.reservation import Reservation


@dataclass(frozen=True, slots=True)
class OwnerPods:
    """The pods that have taken from a reservation, and what of its resources they have together."""

    views: Sequence[PodView]
    allocated: Amounts


class Reservations:
    """Kept from events. `pods_on`, `changes_on`, `labels_of` and `facts_of` give the pods, labels and facts of a node as they are now, in a trial too,
    `node_names` all nodes.
    """

    def __init__(self) -> None:
        self.policy: ReservationPolicy | None = None
        self._said: dict[str, Reservation] = {}
        """As their objects say, whatever policy says."""
        self._all: dict[str, Reservation] = {}
        self._index = OwnerIndex()
        self._operating: dict[PodKey, str] = {}
        """The UIDs of pods that operate as reservations."""
        self._policies: dict[bool, dict[str, int]] = {True: {}, False: {}}
        """By whether they give out what they keep by the default policy: how many there are, by node."""
        self._by_node: dict[str, dict[str, Reservation]] = {}
        self._takers: dict[PodKey, str] = {}
        self._takes = 0
        self._grouped: tuple[tuple[object, ...], dict[str, list[PodView]]] = ((), {})
        self.version = 0
        """Another one after every change of an object."""
        self.pods_on: Callable[[str], Mapping[PodKey, PodView]] = lambda node: {}
        self.changes_on: Callable[[str], int] = lambda node: -1
        self.labels_of: Callable[[str], Mapping[str, str]] = lambda node: NO_TEXT
        self.facts_of: Callable[[str], Record] = lambda node: {}
        self.node_names: Callable[[], Sequence[str]] = lambda: ()
        self.giving: tuple[str, frozenset[str]] = "", frozenset()
        """For which reserve pod, by its UID, pods of which nodes gave their room when it was asked last."""
        self._pre_allocating = 0

    def begin(self, policy: ReservationPolicy) -> None:
        """Keep them as a revision says."""
        self.policy = policy
        for one in [*self._said.values()]:
            self.remove(one.uid)
            self.set(one)

    def pod(self, reservation: Reservation) -> Pod:
        """The pod in whose shape one is scheduled."""
        if self.policy is None:
            return reservation.pod
        return self.policy.pod(reservation)

    @property
    def attempts(self) -> int:
        """How often the status of one is made anew after somebody else has written it."""
        return ATTEMPTS if self.policy is None else self.policy.attempts

    def kept(self, reservation: Reservation) -> Reservation:
        """One as policy has it."""
        return reservation if self.policy is None else self.policy.kept(reservation)

    # --- objects ----------------------------------------------------------------------------------

    @property
    def available(self) -> bool:
        """Whether any keeps room on a node."""
        return bool(self._by_node)

    @property
    def make_way(self) -> bool:
        """Whether any pod may find others that make way for it."""
        return bool(self._by_node) or self._pre_allocating > 0

    @property
    def said(self) -> Sequence[Reservation]:
        """All there are, as their objects say, whatever policy says."""
        return [*self._said.values()]

    @property
    def all(self) -> Sequence[Reservation]:
        """All there are."""
        return [*self._all.values()]

    def get(self, uid: str) -> Reservation | None:
        """The one of this UID."""
        return self._all.get(uid)

    def on(self, node: str) -> Sequence[Reservation]:
        """Those that keep room on a node."""
        return [*self._by_node.get(node, {}).values()]

    def set(self, reservation: Reservation) -> bool:
        """One is new or has changed; whether anything is another now."""
        uid = reservation.uid
        if self._said.get(uid) == reservation:
            return False
        self.remove(uid)
        self._said[uid] = reservation
        kept = self._all[uid] = self.kept(reservation)
        self._pre_allocating += kept.pre_allocation.enabled
        if kept.available:
            self._by_node.setdefault(kept.node_name, {})[uid] = kept
            self._index.add(kept)
            self._count(kept, 1)
        return True

    def remove(self, uid: str) -> bool:
        """One is gone; whether there was one."""
        self.version += 1
        self._said.pop(uid, None)
        before = self._all.pop(uid, None)
        if before is None:
            return False
        self._pre_allocating -= before.pre_allocation.enabled
        there = self._by_node.get(before.node_name)
        if there is not None and there.pop(uid, None) is not None:
            self._index.remove(uid)
            self._count(before, -1)
            if not there:
                del self._by_node[before.node_name]
        return True

    def operate(self, pod: Pod) -> bool:
        """A pod on its node is new or has changed, of those that operate as reservations; whether anything is another now."""
        found = operating_reservation(pod)
        if found is not None:
            self._operating[pod.key] = pod.uid
            return self.set(found)
        return self.operates_no_more(pod.key)

    def operates_no_more(self, key: PodKey) -> bool:
        """A pod operates as a reservation no more, if it did; whether it did."""
        uid = self._operating.pop(key, None)
        return uid is not None and self.remove(uid)

    def _count(self, reservation: Reservation, number: int) -> None:
        counts, node = self._policies[gives_by_default(reservation)], reservation.node_name
        counts[node] = counts.get(node, 0) + number
        if not counts[node]:
            del counts[node]

    def nodes_with(self, *, default: bool) -> Iterable[str]:
        """The nodes on which any keeps room by the default policy, or by another."""
        return self._policies[default]

    # --- who has taken ----------------------------------------------------------------------------

    def take(self, pod: PodKey, uid: str) -> None:
        """A pod takes from a reservation from now on."""
        self._takers[pod] = uid
        self._takes += 1

    def give_back(self, pod: PodKey) -> None:
        """It does not any more."""
        self._takers.pop(pod, None)
        self._takes += 1

    def taken_by(self, view: PodView) -> str:
        """The UID of the reservation that a pod has taken from; empty for none, and where that cannot be read."""
        found = self._takers.get(view.pod.key)
        if found is not None:
            return found
        try:
            found = view.reservations.allocated
        except ObjectError:
            return ""
        known = self._all.get(found) if found else None
        return "" if known is not None and not may_have(view.pod, known) else found

    def refuses(self, view: PodView) -> Reservation | None:
        """The reservation that a pod's annotation names though it cannot have taken from it; None for none. Raises ObjectError."""
        known = self._all.get(view.reservations.allocated)
        return known if known is not None and not may_have(view.pod, known) else None

    def lender(self, view: PodView) -> Reservation | None:
        """The reservation that a pod has taken from, and out of whose CPUs and devices it takes its own."""
        found = self.taken_by(view)
        return self._all.get(found) if found else None

    def owners(self, reservation: Reservation) -> OwnerPods:
        """Who has taken from a reservation."""
        names = governed(reservation.allocatable, reservation.allocate_policy, reservation.restricted or None)
        views = self._takers_on(reservation.node_name).get(reservation.uid, ())
        return OwnerPods(views, sum_masked([view.occupied for view in views], names))

    def _takers_on(self, node: str) -> Mapping[str, Sequence[PodView]]:
        """The pods on a node by the UID of what they have taken from; found once after each change."""
        now = (node, self.changes_on(node), self.version, self._takes)
        if self._grouped[0] != now:
            found: dict[str, list[PodView]] = {}
            for view in self.pods_on(node).values():
                uid = self.taken_by(view)
                if uid:
                    found.setdefault(uid, []).append(view)
            self._grouped = now, found
        return self._grouped[1]

    def left(self, reservation: Reservation) -> Amounts:
        """What of a reservation nobody has taken."""
        return remained(reservation.allocatable, self.owners(reservation).allocated)

    def holds(self, reservation: Reservation) -> bool:
        """Whether its reserve pod counts on its node: not where it is left out for a pod that may take from it."""
        return reservation.pod.key in self.pods_on(reservation.node_name)

    def shares(self, node: str, pods: Mapping[PodKey, PodView]) -> Mapping[PodKey, PodView]:
        """The reserve pods among those on a node that are to count otherwise now, as they are to count."""
        found = {}
        for one in self._by_node.get(node, {}).values():
            view = pods.get(one.pod.key)
            if view is not None and view.pod.uid == one.uid:
                left, owned = self.left(one), self._owned(one)
                if view.occupied != left or view.owned_cpu != owned:
                    found[one.pod.key] = with_amounts(view, left, owned)
        return found

    def _owned(self, reservation: Reservation) -> int:
        """Millicores of CPUs of its own that it has and its owners have not."""
        own = own_millicores(reservation.pod)
        if reservation.of_pod:  # anybody may have written that
            own = min(own, reservation.allocatable.get(CPU, 0))
        return max(0, own - sum(one.owned_cpu for one in self.owners(reservation).views)) if own else 0

    # --- who may take -----------------------------------------------------------------------------

    def matching(
        self, view: PodView, request: Amounts, *, checks_taints: bool
    ) -> dict[str, list[Reservation]]:
        """By node, the reservations that a pod may take from. Raises ObjectError for what a pod says that cannot be read."""
        found: dict[str, list[Reservation]] = {}
        for one, said in self.matches(view, request, checks_taints=checks_taints):
            if said.matched:
                found.setdefault(one.node_name, []).append(one)
        return found

    def matches(
        self, view: PodView, request: Amounts, *, checks_taints: bool
    ) -> list[tuple[Reservation, Match]]:
        """What the checks say of a pod and each reservation that keeps room and may be its own. Raises ObjectError."""
        wants, found = view.reservations, []
        owned = frozenset() if wants.ignores else frozenset(self._index.find(view.pod))
        for one in self._candidates(view):
            labels = self.labels_of(one.node_name) if wants.affinity is not None else NO_TEXT
            rules = MatchRules(one.allocate_once, checks_taints, labels)
            said = match(view.pod, wants, request, one, 0, rules, one.uid in owned)
            if said.matched and one.allocate_once and self.owners(one).views:
                said = Match.NOT_MATCHABLE
            if said.matched and self.policy is not None and not self.policy.allows(view, one):
                said = Match.POLICY
            found.append((one, said))
        return found

    def concerns(self, view: PodView) -> bool:
        """Whether a change of any may mean something to a pod that waits."""
        try:
            return (
                keeps_room(view)
                or view.reservations is not NO_RESERVATIONS
                or bool(self._index.find(view.pod))
            )
        except ObjectError:
            return True

    def _candidates(self, view: PodView) -> Iterable[Reservation]:
        """Those that a pod can own, and the one that it has; all for one that owns none and takes from all."""
        if view.reservations.ignores:
            return [one for there in self._by_node.values() for one in there.values()]
        found = [self._all[uid] for uid in self._index.find(view.pod)]
        has = self._all.get(self.taken_by(view)) if view.pod.annotations else None
        return [*found, has] if has is not None and has.available and has not in found else found


def gives_by_default(reservation: Reservation) -> bool:
    """Whether it gives out what it keeps in the default way, which goes with no other on one node."""
    return reservation.allocate_policy == ""


def may_have(pod: Pod, reservation: Reservation) -> bool:
    """Whether a pod can have taken from a reservation: one that it owns or that counts it among its owners; and whose room was allocated
    beforehand, whoever that was. The annotation that says so, anybody may write who may change the pod.
    """
    return (
        owns(pod, reservation.owners)
        or reservation.pre_allocation.enabled
        or any(one.uid == pod.uid for one in reservation.current_owners)
    )


def keeps_room(view: PodView) -> bool:
    """Whether a pod keeps its room for others, or will: the shape of a reservation, or one that operates as such."""
    return is_reserve_pod(view) or operates_as_reservation(view.pod.labels)


def is_reserve_pod(view: PodView) -> bool:
    """Whether a pod is the shape of a reservation, which no node runs."""
    return bool(view.pod.reservation)
