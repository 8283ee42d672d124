"""How evenly nodes were used, with the descheduler and without it: sections of the reports of simulations."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from koordpolicy.cli.counted import counted, number
from koordpolicy.cli.simulation.charts import Line, chart
from koordpolicy.cli.simulation.marks import Mark
from koordpolicy.cli.simulation.words import DIM, Page, clock, percent

Report = Mapping[str, Any]

_COLUMNS: Final = (
    ("deviation", "cpuDeviation"),
    ("fullest", "cpuHighestNode"),
    ("emptiest", "cpuLowestNode"),
)


def section(report: Report, page: Page) -> Iterator[str]:
    """Where policies have the descheduler move pods: what it did, and the balance over time."""
    if not concerned(report):
        return
    done, apart = report["descheduling"], report.get("withoutDescheduling")
    yield page.heading("Balance of nodes", "CPU in use as a share of each node")
    yield from page.wrapped(done_text(done), 2)
    room = " " * (9 * len(_COLUMNS) - 4)
    if apart is not None:
        yield page.paint(f"  {'':14}with{room}   without", DIM)
    heads = "".join(f"{name:>9}" for name, _ in _COLUMNS) + f"{'over':>6}"
    yield page.paint(f"  {'':10}{heads}{'  ' + heads if apart is not None else ''}", DIM)
    others: Sequence[Mapping[str, Any]] = [] if apart is None else apart["series"]
    daily = report["workload"]["seconds"] <= 48 * 3600
    for at, one in enumerate(report["series"]):
        time = clock(one["fromSeconds"]) if daily else f"day {int(one['fromSeconds'] // 86_400)}"
        beside = "  " + _figures(others[at]) if at < len(others) else ""
        yield f"  {time:10}{_figures(one)}{beside}"
    ends = [report["balance"], *([] if apart is None else [apart["balance"]])]
    yield "  " + f"{'at the end':10}" + "  ".join(_end(one["atTheEnd"]) for one in ends)
    yield page.paint("  deviation: standard deviation; over: nodes above the policy's threshold, mean", DIM)


def concerned(report: Report) -> bool:
    """Whether policies have the descheduler move pods, or say which nodes are too full."""
    return report["descheduling"] is not None or report["balance"]["overloadedNodes"] is not None


def done_text(done: Mapping[str, Any] | None) -> str:
    """What the descheduler did."""
    if done is None:
        return "the descheduler was left off"
    moves = ", ".join(f"{number(pods)} by {strategy}" for strategy, pods in done["moves"].items())
    phases = ", ".join(f"{number(jobs)} {phase.lower()}" for phase, jobs in done["migrations"].items())
    migrations = sum(done["migrations"].values())
    return (
        f"{counted(done['rounds'], 'round')} of the descheduler; it would have moved {moves or 'nobody'};"
        f" {counted(migrations, 'migration')}{f' ({phases})' if phases else ''}, {counted(done['evicted'], 'eviction')}"
    )


def _figures(one: Mapping[str, Any]) -> str:
    return "".join(f"{percent(one[key]):>9}" for _, key in _COLUMNS) + f"{_over(one['overloadedNodes']):>6}"


def _end(one: Mapping[str, Any] | None) -> str:
    if one is None:
        return ""
    shares = (one["deviation"], one["highestNode"], one["lowestNode"])
    return "".join(f"{percent(share):>9}" for share in shares) + f"{_over(one['overloadedNodes']):>6}"


def _over(nodes: float | None) -> str:
    return "-" if nodes is None else number(nodes)


def sums(without: Report, colocated: Report) -> Iterator[tuple[str, Callable[[Report], str]]]:
    """Rows of the summary of two days, where the descheduler ran in the second."""
    if colocated["descheduling"] is None:
        return
    yield "deviation of nodes' CPU in use, mean", lambda one: percent(one["balance"]["deviation"])
    yield "fullest node, mean", lambda one: percent(one["balance"]["highestNode"])
    yield (
        "nodes above their threshold, mean",
        lambda one: _over(one["balance"]["overloadedNodes"]),
    )
    yield "pods descheduled", lambda one: number((one["descheduling"] or {}).get("evicted", 0))


def charts(report: Report, times: Sequence[str], marks: Sequence[Mark]) -> Iterator[str]:
    """The deviation over time, and the fullest and emptiest nodes."""
    if not concerned(report):
        return
    series, apart = report["series"], report.get("withoutDescheduling")

    def of(key: str, found: Sequence[Mapping[str, Any]]) -> list[float]:
        return [100 * one[key] for one in found]

    others = [] if apart is None else apart["series"]
    first = "with the descheduler" if apart is not None else "as simulated"
    for title, key in (
        ("Standard deviation of the CPU in use of nodes", "cpuDeviation"),
        ("CPU in use on the fullest node", "cpuHighestNode"),
        ("CPU in use on the emptiest node", "cpuLowestNode"),
    ):
        lines = [Line(first, "blue", of(key, series))]
        if others:
            lines.append(Line("without it", "grey", of(key, others)))
        yield chart(title, "%", times, lines, marks)


def table(report: Report) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Its head and its rows; none where nothing moves pods."""
    head = (
        "Simulated",
        "deviation, mean",
        "fullest",
        "emptiest",
        "above the threshold",
        "evictions",
        "migrations",
    )
    if not concerned(report):
        return head, []
    done, apart = report["descheduling"], report.get("withoutDescheduling")
    phases = ", ".join(
        f"{number(jobs)} {phase}" for phase, jobs in (done or {}).get("migrations", {}).items()
    )
    evicted = "0" if done is None else number(done["evicted"])
    rows = [
        (
            "without the descheduler" if done is None else "with the descheduler",
            *_means(report["balance"]),
            evicted,
            phases or "0",
        )
    ]
    if apart is not None:
        rows.append(("without it", *_means(apart["balance"]), "0", "0"))
    return head, rows


def _means(one: Mapping[str, Any]) -> tuple[str, ...]:
    shares = (one["deviation"], one["highestNode"], one["lowestNode"])
    return (*(percent(share) for share in shares), _over(one["overloadedNodes"]))
