"""What sections of a report say in words, as rows of a label and a sentence: for terminals and pages alike."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from koordpolicy.cli.counted import counted, number
from koordpolicy.cli.simulation.words import clock, length, milliseconds, percent, waits_note

Report = Mapping[str, Any]

REASONS: Final = (("pending", "Why pods are pending"), ("refused", "Why pods were refused"))
NOT_OURS: Final = "Pods that are not ours: no SchedulingProfile is for their scheduler"
ADMISSION: Final = "Admission rules that were broken otherwise"
UTILISATION: Final = {
    "cpuUsed": "CPU in use",
    "cpuRequested": "CPU requested",
    "cpuBestEffort": "CPU used by best effort",
    "memoryUsed": "memory in use",
}


def pods_by_fate(report: Report) -> Iterator[tuple[str, int]]:
    """How many pods came to what."""
    pods = report["pods"]
    shown = [("scheduled", "scheduled"), ("pending", "pending"), ("refused", "refused")]
    if pods["notOurs"]:
        shown.append(("notOurs", "not ours"))
    if pods["notArrived"]:
        shown.append(("notArrived", "not arrived yet"))
    for key, label in shown:
        yield label, pods[key]


def finished(pods: Mapping[str, Any]) -> str:
    """What became of those that were scheduled."""
    return (
        f"of the scheduled ones {number(pods['finished'])} {'has' if pods['finished'] == 1 else 'have'} finished,"
        f" {number(pods['running'])} {'runs' if pods['running'] == 1 else 'run'} on"
    )


def placed_anew(pods: Mapping[str, Any]) -> str:
    """Where pods went that were on a node beforehand; empty where there are none."""
    if not pods["placedAnew"]:
        return ""
    were = "was" if pods["placedAnew"] == 1 else "were"
    return (
        f"{counted(pods['placedAnew'], 'pod')} {were} on a node already and {were} placed anew, as if just created:"
        f" {number(pods['onOtherNodes'])} on another node than before"
    )


def colocation(drawn: Mapping[str, Any]) -> str:
    """How many pods profiles drew into co-location."""
    if not drawn["enabled"]:
        return "without co-location: no profiles, nothing offered, nothing suppressed"
    if not drawn["bands"]:
        return "drawn into co-location: none (no ColocationProfile matches a pod)"
    told = ", ".join(f"{number(count)} on {band} resources" for band, count in drawn["bands"].items())
    return f"drawn into co-location: {told}, by {', '.join(f'`{name}`' for name in drawn['profiles'])}"


def broken_otherwise(report: Report) -> list[Mapping[str, Any]]:
    """The admission rules that were broken without refusing, or where a pod was to be deleted; the others are reasons of refusals."""
    return [
        one
        for one in report["admission"]["broken"]
        if (one["operation"], one["enforcement"]) != ("CREATE", "enforce")
    ]


def kept(report: Report) -> str:
    """The pods that admission rules kept; empty where there are none."""
    pods = report["admission"]["kept"]
    were = "was" if pods == 1 else "were"
    return f"{counted(pods, 'pod')} that {were} over {were} kept by them" if pods else ""


def scheduling(report: Report) -> Iterator[str]:
    """When pods were placed, Events, and claims that were bound."""
    placed = report["scheduling"]
    if placed["waitSeconds"]["max"]:
        yield (
            f"{number(placed['placedAtOnce'])} at once, {number(placed['placedWithReports'])} with a report of agents;"
            f" {waits_note(report['workload']['intervalSeconds'])}"
        )
    events = [f"{number(one['count'])} {reason}" for reason, one in report["events"]["reasons"].items()]
    if events:
        dropped = report["events"]["dropped"]
        more = f"; {number(dropped)} more were too many of one pod" if dropped else ""
        yield f"Events: {', '.join(events)}{more}"
    volumes = report["volumes"]
    if volumes["bound"]:
        yield (
            f"claims bound: {number(volumes['bound'])}, {number(volumes['made'])} of them to volumes that their"
            " classes made at once, for the zone or node of the first pod where a class waits for one"
        )


def services(one: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """How services answered, which is a model's answer; nothing where there are none."""
    if not one["minutes"]:
        return
    yield (
        "response times",
        f"median {milliseconds(one['medianSeconds'])}, at the objective's percentile {milliseconds(one['tailSeconds'])}, in the mean",
    )
    minutes = number(one["violationMinutes"])
    told = (
        f"{percent(one['violationShare'])} of service time slower than it may be ({minutes} minutes);"
        f" {percent(one['shortOfNodeTime'])} of node time without the CPU that services wished"
    )
    yield "objectives", told


def suppression(one: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What was withheld from best-effort work; nothing where nothing was."""
    if not one["withheldCoreHours"]:
        return
    yield "at work", f"{percent(one['shareOfNodeTime'])} of those"
    yield (
        "withheld",
        f"{counted(one['withheldCoreHours'], 'core hour')}, {percent(one['withheldShare'])} of what best-effort work wished",
    )
    lowest = one["lowest"]
    yield (
        "lowest target",
        f"{number(lowest['target'])} of {counted(lowest['capacity'], 'core')}, on {lowest['node']}, {clock(lowest['atSeconds'])}",
    )


NOTHING_WITHHELD: Final = "best-effort work got all the CPU that it wished for"


def hosting(one: Mapping[str, Any]) -> str:
    """The time that suppression could be at work in."""
    return f"{counted(one['hostingNodeHours'], 'node hour')} with best-effort work"


def agents(one: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What the agents of nodes did on models of their kernels."""
    evictions: Mapping[str, int] = one["evictions"]
    refused = f", {number(one['refusedWrites'])} refused" if one["refusedWrites"] else ""
    yield "kernel files", f"written {number(one['fileWrites'])} times{refused}"
    yield (
        "evictions",
        ", ".join(f"{number(pods)} for {reason}" for reason, pods in evictions.items()) or "none",
    )
    yield "OOM killer", f"{counted(one['oomKills'], 'container')} ended"
    yield "throttled", counted(one["throttledContainerHours"], "container hour")
    yield "at work", ", ".join(one["strategies"])
    yield "not simulated", ", ".join(one["notSimulated"])


def rounds(one: Mapping[str, Any]) -> str:
    """How much the agents had to do."""
    return f"{counted(one['rounds'], 'round')} on models of {counted(one['nodes'], 'kernel')}"


def waits(one: Mapping[str, Any]) -> str:
    """How long pods waited for a node."""
    return (
        f"time until placed: mean {length(one['mean'])}, median {length(one['p50'])},"
        f" 95 % within {length(one['p95'])}, longest {length(one['max'])}"
    )
