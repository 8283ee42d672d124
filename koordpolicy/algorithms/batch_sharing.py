"""A node's batch resources, shared with a scheduler outside Kubernetes: what it is offered, and what is kept from pods for it.

Both schedulers give out what they believe is free, and neither asks the other. So that nothing is given twice, what the other
is to have is claimed first; once pods can be seen to have lost it, it is offered; and a claim falls only after the offer was
seen to have fallen. While the total stays, pods' requests and the offer then never add up to more than there is,
whatever the order in which all of them act.
"""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BatchAmounts:
    """CPU in millicores and memory in bytes."""

    cpu: int = 0
    memory: int = 0

    def _with(self, other: "BatchAmounts", act: Callable[[int, int], int]) -> "BatchAmounts":
        return BatchAmounts(act(self.cpu, other.cpu), act(self.memory, other.memory))

    def plus(self, other: "BatchAmounts") -> "BatchAmounts":
        return self._with(other, int.__add__)

    def less(self, other: "BatchAmounts") -> "BatchAmounts":
        """At least nothing."""
        return self._with(other, lambda mine, theirs: max(mine - theirs, 0))

    def least(self, other: "BatchAmounts") -> "BatchAmounts":
        """The smaller of each."""
        return self._with(other, min)

    def most(self, other: "BatchAmounts") -> "BatchAmounts":
        """The larger of each."""
        return self._with(other, max)

    def within(self, other: "BatchAmounts") -> bool:
        """Whether neither is more than the other's."""
        return self.cpu <= other.cpu and self.memory <= other.memory

    def differs(self, other: "BatchAmounts", whole: "BatchAmounts", share: float) -> bool:
        """Whether either differs by more than that share of the whole, or is nothing of late."""
        return any(
            abs(mine - theirs) > of * share or (not mine and bool(theirs))
            for mine, theirs, of in (
                (self.cpu, other.cpu, whole.cpu),
                (self.memory, other.memory, whole.memory),
            )
        )


@dataclass(frozen=True, slots=True)
class Units:
    """What the other scheduler counts in: millicores of one of its cores, bytes of its unit of memory."""

    cpu: int
    memory: int

    def whole(self, amounts: BatchAmounts) -> BatchAmounts:
        """As much of the amounts as whole units make."""
        return BatchAmounts(amounts.cpu // self.cpu * self.cpu, amounts.memory // self.memory * self.memory)


@dataclass(frozen=True, slots=True)
class Sharing:
    """How a node's batch resources are shared now.

    `total` before any deduction, `requested` by pods, `others` held by further schedulers, `allocatable` what pods may request by
    the node's status. `claim` is what is said to be kept from pods, `offered` and `used` what the other scheduler tells.
    `unsure` is what it may have been offered by requests that nobody answered; another one settles that.
    """

    total: BatchAmounts
    requested: BatchAmounts
    others: BatchAmounts
    allocatable: BatchAmounts
    claim: BatchAmounts
    offered: BatchAmounts
    used: BatchAmounts
    unsure: BatchAmounts = BatchAmounts()

    @property
    def free(self) -> BatchAmounts:
        """The most that may be offered."""
        return self.total.less(self.others).less(self.requested)

    @property
    def deducted(self) -> BatchAmounts:
        """What pods have lost for the other scheduler, by what the node shows: no more than what is claimed."""
        return self.total.less(self.others).less(self.allocatable).least(self.claim)


@dataclass(frozen=True, slots=True)
class SharingStep:
    """What is to be done next: another claim, another offer; None where it stays. The claim is written before a larger offer."""

    claim: BatchAmounts | None = None
    offer: BatchAmounts | None = None


def next_step(
    now: Sharing, wanted: BatchAmounts, units: Units, share: float, *, claim_offers: bool
) -> SharingStep:
    """One step towards the wanted offer. `share` of the total is the least change that is worth one.

    With `claim_offers` all that is offered is claimed first. Without, what is used is, and both schedulers may take the same.
    """
    target = units.whole(wanted.least(now.free))
    offer = target
    if claim_offers:
        # What containers have already is not taken from them because the claim is late.
        offer = target.least(units.whole(now.deducted).most(now.used))
    limit = now.free if not claim_offers else now.free.least(now.deducted.most(now.used))
    moves = not now.offered.within(limit) or offer.differs(now.offered, now.total, share)
    after = offer if moves else now.offered
    settled = now.unsure == BatchAmounts()

    needed = now.used.most(now.unsure)
    if claim_offers:
        needed = needed.most(now.offered).most(after)
    wished = needed.most(target) if claim_offers else needed
    claims = not needed.within(now.claim) or wished.differs(now.claim, now.total, share)
    return SharingStep(
        wished if claims and wished != now.claim else None,
        after if not settled or after != now.offered else None,
    )
