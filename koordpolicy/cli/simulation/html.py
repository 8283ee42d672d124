"""The report of a simulation as one page of HTML: no scripts, nothing from elsewhere, readable in the dark and on paper."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

from koordpolicy.cli.counted import counted, number
from koordpolicy.cli.simulation import balance, fault_lines, sections
from koordpolicy.cli.simulation.charts import Line, chart
from koordpolicy.cli.simulation.made import Made, short_digest
from koordpolicy.cli.simulation.style import STYLE
from koordpolicy.cli.simulation.tables import section, text
from koordpolicy.cli.simulation.words import clock, length, percent, size

Report = Mapping[str, Any]

_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'"


def page(report: Report, made: Made | None = None) -> str:
    """The whole page, and at its end how it was made."""
    title = report["workload"]["title"] or "Simulation"
    body = "\n".join(
        part
        for part in (
            *_head(report, title),
            _tiles(report),
            *sections.failed(report),
            *sections.faults(report),
            _charts(report),
            *(part for below in sections.BELOW for part in below(report)),
        )
        if part
    )
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{text(title)}</title><style>{STYLE}</style></head>\n<body>\n<main>{body}</main>\n{_foot(report, made)}\n</body></html>\n"
    )


def _head(report: Report, title: str) -> Iterator[str]:
    workload = report["workload"]
    yield f"<h1>{text(title)}</h1>"
    yield (
        f"<p>{counted(workload['nodes'], 'node')} with {counted(workload['cpu'], 'core')} and {size(workload['memory'])},"
        f" {length(workload['seconds'])} in steps of {length(workload['intervalSeconds'])}"
        + ("" if report["colocation"]["enabled"] else ", without co-location")
        + "</p>"
    )
    if report["interruptedAtSeconds"] is not None:
        yield f"<p><strong>Interrupted at {clock(report['interruptedAtSeconds'])}: what follows is of the time before.</strong></p>"


def _tiles(report: Report) -> str:
    used, pods, suppression = report["utilisation"], report["pods"], report["suppression"]
    tiles = [
        (percent(used["cpuUsed"]["mean"]), "of CPU in use, mean"),
        (percent(used["cpuRequested"]["mean"]), "of CPU requested, mean"),
        (percent(used["memoryUsed"]["mean"]), "of memory in use, mean"),
        (number(pods["scheduled"]), f"pods scheduled of {number(pods['total'])}"),
        (number(pods["pending"]), "pods pending at the end"),
        (f"{report['batch']['coreHours']:,.0f}", "core hours of best-effort work"),
        (percent(suppression["withheldShare"]), "of best-effort work withheld"),
        (percent(report["services"]["violationShare"]), "of service time slower than it may be"),
    ]
    inner = "".join(f'<div class="tile"><b>{value}</b><span>{label}</span></div>' for value, label in tiles)
    return f'<div class="tiles">{inner}</div>'


def _charts(report: Report) -> str:
    series: Sequence[Mapping[str, Any]] = report["series"]
    marks = fault_lines.marks(report)
    drawn = partial(chart, marks=marks)
    times = [clock(one["fromSeconds"]) for one in series]

    def of(key: str, scale: float = 1.0) -> list[float]:
        return [scale * one[key] for one in series]

    figures = [
        drawn(
            "CPU, of all that nodes have",
            "%",
            times,
            [
                Line("in use", "blue", of("cpuUsed", 100), filled=True),
                Line("by best-effort work", "green", of("cpuBestEffort", 100), filled=True),
                Line("requested", "grey", of("cpuRequested", 100)),
            ],
        ),
        drawn(
            "Memory, of all that nodes have",
            "%",
            times,
            [Line("in use", "blue", of("memoryUsed", 100), filled=True)],
        ),
        *(
            drawn(
                f"{name}, cores",
                "",
                times,
                [
                    Line("offered", "amber", [one["offered"].get(name, 0.0) for one in series]),
                    Line(
                        "allocated", "green", [one["allocated"].get(name, 0.0) for one in series], filled=True
                    ),
                ],
            )
            for name in report["overcommit"]
            if "cpu" in name
        ),
        drawn(
            "Best-effort CPU withheld, of all that nodes have",
            "%",
            times,
            [Line("withheld", "red", of("cpuWithheld", 100), filled=True)],
        ),
        drawn(
            "Pods",
            "",
            times,
            [
                Line("running", "blue", of("running")),
                Line("pending", "red", of("pending")),
                Line("finished since the point before", "green", of("finished")),
            ],
        ),
        drawn(
            "Response times of services at their objective's percentile, mean, by the model of contention",
            "ms",
            times,
            [Line("response time", "blue", of("tailSeconds", 1000), filled=True)],
        ),
        drawn(
            "Services",
            "",
            times,
            [Line("slower than they may be", "red", of("violatingServices"), filled=True)],
        ),
        drawn(
            "Nodes",
            "",
            times,
            [
                Line("where something is withheld", "amber", of("suppressedNodes")),
                Line("short of CPU for services", "red", of("shortNodes")),
            ],
        ),
        *balance.charts(report, times, marks),
    ]
    drawings = "".join(figures)
    return section("Over time", f'<div class="charts">{drawings}</div>' if drawings else "")


def _foot(report: Report, made: Made | None) -> str:
    policies = report["policies"]
    paths = ", ".join(text(one) for one in policies.get("paths", ()))
    how = "" if made is None else f"<br>{made.html()}"
    return f"<footer>Policies: {paths or 'the built-in pack'}; revision {text(short_digest(policies['digest']))}{how}</footer>"
