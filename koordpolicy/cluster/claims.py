"""What pods have of their nodes, as claims of one sort: taken once, given back once, not counted while a pod has left in a trial.

Whoever keeps a ledger says in hooks how a claim counts on its node. A pod that takes from a reservation takes out of the claim of
the pod that keeps it, its *lender*: that one counts with what it has not lent, so that nothing is held twice, and with all of it
again when the others are gone.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Final, Generic, Protocol, TypeVar

from koordpolicy.cluster.undo_log import UndoLog
from koordpolicy.model.pod import PodKey


class Claim(Protocol):
    """What a pod has of a node. `uid` is the pod's own, `lender` that of the pod out of whose claim it is; empty for none."""

    @property
    def pod(self) -> PodKey: ...
    @property
    def node(self) -> str: ...
    @property
    def uid(self) -> str: ...
    @property
    def lender(self) -> str: ...


C = TypeVar("C", bound=Claim)


class ClaimLedger(Generic[C]):
    """The claims of one sort. `hold` and `release` make one count and count no more; `less` is what is left of one that lent to others."""

    __slots__ = ("_claims", "_counting", "_hold", "_lent", "_less", "_release", "_undo")

    def __init__(
        self,
        undo: UndoLog,
        hold: Callable[[C], None],
        release: Callable[[C], None],
        less: Callable[[C, Sequence[C]], C],
    ) -> None:
        self._undo: Final = undo
        self._hold, self._release, self._less = hold, release, less
        self._claims: dict[PodKey, C] = {}
        self._counting: dict[str, dict[PodKey, C]] = {}
        """By node, as they count now."""
        self._lent: Counter[str] = Counter()
        """How many count that are out of another one, by its UID."""

    def again(
        self,
        hold: Callable[[C], None],
        release: Callable[[C], None],
    ) -> "ClaimLedger[C]":
        """The same claims, which count somewhere else from now on."""
        found = ClaimLedger(self._undo, hold, release, self._less)
        found._claims, found._counting, found._lent = self._claims, self._counting, self._lent
        return found

    @property
    def held(self) -> Mapping[PodKey, C]:
        """What pods have, with what they have lent. Not to be written; it stays the same mapping."""
        return self._claims

    def of(self, pod: PodKey) -> C | None:
        """What a pod has, with what it has lent."""
        return self._claims.get(pod)

    def on(self, node: str) -> Mapping[PodKey, C]:
        """The claims that count on a node, each without what it has lent. Not to be written."""
        return self._counting.get(node, {})

    def kept_by(self, node: str, uid: str) -> C | None:
        """What the pod of a UID has on a node and has not lent; None where it has nothing there."""
        if not uid:
            return None
        return next((one for one in self.on(node).values() if one.uid == uid), None)

    def take(self, claim: C) -> None:
        """A pod has so much from now on. What it had before is given back."""
        before = self._claims.get(claim.pod)
        if before is not None:
            self.give(before)
        self._claims[claim.pod] = claim
        self._begin(claim)

    def give(self, claim: C) -> bool:
        """A pod has nothing any more; whether it had that."""
        if self._claims.get(claim.pod) is not claim:
            return False
        del self._claims[claim.pod]
        self._end(claim)
        return True

    def came(self, pod: PodKey) -> None:
        """A pod is on its node, again perhaps."""
        claim = self._claims.get(pod)
        if claim is not None and self._begin(claim) and self._undo.depth:
            self._undo.note(lambda: self.left(pod))

    def left(self, pod: PodKey) -> None:
        """A pod is not on its node, as far as is tried."""
        claim = self._claims.get(pod)
        if claim is not None and self._end(claim) and self._undo.depth:
            self._undo.note(lambda: self.came(pod))

    def _begin(self, claim: C) -> bool:
        """Have a claim count; whether it did not before."""
        there = self._counting.get(claim.node)
        if there is None:
            there = self._counting[claim.node] = {}
        elif claim.pod in there:
            return False
        counts = there[claim.pod] = self._left_of(claim)
        self._hold(counts)
        if claim.lender:
            self._lent[claim.lender] += 1
            self._count_anew(claim)
        return True

    def _end(self, claim: C) -> bool:
        """Have a claim count no more; whether it did."""
        there = self._counting.get(claim.node, {})
        counted = there.pop(claim.pod, None)
        if counted is None:
            return False
        if not there:
            del self._counting[claim.node]
        self._release(counted)
        if claim.lender:
            self._lent[claim.lender] -= 1
            if not self._lent[claim.lender]:
                del self._lent[claim.lender]
            self._count_anew(claim)
        return True

    def _count_anew(self, claim: C) -> None:
        """Have the one out of which a claim is count with what it has now."""
        counted = self.kept_by(claim.node, claim.lender)
        whole = None if counted is None else self._claims.get(counted.pod)
        if counted is None or whole is None:
            return
        self._release(counted)
        left = self._counting[claim.node][counted.pod] = self._left_of(whole)
        self._hold(left)

    def _left_of(self, claim: C) -> C:
        if not claim.uid or claim.uid not in self._lent:
            return claim
        others = [one for one in self.on(claim.node).values() if one.lender == claim.uid]
        return self._less(claim, others) if others else claim
