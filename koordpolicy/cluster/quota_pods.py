"""The pods of quotas as they are counted, and a quota with its pods."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from koordpolicy.algorithms.quota_sums import QuotaAccount, QuotaSums
from koordpolicy.cluster.pods import PodView
from koordpolicy.cluster.quota_policy import KeptQuota
from koordpolicy.model.amounts import add_to
from koordpolicy.model.pod import PodKey
from koordpolicy.model.reading import NOTHING, Amounts


@dataclass(slots=True)
class QuotaPod:
    """A pod and the quota that it belongs to, empty for none; `asked` is the one that it asks for, which may not be there.

    `request` is what it counts for, `reserved` that it may not be preempted, `counted` that it counts at all, `placed` that it is on a node.
    """

    view: PodView
    asked: str
    quota: str = ""
    request: Amounts = field(default_factory=lambda: NOTHING)
    reserved: bool = False
    counted: bool = False
    placed: bool = False
    home: "HeldQuota | None" = field(default=None, compare=False, repr=False)
    """That quota as it is kept: among many, finding it takes its time."""


@dataclass(slots=True)
class HeldQuota:
    """A quota with its sums and its pods; what those on nodes have together that may be preempted, by priority, from when
    somebody wants to know on.

    `shares` says whether its limit is its runtime in a tree, and the only one that holds for most pods; `tracked` are its
    resources, the same set for all that have these.
    """

    kept: KeptQuota
    tree: str
    sums: QuotaSums
    account: QuotaAccount
    shares: bool
    tracked: frozenset[str]
    members: dict[PodKey, QuotaPod] = field(default_factory=dict)
    preemptible: dict[int, dict[str, int]] | None = None

    def by_priority(self) -> Mapping[int, Amounts]:
        """What its pods have that may have to go."""
        if self.preemptible is None:
            self.preemptible = {}
            for member in self.members.values():
                if member.placed and not member.reserved:
                    self.change(member, 1)
        return self.preemptible

    def change(self, member: QuotaPod, sign: int) -> None:
        """Count what a pod has that may have to go, or not any more, where that is kept."""
        if self.preemptible is None or member.reserved:
            return
        total = self.preemptible.setdefault(member.view.priority, {})
        add_to(total, {key: sign * number for key, number in member.request.items()})
        if sign < 0 and not any(total.values()):
            del self.preemptible[member.view.priority]
