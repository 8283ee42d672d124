"""The record `report`: what an objective and constraints may read of a simulation, by the names of `simulate -o json`."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from koordpolicy.language.cel import ir
from koordpolicy.language.cel.types import DOUBLE, STRING, Type, map_of, record
from koordpolicy.language.facts.table import Fact, Record

_COUNTS: Final = map_of(STRING, DOUBLE)
_OFFERS: Final = "offer"


@dataclass(frozen=True, slots=True)
class ReportField:
    """A number of the report, or a map of numbers by names; `unit` is that of the numbers."""

    path: str
    unit: str
    meaning: str
    type: Type = DOUBLE
    may_be_missing: bool = False


_OVER_TIME: Final = {
    "mean": "mean over time",
    "p95": "exceeded in a twentieth of the time",
    "max": "the highest",
}
_SHARES: Final = {
    "cpuUsed": "All CPU in use",
    "cpuRequested": "All CPU requested",
    "cpuBestEffort": "All CPU in use by best-effort work",
    "memoryUsed": "All memory in use",
}
_PODS: Final = {
    "total": "All pods of the workload.",
    "scheduled": "Pods that got a node.",
    "pending": "Pods that wait for a node at the end.",
    "refused": "Pods that were not created, as admission refused them.",
    "notOurs": "Pods of another scheduler.",
    "notArrived": "Pods that had not come when the simulation ended.",
    "finished": "Pods that finished.",
    "running": "Pods that run at the end.",
    "placedAnew": "Pods that were on a node already and were placed anew.",
    "onOtherNodes": "Those of them that are on another node than before.",
}
_BALANCE: Final = {
    "deviation": ("share", "Standard deviation of nodes' CPU in use"),
    "highestNode": ("share", "CPU in use on the fullest node"),
    "lowestNode": ("share", "CPU in use on the emptiest node"),
    "overloadedNodes": ("nodes", "Nodes above the threshold of a descheduler's strategy by load"),
}
_WAITS: Final = {
    "mean": "the mean",
    "p50": "the median",
    "p95": "exceeded by a twentieth",
    "max": "the longest",
}

MEASURED: Final = (
    *(
        ReportField(f"utilisation.{name}.{part}", "share", f"{meaning}, {how}.")
        for name, meaning in _SHARES.items()
        for part, how in _OVER_TIME.items()
    ),
    *(ReportField(f"pods.{name}", "pods", meaning) for name, meaning in _PODS.items()),
    ReportField("admission.kept", "pods", "Pods that were over, and whose end rules of admission refused."),
    ReportField("colocation.profiles", "pods", "Pods that each colocation profile took, by its name.", _COUNTS),
    ReportField("colocation.bands", "pods", "Pods in each band, by its name.", _COUNTS),
    ReportField("scheduling.attempts", "attempts", "Attempts to place a pod."),
    ReportField("scheduling.preempted", "pods", "Pods that went for another one."),
    ReportField("scheduling.placedAtOnce", "pods", "Placements of pods that waited for nothing."),
    ReportField("scheduling.placedWithReports", "pods", "Placements of pods that waited, with a report of agents: these waits come in steps of the interval."),
    *(
        ReportField(f"scheduling.waitSeconds.{part}", "seconds", f"Wait for a node, {how}.")
        for part, how in _WAITS.items()
    ),
    ReportField("volumes.bound", "volumes", "Claims that were bound."),
    ReportField("volumes.made", "volumes", "Volumes that were made for claims."),
    ReportField(
        "overcommit", "cores, bytes", "What each resource of overcommit came to, by its name.",
        map_of(STRING, record(_OFFERS)),
    ),
    ReportField("suppression.shareOfNodeTime", "share", "Time of nodes with best-effort work in which that was suppressed."),
    ReportField("suppression.hostingNodeHours", "node hours", "Time of nodes with best-effort work."),
    ReportField("suppression.withheldCoreHours", "core hours", "CPU withheld from best-effort work."),
    ReportField("suppression.withheldShare", "share", "CPU that best-effort work asked for and did not get."),
    ReportField("suppression.givenCoreHours", "core hours", "CPU that best-effort work got."),
    ReportField("batch.coreHours", "core hours", "CPU that best-effort work used."),
    ReportField("batch.finishedPodsAnHour", "pods an hour", "Pods that finished."),
    ReportField("services.shortOfNodeTime", "share", "Node time in which services got less CPU than they wished."),
    ReportField("services.minutes", "minutes", "Time of all services together."),
    ReportField("services.violationMinutes", "minutes", "That in which a service was slower than its objective."),
    ReportField("services.violationShare", "share", "The same of all service minutes."),
    ReportField("services.medianSeconds", "seconds", "Median response time of services."),
    ReportField("services.tailSeconds", "seconds", "Response time of services at the tail."),
    ReportField("fragmentation.freeCores", "cores", "CPU that is free at the end."),
    ReportField("fragmentation.pieceCores", "cores", "Median request of a pod of the workload."),
    ReportField("fragmentation.stranded", "share", "Free CPU that is of no use to pods of that size."),
    *(
        ReportField(f"balance.{prefix}{name}", unit, f"{meaning}, {how}.", may_be_missing=name == "overloadedNodes")
        for prefix, how in (("", "mean over time"), ("atTheEnd.", "at the end"))
        for name, (unit, meaning) in _BALANCE.items()
    ),
    ReportField("descheduling.rounds", "rounds", "Rounds of the descheduler."),
    ReportField("descheduling.evicted", "pods", "Pods that the descheduler moved."),
    ReportField("descheduling.moves", "pods", "Pods that strategies would have go, by strategy.", _COUNTS),
    ReportField("descheduling.results", "pods", "What came of those, by result.", _COUNTS),
    ReportField("descheduling.migrations", "migrations", "Migrations by their phase.", _COUNTS),
    ReportField("agents.nodes", "nodes", "Nodes whose agents ran."),
    ReportField("agents.rounds", "rounds", "Rounds of all agents."),
    ReportField("agents.fileWrites", "writes", "Writes to files of the kernel."),
    ReportField("agents.refusedWrites", "writes", "Those that the kernel refused."),
    ReportField("agents.evicted", "pods", "Pods that agents evicted, for whatever reason."),
    ReportField("agents.evictions", "pods", "The same by reason: `BEMemoryEvict`, ...", _COUNTS),
    ReportField("agents.oomKills", "containers", "Containers that the OOM killer ended."),
    ReportField("agents.throttledContainerHours", "container hours", "Time in which containers were throttled."),
    ReportField("faults.lostPods", "pods", "Pods that were deleted with lost nodes."),
    ReportField("faults.placedAnew", "pods", "Those of them that got a node again."),
    ReportField("faults.nodeSecondsWithoutReports", "node seconds", "Time in which nothing was heard of nodes."),
    ReportField("faults.refused", "writes", "Writes that the API server refused."),
    ReportField("faults.refusedWrites", "writes", "The same by its code: `429`, ...", _COUNTS),
    ReportField("faults.bindingsDelayed", "pods", "Pods whose binding was among them."),
)  # fmt: skip
"""In the order of the report. Those of `NEEDS` are there under a condition."""

OFFERED: Final = (
    ReportField("offeredMean", "cores, bytes", "What nodes offered, mean over time."),
    ReportField("allocatedMean", "cores, bytes", "What pods requested of it, mean over time."),
    ReportField("allocatedMax", "cores, bytes", "What pods requested of it, the highest."),
)
"""What stands below each name of `overcommit`: `report.overcommit["kubernetes.io/batch-cpu"].offeredMean`."""

NEEDS: Final[Mapping[str, str]] = {
    "agents": "add --agents, by which the agents of nodes run",
    "faults": "say by --faults FILE what goes wrong",
    "descheduling": "no policy lets the descheduler move pods",
}
"""Parts of a report that are there under a condition, with what is to be done where it is not met."""


def _record(name: str, meaning: str, measured: tuple[ReportField, ...]) -> Record:
    return Record(
        name,
        meaning,
        tuple(
            Fact(one.path, one.type, f"{one.meaning} In {one.unit}.", frozenset(), one.may_be_missing)
            for one in measured
        ),
    )


REPORT: Final = _record("report", "What came of a simulation: shares lie between 0 and 1.", MEASURED)
OFFER: Final = _record(_OFFERS, "What came of one resource: CPU in cores, memory in bytes.", OFFERED)


def measured(report: Mapping[str, Any]) -> dict[str, Any]:
    """The values of the record's facts in a report; those that it does not have are left out."""
    found: dict[str, Any] = {}
    for fact in REPORT.facts:
        value: Any = report
        for step in fact.path.split("."):
            value = None if value is None else value[step]
        if value is not None:
            found[fact.path] = _number(value)
    return found


def unit_of(node: ir.Node) -> str:
    """What an expression over the report counts: of sums, differences and choices the one unit of their parts; else nothing."""
    units = _units(node)
    return units.pop() if len(units) == 1 else ""


def _units(node: ir.Node) -> set[str]:
    """The units of what an expression gives; the empty text is among them where a part has none that can be told."""
    match node:
        case ir.Const():
            return set()  # a number beside others is of their unit
        case ir.Field(base=ir.Var(), path=path) | ir.OptField(base=ir.Var(), path=path):
            return {_UNITS.get(path, "")}
        case ir.Field(base=ir.Index(index=ir.Const(value=str(name)))):
            return {_OF_OFFERS.get(name.rpartition("-")[2], "")}
        case ir.Index(operand=operand) | ir.Select(operand=operand) | ir.Cast(operand=operand):
            return _units(operand)
        case ir.OrElse(operand=operand, other=other):
            return _units(operand) | _units(other)
        case ir.Call(overload="_+_(double,double)" | "_-_(double,double)" | "-_(double)", args=args):
            return {unit for one in args for unit in _units(one)}
        case ir.Cond(then=then, otherwise=otherwise):
            return _units(then) | _units(otherwise)
    return {""}


_OF_OFFERS: Final = {"cpu": "cores", "memory": "bytes"}
"""How amounts of overcommitted resources are counted, by the end of their names: `kubernetes.io/batch-cpu`."""
_UNITS: Final = {one.path: one.unit for one in MEASURED if "," not in one.unit}


def _number(value: Any) -> Any:
    """The same with numbers that CEL takes for doubles, at any depth."""
    if isinstance(value, Mapping):
        return {name: _number(one) for name, one in value.items()}
    return float(value)
