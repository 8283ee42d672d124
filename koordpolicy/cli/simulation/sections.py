"""The sections of a page below its charts, by the headings that the report has on a terminal."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from koordpolicy.cli.counted import counted, number
from koordpolicy.cli.failed import failure_text
from koordpolicy.cli.simulation import balance, fault_lines, said
from koordpolicy.cli.simulation.tables import labelled, note, section, table
from koordpolicy.cli.simulation.words import clock, length, percent, size
from koordpolicy.graph.failed import FailedRule

Report = Mapping[str, Any]


def failed(report: Report) -> Iterator[str]:
    """The evaluations that failed."""
    found: Sequence[Mapping[str, Any]] = report["failedEvaluations"]
    yield section(
        "Evaluations that failed",
        table(
            "Evaluations that failed",
            ("Times", "Rule", "Such as", "Error"),
            [
                (number(one["times"]), failure_text(FailedRule(**one)), one["example"], one["error"])
                for one in found
            ],
        ),
        beside=f"{number(sum(one['times'] for one in found))} in all",
    )


def faults(report: Report) -> Iterator[str]:
    """What went wrong, by the numbers that charts have for it."""
    found = report["faults"]
    if found is not None:
        yield section(
            "Faults",
            table("Faults", *fault_lines.table(report)),
            note(fault_lines.cost_text(found)),
            beside=counted(len(found["planned"]), "fault"),
        )


def _pods(report: Report) -> Iterator[str]:
    pods = report["pods"]
    rows = [
        (label, number(count), percent(count / pods["total"] if pods["total"] else 0.0))
        for label, count in said.pods_by_fate(report)
    ]
    notes = (said.finished(pods), said.placed_anew(pods), said.colocation(report["colocation"]))
    yield section(
        "Pods",
        table("Pods", ("Pods that are", "Pods", "Share"), rows),
        *map(note, notes),
        beside=f"{number(pods['total'])} in all",
    )


def _reasons(report: Report) -> Iterator[str]:
    for key, title in said.REASONS:
        rows = [
            (
                number(one["pods"]),
                one["reason"],
                one["example"] + (f": {one['message']}" if one.get("message") else ""),
            )
            for one in report[key]
        ]
        yield section(title, table(title, ("Pods", "Reason", "Such as"), rows))


def _not_ours(report: Report) -> Iterator[str]:
    rows = [(number(one["pods"]), one["scheduler"], one["example"]) for one in report["notOurs"]]
    yield section(said.NOT_OURS, table(said.NOT_OURS, ("Pods", "Scheduler", "Such as"), rows))


def _admission(report: Report) -> Iterator[str]:
    broken = said.broken_otherwise(report)
    rows = [
        (number(one["times"]), one["name"], one["operation"], one["enforcement"], one["example"], one["rule"])
        for one in broken
    ]
    heads = ("Times", "Rule", "Operation", "Enforcement", "Such as", "Place")
    yield section(
        said.ADMISSION, table(said.ADMISSION, heads, rows), note(said.kept(report) if broken else "")
    )


def _scheduling(report: Report) -> Iterator[str]:
    waits = report["scheduling"]["waitSeconds"]
    yield section(
        "Scheduling",
        table(
            "Scheduling",
            ("Time until placed", "mean", "median", "95 % within", "longest"),
            [("of pods", *(length(waits[key]) for key in ("mean", "p50", "p95", "max")))],
        ),
        *map(note, said.scheduling(report)),
        beside=counted(report["scheduling"]["attempts"], "attempt"),
    )


def _utilisation(report: Report) -> Iterator[str]:
    rows = [
        (label, *(percent(report["utilisation"][key][of]) for of in ("mean", "p95", "max")))
        for key, label in said.UTILISATION.items()
    ]
    yield section(
        "Utilisation", table("Utilisation", ("Of all that nodes have", "mean", "p95", "highest"), rows)
    )


def _overcommit(report: Report) -> Iterator[str]:
    rows = [
        (name, *(_amount(name, one[key]) for key in ("offeredMean", "allocatedMean", "allocatedMax")))
        for name, one in report["overcommit"].items()
    ]
    heads = ("Resource", "offered, mean", "allocated, mean", "allocated, most")
    yield section("Overcommit", table("Overcommit", heads, rows))


def _amount(name: str, amount: float) -> str:
    return f"{amount:,.1f} cores" if "cpu" in name else size(amount)


def _free(report: Report) -> Iterator[str]:
    free = report["fragmentation"]
    row = (
        f"{free['freeCores']:,.1f}",
        percent(free["stranded"]),
        f"{free['pieceCores']:g} cores, the median request",
    )
    title = "Free CPU at the end"
    yield section(title, table(title, ("Cores free", "in pieces too small", "a piece"), [row]))


def _services(report: Report) -> Iterator[str]:
    one = report["services"]
    yield section(
        "Services",
        labelled("Services", said.services(one)),
        beside=f"{number(one['minutes'] / 60)} service hours, by the model of contention",
    )


def _suppression(report: Report) -> Iterator[str]:
    one = report["suppression"]
    if one["hostingNodeHours"]:
        rows = labelled("Suppression", said.suppression(one))
        yield section("Suppression", rows or note(said.NOTHING_WITHHELD), beside=said.hosting(one))


def _balance(report: Report) -> Iterator[str]:
    title = "Balance of nodes"
    if balance.concerned(report):
        yield section(
            title,
            table(title, *balance.table(report)),
            note(balance.done_text(report["descheduling"])),
            beside="CPU in use as a share of each node",
        )


def _agents(report: Report) -> Iterator[str]:
    one = report["agents"]
    if one is not None:
        yield section("Agents", labelled("Agents", said.agents(one)), beside=said.rounds(one))


def _explained(report: Report) -> Iterator[str]:
    for one in report["explained"]:
        end = f"landed on {one['node']}" if one["node"] else "is pending"
        title = f"Why {one['pod']} {end}"
        facts = ", ".join(f"{name} {value}" for name, value in one["podFacts"].items())
        refusals = [
            (number(each["nodes"]), each["filter"], each["reason"], each["rule"]) for each in one["refusals"]
        ]
        best = one["best"]
        scores = [
            (each["name"], *(number(node["scores"].get(each["name"], 0)) for node in best), each["rule"])
            for each in one["scores"]
        ]
        sums = [("in all", *(number(node["total"]) for node in best), "")] if best else []
        yield section(
            title,
            note(f"{facts}; {number(one['feasible'])} of {counted(one['nodes'], 'node')} passed the filters"),
            table(f"{title}: refusals", ("Nodes", "Filter", "Reason", "Rule"), refusals),
            table(f"{title}: scores", ("Score", *(node["node"] for node in best), "Rule"), [*sums, *scores])
            if best
            else "",
            beside=clock(one["atSeconds"]),
        )


def _untried(report: Report) -> Iterator[str]:
    for one in report["untried"]:
        title = f"Why {one['pod']} was not tried"
        rows = [
            (rule["name"], rule["enforcement"], f"{rule['reason']}: {rule['message']}", rule["rule"])
            for rule in one["rules"]
        ]
        yield section(
            title,
            table(title, ("Rule", "Enforcement", "Reason", "Place"), rows) or note(one["why"]),
            beside=clock(one["atSeconds"]),
        )


BELOW: Final = (
    _pods,
    _reasons,
    _not_ours,
    _admission,
    _scheduling,
    _utilisation,
    _overcommit,
    _free,
    _services,
    _suppression,
    _balance,
    _agents,
    _explained,
    _untried,
)
"""What stands below the charts. Failed evaluations and faults stand above: these because charts have their numbers."""
