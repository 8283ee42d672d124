"""The report of a simulation as one page of HTML: no scripts, nothing from elsewhere, readable in the dark and on paper."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from html import escape
from typing import Any, Final

from koordpolicy.cli.counted import counted, number
from koordpolicy.cli.simulation import balance, fault_lines
from koordpolicy.cli.simulation.charts import Line, chart
from koordpolicy.cli.simulation.made import Made, short_digest
from koordpolicy.cli.simulation.words import clock, length, milliseconds, percent, size, waits_note
from koordpolicy.diagnostics.escaping import safe

Report = Mapping[str, Any]

_STYLE: Final = """
:root{--ink:#1c2330;--soft:#5b6575;--page:#fff;--card:#f5f7fa;--edge:#d9dee6;
--blue:#2563c9;--green:#18864b;--amber:#b45f06;--red:#c02b2b;--grey:#7a8494}
@media (prefers-color-scheme:dark){:root{--ink:#e6e9ef;--soft:#a0a9b8;--page:#12161d;--card:#1b212b;--edge:#343d4b;
--blue:#78a9ff;--green:#5fd08f;--amber:#f0a955;--red:#ff7b7b;--grey:#98a2b3}}
*{box-sizing:border-box}
body{margin:0 auto;max-width:1100px;padding:24px;background:var(--page);color:var(--ink);font:15px/1.5 system-ui,sans-serif}
h1{font-size:24px;margin:0 0 4px}h2{font-size:17px;margin:32px 0 10px}p{margin:4px 0;color:var(--soft)}
.tiles{display:grid;grid-template-columns:repeat(4,1fr);gap:12px;margin:20px 0}
.tile{background:var(--card);border:1px solid var(--edge);border-radius:8px;padding:12px 14px}
.tile b{display:block;font-size:22px;font-variant-numeric:tabular-nums}.tile span{color:var(--soft);font-size:13px}
.charts{display:grid;grid-template-columns:repeat(auto-fit,minmax(430px,1fr));gap:16px}
figure{margin:0;background:var(--card);border:1px solid var(--edge);border-radius:8px;padding:12px;break-inside:avoid}
figcaption{font-weight:600;margin-bottom:4px}svg{width:100%;height:auto;display:block}
svg text{font:12px system-ui,sans-serif;fill:var(--soft)}.grid{stroke:var(--edge);fill:none}
.line{fill:none;stroke:currentColor;stroke-width:2;stroke-linejoin:round}.area{fill:currentColor;opacity:.15}
.mark{fill:none;stroke:currentColor;stroke-width:2;stroke-dasharray:3 4}
.tip{fill:transparent}.tip:hover{fill:var(--ink);opacity:.08}
.blue{color:var(--blue)}.green{color:var(--green)}.amber{color:var(--amber)}.red{color:var(--red)}.grey{color:var(--grey)}
.legend{display:flex;flex-wrap:wrap;gap:4px 16px;font-size:13px;margin-top:6px}
.key::before{content:"";display:inline-block;width:14px;height:3px;background:currentColor;margin-right:6px;vertical-align:middle}
.wide{overflow-x:auto}table{border-collapse:collapse;width:100%;font-size:14px}
th,td{text-align:left;padding:6px 10px;border-bottom:1px solid var(--edge);vertical-align:top;overflow-wrap:anywhere}
th{color:var(--soft);font-weight:600}.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
footer{margin-top:32px;color:var(--soft);font-size:13px;overflow-wrap:anywhere}
@media (max-width:700px){.tiles{grid-template-columns:1fr 1fr}.charts{grid-template-columns:1fr}}
@media print{:root{--ink:#000;--soft:#444;--page:#fff;--card:#fff;--edge:#bbb;--blue:#1f4fa8;--green:#0f6b3a;--amber:#8a4a00;
--red:#a01f1f;--grey:#555}body{max-width:none;padding:0;font-size:12px}.charts{grid-template-columns:1fr 1fr}h2{break-after:avoid}
tr{break-inside:avoid}}
"""

_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'"


def page(report: Report, made: Made | None = None) -> str:
    """The whole page, and at its end how it was made."""
    title = report["workload"]["title"] or "Simulation"
    body = "\n".join(
        part for part in (*_head(report, title), _tiles(report), _charts(report), *_tables(report)) if part
    )
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{_text(title)}</title><style>{_STYLE}</style></head>\n<body>\n{body}\n{_foot(report, made)}\n</body></html>\n"
    )


def _text(said: object) -> str:
    """What somebody else wrote, as text and nothing else."""
    return escape(safe(str(said)))


def _head(report: Report, title: str) -> Iterator[str]:
    workload = report["workload"]
    yield f"<h1>{_text(title)}</h1>"
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
    drawn = partial(chart, marks=fault_lines.marks(report))
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
        *balance.charts(report, times),
    ]
    return f'<h2>Over time</h2><div class="charts">{"".join(figures)}</div>'


def _tables(report: Report) -> Iterator[str]:
    waits = report["scheduling"]["waitSeconds"]
    yield _table(
        "Scheduling",
        ("", "mean", "median", "95 %", "most"),
        [("Wait for a node", *(length(waits[key]) for key in ("mean", "p50", "p95", "max")))],
    )
    if waits["max"]:
        placed, note = report["scheduling"], waits_note(report["workload"]["intervalSeconds"])
        yield (
            f"<p>{number(placed['placedAtOnce'])} at once, {number(placed['placedWithReports'])} with a report of agents;"
            f" {note}.</p>"
        )
    services = report["services"]
    yield _table(
        "Services, by the model of contention",
        ("Service hours", "median", "at the objective", "slower than they may be", "node time short of CPU"),
        [
            (
                number(services["minutes"] / 60),
                milliseconds(services["medianSeconds"]),
                milliseconds(services["tailSeconds"]),
                percent(services["violationShare"]),
                percent(services["shortOfNodeTime"]),
            )
        ],
    )
    yield _table(
        "Overcommitted resources",
        ("Resource", "offered, mean", "allocated, mean", "allocated, most"),
        [
            (name, *(_amount(name, one[key]) for key in ("offeredMean", "allocatedMean", "allocatedMax")))
            for name, one in report["overcommit"].items()
        ],
    )
    free = report["fragmentation"]
    yield _table(
        "Free CPU at the end",
        ("Cores free", "in pieces too small", "a piece"),
        [
            (
                f"{free['freeCores']:,.1f}",
                percent(free["stranded"]),
                f"{free['pieceCores']:g} cores, the median request",
            )
        ],
    )
    for key, title in (("pending", "Why pods are pending"), ("refused", "Why pods were refused")):
        yield _table(
            title,
            ("Pods", "Reason", "Such as"),
            [(number(one["pods"]), one["reason"], one["example"]) for one in report[key]],
        )
    evictions = (report["agents"] or {}).get("evictions", {})
    yield _table(
        "Evictions", ("Reason", "Pods"), [(reason, number(count)) for reason, count in evictions.items()]
    )
    yield _table("Faults", *fault_lines.table(report))
    yield _table("Balance of nodes", *balance.table(report))
    yield _table(
        "Evaluations that failed",
        ("Times", "Rule", "Such as", "Error"),
        [
            (number(one["times"]), one["place"], one["example"], one["error"])
            for one in report["failedEvaluations"]
        ],
    )


def _amount(name: str, amount: float) -> str:
    return f"{amount:,.1f} cores" if "cpu" in name else size(amount)


def _table(title: str, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    if not rows:
        return ""
    top = "".join(
        f"<th{_numeric(cell)}>{_text(head)}</th>" for head, cell in zip(heads, rows[0], strict=True)
    )
    lines = "".join(
        "<tr>" + "".join(f"<td{_numeric(cell)}>{_text(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    return f'<h2>{_text(title)}</h2><div class="wide"><table><thead><tr>{top}</tr></thead><tbody>{lines}</tbody></table></div>'


def _numeric(cell: str) -> str:
    return ' class="n"' if cell[:1].isdigit() and len(cell) < 16 else ""


def _foot(report: Report, made: Made | None) -> str:
    policies = report["policies"]
    paths = ", ".join(_text(one) for one in policies.get("paths", ()))
    how = "" if made is None else f"<br>{made.html()}"
    return f"<footer>Policies: {paths or 'the built-in pack'}; revision {_text(short_digest(policies['digest']))}{how}</footer>"
