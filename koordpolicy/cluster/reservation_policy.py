"""What policy says of Reservations to the scheduler: their reserve pods, who takes from which, and when they go."""

from dataclasses import dataclass, replace
from typing import Any, Final

from koordpolicy.algorithms.reservation_capacity import filling
from koordpolicy.cluster.pods import PodView
from koordpolicy.cluster.prepared import PreparedDecision, prepared
from koordpolicy.graph import RuleGraph
from koordpolicy.graph.slots import defaults_of
from koordpolicy.graph.sortable import SortKey, sort_key_of
from koordpolicy.language.cel.errors import CelError
from koordpolicy.language.cel.values import Duration
from koordpolicy.model.facts import Record
from koordpolicy.model.facts.reservation import reservation_facts
from koordpolicy.model.pod import Pod
from koordpolicy.model.reading import Amounts
from koordpolicy.model.reservation import KOORDINATORS, Reservation, ReservePodDefaults, reserve_pod

KIND: Final = "ReservationPolicy"

_FIELDS: Final = (
    "pods.priority", "pods.schedulerName", "pods.preemptionPolicy", "matching.once", "matching.allows", "choice.order",
    "preAllocation.order", "removal.enabled", "removal.after", "removal.orphans", "removal.clearsPods",
)  # fmt: skip
"""What depends on a Reservation."""
_DEFAULTS: Final = defaults_of(KIND)
"""What the kind says where no document does."""

ATTEMPTS: Final[int] = _DEFAULTS["status.attempts"]
"""How often a status is made anew where no policy says."""

_LAST: Final[SortKey] = ((1,),)
"""One of which policy says nothing comes after all others."""


@dataclass(frozen=True, slots=True)
class Removal:
    """What policy says of one that is over: whether it goes, after how many nanoseconds, at once where its node is gone, and
    whether what its pods say of it goes with it.
    """

    enabled: bool
    after: int
    orphans: bool
    clears_pods: bool


class ReservationPolicy:
    """The ReservationPolicy documents of one revision. `every` and `removal_every` are nanoseconds."""

    __slots__ = (
        "_decisions",
        "_emptiest",
        "_most_owners",
        "_other_weight",
        "_weights",
        "attempts",
        "cluster_label",
        "cluster_mode",
        "every",
        "preferred",
        "removal_every",
        "workers",
    )  # fmt: skip

    def __init__(self, graph: RuleGraph) -> None:
        self._decisions: Final = {field: prepared(graph, f"{KIND}.{field}") for field in _FIELDS}
        about = graph.about(KIND, "")

        def value(said: str) -> Any:
            """What a document says, or else the kind; that too where an expression fails, or gives nothing."""
            found = about.value_or(said, None)
            return _DEFAULTS[said] if found is None else found

        self._most_owners: Final[int] = value("matching.mostOwners")
        self._emptiest: Final = value("choice.strategy") == "LeastAllocated"
        self._weights: Final[Amounts] = value("choice.weights")
        self._other_weight: Final[int] = value("choice.otherWeight")
        self.preferred: Final[int] = value("choice.preferred")
        self.every: Final[int] = value("status.every").ns
        self.attempts: Final[int] = value("status.attempts")
        self.cluster_mode: Final = value("preAllocation.clusterMode") is True
        self.cluster_label: Final[str] = value("preAllocation.clusterLabel")
        self.workers: Final[int] = value("status.workers")
        self.removal_every: Final[int] = value("removal.every").ns

    # --- objects ----------------------------------------------------------------------------------

    def kept(self, reservation: Reservation) -> Reservation:
        """A Reservation as policy has it: for how many pods it is, and whether any may take from it."""
        once = self._says("matching.once", reservation, None)
        if once is not None and once != reservation.allocate_once:
            reservation = replace(reservation, allocate_once=once)
        if len(reservation.owners) > self._most_owners:
            why = f"spec.owners: {len(reservation.owners)} terms, policy allows {self._most_owners}"
            reservation = replace(reservation, unusable=why)
        return reservation

    def pod(self, reservation: Reservation) -> Pod:
        """The pod in whose shape it is scheduled."""
        if reservation.of_pod:
            return reservation.pod
        defaults = ReservePodDefaults(
            self._says("pods.priority", reservation, KOORDINATORS.priority),
            self._says("pods.schedulerName", reservation, KOORDINATORS.scheduler_name),
            self._says("pods.preemptionPolicy", reservation, KOORDINATORS.preemption_policy),
        )
        return reserve_pod(reservation, defaults)

    # --- pods -------------------------------------------------------------------------------------

    def allows(self, view: PodView, reservation: Reservation) -> bool:
        """Whether a pod may take from one that it meets otherwise; not where that cannot be told."""
        decision = self._decisions["matching.allows"]
        if decision.program is None:
            return decision.constant is not False
        try:
            return decision.value({"pod": view.facts, "reservation": reservation_facts(reservation)}) is True
        except CelError:
            return False

    def score(self, request: Amounts, allocated: Amounts, reservation: Reservation) -> int:
        """How good a Reservation is for a pod, 0 to 100."""
        return filling(
            request,
            allocated,
            reservation.allocatable,
            self._weights,
            self._other_weight,
            emptiest=self._emptiest,
        )

    def place(self, view: PodView, facts: Record) -> SortKey:
        """The place of a Reservation with these facts among those that a pod fits into."""
        return self._place("choice.order", view, facts)

    def candidate_place(self, view: PodView, reservation: Reservation) -> SortKey:
        """The place of a pod among those that may give their room to a Reservation."""
        return self._place("preAllocation.order", view, reservation_facts(reservation))

    def _place(self, field: str, view: PodView, facts: Record) -> SortKey:
        decision = self._decisions[field]
        try:
            return ((0,), *sort_key_of(decision.value({"pod": view.facts, "reservation": facts}) or ()))
        except CelError:
            return _LAST

    # --- the end ----------------------------------------------------------------------------------

    def removal(self, reservation: Reservation) -> Removal:
        """How one goes that is over."""
        after = self._says("removal.after", reservation, None)
        return Removal(
            # What cannot be told is kept.
            self._says("removal.enabled", reservation, otherwise=False) is True and after is not None,
            after.ns if isinstance(after, Duration) else 0,
            self._says("removal.orphans", reservation, otherwise=False) is True,
            self._says("removal.clearsPods", reservation, otherwise=False) is True,
        )

    def _says(self, field: str, reservation: Reservation, otherwise: Any) -> Any:
        decision: PreparedDecision = self._decisions[field]
        if decision.program is None:
            return otherwise if decision.constant is None else decision.constant
        try:
            found = decision.value({"reservation": reservation_facts(reservation)})
        except CelError:
            return otherwise
        return otherwise if found is None else found
