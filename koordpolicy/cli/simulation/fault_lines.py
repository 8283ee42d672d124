"""What went wrong in a simulation and what that cost, for people."""

from collections.abc import Iterator, Mapping
from typing import Any

from koordpolicy.cli.counted import counted, number
from koordpolicy.cli.simulation.marks import Mark
from koordpolicy.cli.simulation.words import Page, clock, length

Report = Mapping[str, Any]


def section(report: Report, page: Page) -> Iterator[str]:
    """The section of a terminal."""
    found = report["faults"]
    if found is None:
        return
    yield page.heading("Faults", counted(len(found["planned"]), "fault"))
    for one in _planned(found):
        yield from page.wrapped(_told(one, report), 10, f"  {clock(one['atSeconds']):>6}")
    yield from page.wrapped(cost_text(found), 2)


def fault_text(one: Mapping[str, Any]) -> str:
    """One fault without its time."""
    lasts = "to the end" if one["forSeconds"] is None else f"for {length(one['forSeconds'])}"
    if one["kind"] == "apiErrors":
        return f"the API server answers {one['code']} to {100 * one['share']:.3g} % of writes, {lasts}"
    what = {
        "nodeLoss": "lost",
        "metricGap": "without reports",
        "lateAgents": f"with agents that are {one['delaySeconds'] or 0:g} s late",
        "lateStart": "with agents that have not begun",
    }[one["kind"]]
    names = ", ".join(one["names"][:3]) + (", ..." if one["nodes"] > 3 else "")  # enough to know them
    return f"{counted(one['nodes'], 'node')} {what}, {lasts}: {names}"


def _told(one: Mapping[str, Any], report: Report) -> str:
    """One fault, or that it did not happen any more."""
    return fault_text(one) + ("" if _happened(one, report) else "; it did not happen: interrupted before")


def _happened(one: Mapping[str, Any], report: Report) -> bool:
    """What begins after the end is refused, but somebody may interrupt a simulation."""
    end = report["interruptedAtSeconds"]
    return end is None or one["atSeconds"] <= end


def cost_text(found: Mapping[str, Any]) -> str:
    """What all of them cost."""
    refused = "; ".join(f"{code}: {number(count)}" for code, count in found["refusedWrites"].items())
    return (
        f"cost: {counted(found['lostPods'], 'pod')} lost, {number(found['placedAnew'])} of them placed anew,"
        f" {length(found['nodeSecondsWithoutReports'])} of node time without reports,"
        f" {counted(found['bindingsDelayed'], 'pod')} bound later"
        + (f"; writes refused, {refused}" if refused else "")
    )


def marks(report: Report) -> list[Mark]:
    """Where charts over time mark a fault, as shares of the time that they show, and what it is."""
    begun = [one["fromSeconds"] for one in report["series"]]
    shown = begun[1] * len(begun) if len(begun) > 1 else report["workload"]["seconds"]
    return [
        Mark(one["atSeconds"] / shown, at, f"{clock(one['atSeconds'])} {fault_text(one)}")
        for at, one in enumerate(_planned(report["faults"]), 1)
        if shown and _happened(one, report)
    ]


def table(report: Report) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Heads and rows, by the numbers that charts have for them; none where nothing was to go wrong."""
    rows: list[tuple[str, ...]] = [
        (str(at), clock(one["atSeconds"]), _told(one, report))
        for at, one in enumerate(_planned(report["faults"]), 1)
    ]
    return ("Number", "At", "Fault"), rows


def _planned(found: Mapping[str, Any] | None) -> list[Mapping[str, Any]]:
    """In the order of time, which files need not keep."""
    return sorted((found or {}).get("planned", ()), key=lambda one: one["atSeconds"])
