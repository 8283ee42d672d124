"""What everything beside services changes: a day with services alone against the same day with all of its pods."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from koordpolicy.cli.counted import counted, number
from koordpolicy.cli.simulation import fault_lines
from koordpolicy.cli.simulation.charts import Line, drawing
from koordpolicy.cli.simulation.made import Made, short_digest
from koordpolicy.cli.simulation.words import BOLD, DIM, Page, clock, length, milliseconds, percent, points

Report = Mapping[str, Any]

_ROWS: Final[tuple[tuple[str, Callable[[Report], str]], ...]] = (
    ("CPU in use, mean", lambda one: percent(one["utilisation"]["cpuUsed"]["mean"])),
    ("CPU in use, highest", lambda one: percent(one["utilisation"]["cpuUsed"]["max"])),
    ("by best-effort work, mean", lambda one: percent(one["utilisation"]["cpuBestEffort"]["mean"])),
    ("memory in use, mean", lambda one: percent(one["utilisation"]["memoryUsed"]["mean"])),
    ("response times of services, median", lambda one: milliseconds(one["services"]["medianSeconds"])),
    ("the same, at the objective's percentile", lambda one: milliseconds(one["services"]["tailSeconds"])),
    ("service time slower than it may be", lambda one: percent(one["services"]["violationShare"])),
    ("node time short of CPU for services", lambda one: percent(one["services"]["shortOfNodeTime"])),
    ("best-effort work, core hours", lambda one: number(round(one["batch"]["coreHours"]))),
    ("the same, withheld by suppression", lambda one: percent(one["suppression"]["withheldShare"])),
    ("pods finished", lambda one: number(one["pods"]["finished"])),
    ("pods pending at the end", lambda one: number(one["pods"]["pending"])),
    ("wait for a node, mean", lambda one: length(one["scheduling"]["waitSeconds"]["mean"])),
    ("wait for a node, 95 % within", lambda one: length(one["scheduling"]["waitSeconds"]["p95"])),
)


def render(alone: Report, together: Report, page: Page, made: Made) -> str:
    """Both days for a terminal, and how they were made."""
    return "\n".join([*_lines(alone, together, page), *made.lines(page)]) + "\n"


def _lines(alone: Report, together: Report, page: Page) -> Iterator[str]:
    workload = together["workload"]
    yield page.paint("Services alone, and with everything beside them", BOLD)
    yield from page.wrapped(
        f"{workload['title']}: {counted(workload['nodes'], 'node')} with {counted(workload['cpu'], 'core')}, {length(workload['seconds'])};"
        f" {number(alone['pods']['total'])} services, {counted(together['pods']['total'] - alone['pods']['total'], 'job')}",
        0,
    )
    yield ""
    yield page.paint(f"  {'':44}{'alone':>14}{'together':>14}", DIM)
    for label, show in _ROWS:
        yield f"  {label:44}{show(alone):>14}{show(together):>14}"
    yield ""
    added = together["services"]["violationShare"] - alone["services"]["violationShare"]
    yield from page.wrapped(
        f"{percent(together['utilisation']['cpuUsed']['mean'])} of the CPU in use rather than"
        f" {percent(alone['utilisation']['cpuUsed']['mean'])}, and {points(max(added, 0.0))} points of service time more that is slower than it may be.",
        2,
    )
    spent = alone["wallSeconds"] + together["wallSeconds"]
    yield from (
        page.paint(line, DIM)
        for line in page.wrapped(
            f"policies {short_digest(together['policies']['digest'])}; simulated in {length(spent)}; response times are the model's of contention",
            2,
        )
    )


def picture(alone: Report, together: Report, made: Made) -> str:
    """CPU in use over the day, as an SVG that stands alone."""
    series = together["series"]
    return drawing(
        f"CPU in use on {counted(together['workload']['nodes'], 'node')}",
        "%",
        [clock(one["fromSeconds"]) for one in series],
        [
            Line("with batch work", "blue", [100 * one["cpuUsed"] for one in series], filled=True),
            Line("by batch work", "green", [100 * one["cpuBestEffort"] for one in series], filled=True),
            Line("services alone", "amber", [100 * one["cpuUsed"] for one in alone["series"]]),
        ],
        made.text(),
        fault_lines.marks(together),
    )
