"""Arguments of plugins that a kind of their own says: which one is which field. All profiles share what such a kind says."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from koordpolicy.graph.exchange.arguments import COUNT, FLAG, TIME, WINDOW, WORD
from koordpolicy.graph.exchange.carriage import Carriage, NotCarriedError, among
from koordpolicy.graph.exchange.documents import API_VERSION, SOURCE
from koordpolicy.model.quantity import QuantityError, parse_quantity

KIND_OF: Final[Mapping[str, str]] = {
    "Coscheduling": "GangScheduling",
    "ElasticQuota": "QuotaTree",
    "DeviceShare": "DeviceSharing",
    "NodeNUMAResource": "CPUTopology",
    "Reservation": "ReservationPolicy",
}
"""Plugins whose arguments are said by a kind."""


def _amounts(value: Any) -> dict[str, str]:
    if not isinstance(value, Mapping):
        raise NotCarriedError(f"`{value}` is no mapping")
    try:
        return {str(name): str(parse_quantity(one)) for name, one in value.items()}
    except QuantityError as error:
        raise NotCarriedError(str(error)) from None


AMOUNTS: Final = Carriage(_amounts, dict)
_BINDINGS: Final = among("FullPCPUs", "SpreadByPCPUs")
_STRATEGIES: Final = among("LeastAllocated", "MostAllocated")
_ZONE_STRATEGY: Final = Carriage(
    # Of its weights Koordinator makes nothing.
    lambda value: _STRATEGIES.write(value.get("type") if isinstance(value, Mapping) else value),
    _STRATEGIES.show,
)
_POLICIES: Final = among("once-satisfied", "only-waiting", "waiting-and-running")


@dataclass(frozen=True, slots=True)
class KindArgument:
    """How an argument is said: by a parameter, or (with a dot) a field of the kind; or why it need not be, which is no loss.

    `names` are the documents of the kind that say it, where there are several; none for a kind that there is once.
    """

    decision: str = ""
    carriage: Carriage = FLAG
    needless: str = ""
    names: tuple[str, ...] = ()


_ALWAYS: Final = KindArgument(needless="pods are woken by what can help them alone, always")
_WATCHED: Final = KindArgument(needless="quotas are kept from event to event, and no copy of them grows old")
_NOT: Final = Carriage(lambda value: not FLAG.write(value), lambda value: not value)
_METRICS: Final = KindArgument(needless="metrics of Reservations are made anew with all others")

KIND_ARGUMENTS: Final[Mapping[tuple[str, str], KindArgument]] = {
    ("Coscheduling", "defaultTimeout"): KindArgument("defaultTimeout", WINDOW),
    ("Coscheduling", "defaultMatchPolicy"): KindArgument("defaultMatchPolicy", _POLICIES),
    ("Coscheduling", "enablePreemption"): KindArgument("enablePreemption"),
    ("Coscheduling", "awareNetworkTopology"): KindArgument("awareNetworkTopology"),
    ("Coscheduling", "controllerWorkers"): KindArgument("phases.workers", COUNT),
    ("Coscheduling", "skipCheckScheduleCycle"): KindArgument(needless="it has no effect any more"),
    ("NodeNUMAResource", "defaultCPUBindPolicy"): KindArgument("defaultBinding", _BINDINGS),
    ("NodeNUMAResource", "numaScoringStrategy"): KindArgument("zoneStrategy", _ZONE_STRATEGY),
    ("DeviceShare", "disableDeviceNUMATopologyAlignment"): KindArgument(
        "scheduling.zoned", _NOT, names=("gpu", "rdma", "fpga")
    ),
    ("Reservation", "controllerWorkers"): KindArgument("controllerWorkers", COUNT),
    ("Reservation", "disableGarbageCollection"): KindArgument("disableGarbageCollection"),
    ("Reservation", "enablePreemption"): KindArgument("enablePreemption"),
    ("Reservation", "gcDurationSeconds"): KindArgument("gcDuration", TIME),
    ("Reservation", "gcIntervalSeconds"): KindArgument("gcInterval", TIME),
    ("Reservation", "preAllocationConfig.enableClusterMode"): KindArgument("enableClusterMode"),
    ("Reservation", "preAllocationConfig.clusterLabelKey"): KindArgument("clusterLabelKey", WORD),
    ("Reservation", "preAllocationConfig.clusterPriorityAnnotationKey"): KindArgument(
        "clusterPriorityAnnotationKey", WORD
    ),
    ("Reservation", "resyncIntervalSeconds"): _METRICS,
    ("ElasticQuota", "delayEvictTime"): KindArgument("delayEvictTime", WINDOW),
    ("ElasticQuota", "revokePodInterval"): KindArgument("revokePodInterval", WINDOW),
    ("ElasticQuota", "defaultQuotaGroupMax"): KindArgument("defaultQuotaGroupMax", AMOUNTS),
    ("ElasticQuota", "systemQuotaGroupMax"): KindArgument("systemQuotaGroupMax", AMOUNTS),
    ("ElasticQuota", "quotaGroupNamespace"): KindArgument("quotaGroupNamespace", WORD),
    ("ElasticQuota", "monitorAllQuotas"): KindArgument("monitorAllQuotas"),
    ("ElasticQuota", "enableCheckParentQuota"): KindArgument("enableCheckParentQuota"),
    ("ElasticQuota", "enableRuntimeQuota"): KindArgument("enableRuntimeQuota"),
    ("ElasticQuota", "enableMinQuotaScale"): KindArgument("enableMinQuotaScale"),
    ("ElasticQuota", "disableDefaultQuotaPreemption"): KindArgument("disableDefaultQuotaPreemption"),
    ("ElasticQuota", "enableQueueHint"): _ALWAYS,
    ("ElasticQuota", "quotaSnapshotUpdateInterval"): _WATCHED,
}
"""The arguments that are said so, by plugin and name."""
FIELDS_ALONE: Final = frozenset({"DeviceShare"})
"""The plugins whose other arguments have fields, too, which are not written by themselves."""


@dataclass(slots=True)
class KindDocuments:
    """The documents that say them, while they are being written; `source` is what they are imported from."""

    source: str
    _specs: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    """By kind, and name where a kind has several."""
    _said: dict[tuple[str, str], tuple[str, Any]] = field(default_factory=dict)

    def take(self, plugin: str, name: str, value: Any, profile: str) -> list[str]:
        """Say the argument of a plugin in a profile; the decisions that it became.

        Raises NotCarriedError where policies cannot say it, or say otherwise for another profile.
        """
        kind, row = KIND_OF[plugin], KIND_ARGUMENTS.get((plugin, name))
        if row is None or not row.decision:
            raise NotCarriedError("nothing in policies says that")
        written = row.carriage.write(value)
        decision = row.decision if "." in row.decision else f"parameters.{row.decision}"
        before = self._said.setdefault((kind, decision), (profile, written))
        if before[1] != written:
            raise NotCarriedError(
                f"profile `{before[0]}` says otherwise, and {kind} says it once for all profiles; a scheduler "
                "of its own, by a bundle of its own, can have both"
            )
        *groups, last = decision.split(".")
        for document in row.names or ("",):
            place = self._specs.setdefault((kind, document), {})
            for group in groups:
                place = place.setdefault(group, {})
            place[last] = {"value": written} if groups == ["parameters"] else written
        return [f"{kind}/{one}.{decision}" for one in row.names] or [f"{kind}.{decision}"]

    def documents(self) -> list[dict[str, Any]]:
        """Those that say something."""
        return [
            {
                "apiVersion": API_VERSION,
                "kind": kind,
                "metadata": {"name": name or "imported", "annotations": {SOURCE: self.source}},
                "spec": spec,
            }
            for (kind, name), spec in self._specs.items()
        ]
