"""What the kind Migration says, asked through programs made once a revision."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from koordpolicy.algorithms.descheduling.migration import MigrationMode
from koordpolicy.algorithms.descheduling.throttle import MigrationLimits
from koordpolicy.descheduler.rules import Asked, Stays
from koordpolicy.graph import RuleGraph
from koordpolicy.graph.sortable import SortKey, sort_key_of
from koordpolicy.language.cel.errors import CelError
from koordpolicy.language.facts import TIMES
from koordpolicy.model.facts import Record
from koordpolicy.model.scheduler_config import DEFAULT_SCHEDULER
from koordpolicy.model.time import NANOSECONDS

KIND: Final = "Migration"
_SLOWEST: Final = 0.001
"""Evictions a second where policy says none at all: who waits for one has to go on some time."""
_SHORTEST: Final = 0.05
"""Seconds from one look at migrations to the next at least."""
_INSTEAD: Final = (
    "say that it does in `schedulerNames` of Migration, or let such pods go without one: `mode: EvictDirectly` of Migration, or"
    " `migrate: false` of the profile"
)
_LAST: Final[SortKey] = ((1,),)
_FIRST: Final = (0,)


@dataclass(frozen=True, slots=True)
class Frequency:
    """How many pods of an object go in a period of so many seconds, and how many of them at once."""

    period: float
    burst: int


class MigrationRules:
    """All of it. Raises CelError where what is said of no pod in particular cannot be told.

    Of a pod of which something cannot be told, what is most careful holds.
    """

    def __init__(self, graph: RuleGraph) -> None:
        self.digest = graph.digest
        self._asked = asked = Asked(graph, KIND)

        def seconds(field: str) -> float:
            found: float = asked.fixed(field).ns / NANOSECONDS
            return found

        self.enabled = asked.fixed("enabled") is True
        self.retry_after = seconds("retryAfter")
        self.per_second = max(float(asked.fixed("pace.perSecond")), _SLOWEST)
        self.burst = float(asked.fixed("pace.burst"))
        self.interval = max(seconds("arbitration.interval"), _SHORTEST)
        self.kept_after_ttl = seconds("kept.afterTtl")
        self.kept_without_ttl = seconds("kept.withoutTtl")
        self.sweep_interval = seconds("kept.interval")
        self.of_workload = Frequency(
            seconds("frequency.workload.period"), int(asked.fixed("frequency.workload.burst"))
        )
        self.of_namespace = Frequency(
            seconds("frequency.namespace.period"), int(asked.fixed("frequency.namespace.burst"))
        )
        self._total = int(asked.fixed("limits.total"))
        self._per_node = int(asked.fixed("limits.perNode"))
        self._per_namespace = int(asked.fixed("limits.perNamespace"))

    def mode(self, pod: Record, now: int) -> MigrationMode:
        """Whether room is kept before the pod goes; so where that cannot be told."""
        return MigrationMode(self._said("mode", _roots(pod, now), MigrationMode.RESERVATION_FIRST))

    def reservable(self, pod: Record, now: int) -> bool:
        """Whether the pod's scheduler places Reservations."""
        return self._asked.holds("reservable", _roots(pod, now))

    def unreservable(self, pod: Record, scheduler: str, now: int) -> Stays | None:
        """Why no room can be kept for a pod whose migration has to begin with that; None where it can, or need not."""
        if self.mode(pod, now) is not MigrationMode.RESERVATION_FIRST or self.reservable(pod, now):
            return None
        return Stays("reservable", f"its scheduler `{scheduler or DEFAULT_SCHEDULER}` places no Reservations")

    def barred(self, pod: Record, scheduler: str, now: int) -> Stays | None:
        """Why a pod that is to go gets no migration, by what policy says alone; None where it may."""
        if not self.enabled:
            return Stays("Migration.enabled", "no migrations are carried out")
        found = self.unreservable(pod, scheduler, now)
        return None if found is None else Stays(f"Migration.{found.condition}", f"{found.reason}; {_INSTEAD}")

    def ttl(self, pod: Record, now: int) -> int:
        """How long a migration of the pod may take, in nanoseconds; 0 for no limit. Raises CelError."""
        found: int = self._asked.value("ttl", _roots(pod, now)).ns
        return found

    def evictor(self, pod: Record, now: int) -> str:
        """How the pod is let go."""
        return str(self._said("evictor", _roots(pod, now), "Eviction"))

    def grace_seconds(self, pod: Record, now: int) -> int | None:
        """Seconds in which the pod has to end; None for its own."""
        found: int | None = self._said("graceSeconds", _roots(pod, now), None)
        return found

    def conditions_of(self, pod: Record, now: int) -> str:
        """The profile of Descheduling whose conditions are asked."""
        return str(self._said("arbitration.conditionsOf", _roots(pod, now), ""))

    def limited(self, pod: Record, now: int) -> bool:
        """Whether limits are about the pod; so where that cannot be told."""
        return self._said("arbitration.limited", _roots(pod, now), True) is not False

    def together(self, pod: Record, now: int) -> bool:
        """Whether pods of the pod's controller follow each other."""
        return self._asked.holds("arbitration.together", _roots(pod, now))

    def rank(self, pod: Record, now: int) -> SortKey:
        """The pod's place among those that wait."""
        try:
            return (_FIRST, *sort_key_of(self._asked.value("arbitration.order", _roots(pod, now)) or ()))
        except CelError:
            return _LAST

    def checks_replicas(self, pod: Record, now: int) -> bool:
        """Whether pods of workloads stay that are too small; so where that cannot be told."""
        return self._said("workload.checksReplicas", _roots(pod, now), True) is not False

    def limits(self, pod: Record, now: int, replicas: int) -> MigrationLimits:
        """How many migrations are under way at once beside that of the pod; `replicas` are those of its workload."""
        roots = {**_roots(pod, now), "replicas": replicas}
        return MigrationLimits(
            self._total,
            self._per_node,
            self._per_namespace,
            int(self._said("workload.migrating", roots, 1)),
            int(self._said("workload.unavailable", roots, 1)),
        )

    def most_of_workload(self, pod: Record, now: int, replicas: int) -> int:
        """How many pods of the pod's workload go in a period."""
        return int(self._said("frequency.workload.most", {**_roots(pod, now), "replicas": replicas}, 1))

    def most_of_namespace(self, pod: Record, now: int) -> int:
        """How many pods of the pod's namespace go in a period; 0 for any number."""
        return int(self._said("frequency.namespace.most", _roots(pod, now), 1))

    def _said(self, field: str, roots: Mapping[str, Any], careful: Any) -> Any:
        try:
            return self._asked.value(field, roots)
        except CelError:
            return careful


def _roots(pod: Record, now: int) -> dict[str, Any]:
    return {"pod": pod, "now": TIMES.timestamp(now)}
