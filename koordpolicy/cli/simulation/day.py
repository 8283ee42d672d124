"""The summary of a day that was simulated twice: with and without co-location."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from koordpolicy.cli.counted import counted, number
from koordpolicy.cli.simulation import balance
from koordpolicy.cli.simulation.explained import explained, held
from koordpolicy.cli.simulation.words import (
    BOLD,
    CYAN,
    DIM,
    GREEN,
    YELLOW,
    Page,
    clock,
    length,
    percent,
)

Report = Mapping[str, Any]


def render_day(without: Report, colocated: Report, page: Page, example: str) -> str:
    """Utilisation of both, what was suppressed and why, why one pod landed where it did, what to try next."""
    lines: list[str] = []
    for section in (
        _head(colocated, page),
        _hours(without, colocated, page),
        _sums(without, colocated, page),
        _suppressed(colocated, page),
        *(explained(one, page) for one in colocated["explained"]),
        _next(colocated, page, example),
    ):
        told = list(section)
        lines += [*told, ""] if told else []
    return "\n".join(lines[:-1]) + "\n"


def _head(report: Report, page: Page) -> Iterator[str]:
    workload, pods = report["workload"], report["pods"]
    yield page.paint("A co-located day", BOLD)
    yield from page.wrapped(
        f"{counted(workload['nodes'], 'node')} with {counted(workload['cpu'], 'core')}. Services have requested"
        f" {percent(report['utilisation']['cpuRequested']['max'])} of the CPU and use far less;"
        f" batch jobs come all day, {counted(pods['total'], 'pod')} in all. Policies make the jobs best-effort"
        " work on what is left over, and hold them back before services feel it.",
        0,
    )


def _hours(without: Report, colocated: Report, page: Page) -> Iterator[str]:
    yield page.heading("CPU in use, hour by hour", "█ without co-location, ▒ added by it")
    yield page.paint(f"  {'':6}{'':41}{'without':>9}{'with':>8}  held back on", DIM)
    room = 39
    for before, after in zip(without["series"], colocated["series"], strict=True):
        base, gained = before["cpuUsed"], max(after["cpuUsed"] - before["cpuUsed"], 0.0)
        drawn = "█" * round(base * room)
        added = "▒" * (round((base + gained) * room) - len(drawn))
        blank = " " * (room + 2 - len(drawn) - len(added))
        nodes = after["suppressedNodes"]
        told = page.paint(f"{nodes:>4.0f} node{'' if nodes == 1 else 's'}", YELLOW) if nodes else ""
        yield (
            f"  {clock(after['fromSeconds']):6}{page.paint(drawn, CYAN)}{page.paint(added, GREEN)}{blank}"
            f"{percent(base):>8}{percent(after['cpuUsed']):>8}  {told}"
        ).rstrip()


def _sums(without: Report, colocated: Report, page: Page) -> Iterator[str]:
    yield page.heading("The day in figures")
    yield page.paint(f"  {'':44}{'without':>12}{'with':>12}", DIM)
    rows: tuple[tuple[str, Callable[[Report], str]], ...] = (
        ("CPU in use, mean", lambda one: percent(one["utilisation"]["cpuUsed"]["mean"])),
        ("CPU in use, highest", lambda one: percent(one["utilisation"]["cpuUsed"]["max"])),
        ("pods scheduled", lambda one: number(one["pods"]["scheduled"])),
        ("jobs finished", lambda one: number(one["pods"]["finished"])),
        ("pods still pending at the end", lambda one: number(one["pods"]["pending"])),
        (
            "wait of those that were placed, mean",
            lambda one: length(one["scheduling"]["waitSeconds"]["mean"]),
        ),
        (
            "wait of those that were placed, 95 % within",
            lambda one: length(one["scheduling"]["waitSeconds"]["p95"]),
        ),
    )
    for label, show in rows:
        yield f"  {label:44}{show(without):>12}{show(colocated):>12}"
    for label, show in balance.sums(without, colocated):
        yield f"  {label:44}{show(without):>12}{show(colocated):>12}"
    for name, one in colocated["overcommit"].items():
        if name.endswith("-cpu"):
            for label, key in (("offered", "offeredMean"), ("allocated", "allocatedMean")):
                cores = counted(one[key], "core")
                yield f"  {f'{name} {label}, mean':44}{'':>12}{cores:>12}"


def _suppressed(report: Report, page: Page) -> Iterator[str]:
    one = report["suppression"]
    yield page.heading("What was suppressed, when and why")
    if not one["withheldCoreHours"]:
        yield "  Nothing: best-effort work got all the CPU that it wished for."
        return
    yield from page.wrapped(
        f"Best-effort work got {counted(one['givenCoreHours'], 'core hour')}; {number(one['withheldCoreHours'])} more"
        f" ({percent(one['withheldShare'])} of its wish) were withheld from it, in"
        f" {percent(one['shareOfNodeTime'])} of the time that nodes had such work.",
        2,
    )
    yield from held(one["worst"], page)


def _next(report: Report, page: Page, example: str) -> Iterator[str]:
    yield page.heading("Try next")
    yield from page.wrapped(f"Put one more document at the end of {example}/policies/batch.yaml:", 2)
    yield ""
    for line in _SUGGESTION:
        yield "    " + page.paint(line, CYAN)
    yield ""
    yield "  and run it again: `make demo`. Best-effort work may then fill nodes to 80 %."
    yield page.paint(
        f"  policies {report['policies']['digest'][:12]}; simulated in {length(report['wallSeconds'])}", DIM
    )


_SUGGESTION = (
    "---",
    "apiVersion: koordpolicy.io/v1alpha1",
    "kind: CPUSuppress",
    "metadata: {name: generous}",
    "spec: {parameters: {threshold: 80%}}",
)
