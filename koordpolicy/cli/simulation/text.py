"""The report of a simulation as text."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from koordpolicy.cli.counted import counted, number
from koordpolicy.cli.failed import failure_text
from koordpolicy.cli.simulation import balance, fault_lines, said
from koordpolicy.cli.simulation.explained import explained, untried
from koordpolicy.cli.simulation.made import Made, short_digest
from koordpolicy.cli.simulation.words import (
    CYAN,
    DIM,
    YELLOW,
    Page,
    bar,
    clock,
    length,
    percent,
    size,
)
from koordpolicy.graph.failed import FailedRule

Report = Mapping[str, Any]
_MOST_REASONS = 8


def render(report: Report, page: Page, made: Made | None = None) -> str:
    """The whole report, and at its end how it was made."""
    lines: list[str] = []
    for section in (_head, *SECTIONS):
        told = list(section(report, page))
        lines += [*told, ""] if told else []
    for one in report["explained"]:
        lines += [*explained(one, page), ""]
    for one in report["untried"]:
        lines += [*untried(one, page), ""]
    lines += list(_policies(report, page))
    lines += [] if made is None else list(made.lines(page))
    return "\n".join(lines) + "\n"


def _head(report: Report, page: Page) -> Iterator[str]:
    workload = report["workload"]
    if workload["title"]:
        yield from page.wrapped(workload["title"], 0)
    yield page.paint(
        f"{counted(workload['nodes'], 'node')} with {counted(workload['cpu'], 'core')} and {size(workload['memory'])},"
        f" {length(workload['seconds'])} in steps of {length(workload['intervalSeconds'])}",
        DIM,
    )
    if report["interruptedAtSeconds"] is not None:
        told = (
            f"interrupted at {clock(report['interruptedAtSeconds'])}; all that follows is of the time before"
        )
        yield page.paint(told, YELLOW)


def _failed(report: Report, page: Page) -> Iterator[str]:
    failed: Sequence[Mapping[str, Any]] = report["failedEvaluations"]
    if not failed:
        return
    times = sum(one["times"] for one in failed)
    yield page.heading("Evaluations that failed", f"{number(times)} in all")
    for one in failed[:_MOST_REASONS]:
        yield from page.wrapped(failure_text(FailedRule(**one)), 10, f"{number(one['times']):>8}")
        for line in page.wrapped(f"such as {one['example']}: {one['error']}", 10):
            yield page.paint(line, DIM)
    if len(failed) > _MOST_REASONS:
        rest = sum(one["times"] for one in failed[_MOST_REASONS:])
        yield f"{number(rest):>8}  of {len(failed) - _MOST_REASONS} other rules (see --output json)"


def _pods(report: Report, page: Page) -> Iterator[str]:
    pods = report["pods"]
    yield page.heading("Pods", f"{number(pods['total'])} in all")
    for label, count in said.pods_by_fate(report):
        share = count / pods["total"] if pods["total"] else 0.0
        told = f"  {label:16}{number(count):>9}  {percent(share):>7}  "
        yield (told + page.paint(bar(share, page.width - len(told)), CYAN)).rstrip()
    yield page.paint(f"  {said.finished(pods)}", DIM)
    if anew := said.placed_anew(pods):
        yield from (page.paint(line, DIM) for line in page.wrapped(anew, 2))
    yield from page.wrapped(said.colocation(report["colocation"]), 2)


def _reasons(report: Report, page: Page) -> Iterator[str]:
    for key, heading in said.REASONS:
        reasons: Sequence[Mapping[str, Any]] = report[key]
        if not reasons:
            continue
        yield page.heading(heading)
        for one in reasons[:_MOST_REASONS]:
            yield from page.wrapped(one["reason"], 10, f"{number(one['pods']):>8}")
            told = f"such as {one['example']}" + (f": {one['message']}" if one.get("message") else "")
            for line in page.wrapped(told, 10):
                yield page.paint(line, DIM)
        if len(reasons) > _MOST_REASONS:
            rest = sum(one["pods"] for one in reasons[_MOST_REASONS:])
            yield f"{number(rest):>8}  for {len(reasons) - _MOST_REASONS} other reasons (see --output json)"


def _not_ours(report: Report, page: Page) -> Iterator[str]:
    others = report["notOurs"]
    if others:
        yield page.heading(said.NOT_OURS)
        for one in others[:_MOST_REASONS]:
            yield from page.wrapped(
                f"of `{one['scheduler']}`, such as {one['example']}", 10, f"{number(one['pods']):>8}"
            )


def _admission(report: Report, page: Page) -> Iterator[str]:
    broken = said.broken_otherwise(report)
    if not broken:
        return
    yield page.heading(said.ADMISSION)
    for one in broken[:_MOST_REASONS]:
        yield from page.wrapped(
            f"`{one['name']}` on {one['operation']}, enforcement `{one['enforcement']}`: such as {one['example']}",
            10,
            f"{number(one['times']):>8}",
        )
        for line in page.wrapped(one["rule"], 10):
            yield page.paint(line, DIM)
    if kept := said.kept(report):
        yield f"  {kept}"


def _scheduling(report: Report, page: Page) -> Iterator[str]:
    yield page.heading("Scheduling", counted(report["scheduling"]["attempts"], "attempt"))
    for told in (said.waits(report["scheduling"]["waitSeconds"]), *said.scheduling(report)):
        yield from page.wrapped(told, 2)


def _utilisation(report: Report, page: Page) -> Iterator[str]:
    yield page.heading("Utilisation")
    yield page.paint(f"  {'':26}{'mean':>9}{'p95':>9}{'highest':>9}", DIM)
    for key, label in said.UTILISATION.items():
        one = report["utilisation"][key]
        told = f"  {label:26}{percent(one['mean']):>9}{percent(one['p95']):>9}{percent(one['max']):>9}  "
        yield (told + page.paint(bar(one["mean"], page.width - len(told)), CYAN)).rstrip()


def _series(report: Report, page: Page) -> Iterator[str]:
    series = report["series"]
    if len(series) < 2:
        return
    highest = max(0.01, *(one["cpuUsed"] for one in series))
    # Small figures need a scale of their own, or all bars look alike.
    scale = next(step for step in (0.05, 0.1, 0.25, 0.5, 1.0) if highest <= step or step == 1.0)
    yield page.heading("CPU in use over time", f"full bar: {100 * scale:.0f} % of the cluster")
    daily = report["workload"]["seconds"] <= 48 * 3600
    for one in series:
        at = clock(one["fromSeconds"]) if daily else f"day {int(one['fromSeconds'] // 86_400)}"
        tail = f"{percent(one['cpuUsed']):>8}  {number(one['running']):>6} {'pod ' if one['running'] == 1 else 'pods'}"
        room = page.width - 16 - len(tail)
        yield f"  {at:>13} {page.paint(bar(one['cpuUsed'] / scale, room).ljust(room), CYAN)}{tail}"


def _overcommit(report: Report, page: Page) -> Iterator[str]:
    resources = report["overcommit"]
    if not resources:
        return
    yield page.heading("Overcommit")
    yield page.paint(f"  {'':28}{'offered':>14}{'allocated':>14}{'most':>14}", DIM)
    for name, one in resources.items():
        show = size if "memory" in name else (lambda cores: counted(cores, "core"))
        yield (
            f"  {name:28}{show(one['offeredMean']):>14}{show(one['allocatedMean']):>14}"
            f"{show(one['allocatedMax']):>14}"
        )


def _services(report: Report, page: Page) -> Iterator[str]:
    one = report["services"]
    rows = list(said.services(one))
    if rows:
        yield page.heading("Services", f"{number(one['minutes'] / 60)} service hours")
        yield from _rows(rows, page)


def _suppression(report: Report, page: Page) -> Iterator[str]:
    one = report["suppression"]
    if not one["hostingNodeHours"]:
        return
    yield page.heading("Suppression", said.hosting(one))
    rows = list(said.suppression(one))
    yield from _rows(rows, page) if rows else (f"  {said.NOTHING_WITHHELD}",)


def _agents(report: Report, page: Page) -> Iterator[str]:
    one = report["agents"]
    if one is not None:
        yield page.heading("Agents", said.rounds(one))
        yield from _rows(said.agents(one), page)


def _rows(rows: Iterable[tuple[str, str]], page: Page) -> Iterator[str]:
    for label, text in rows:
        yield from page.wrapped(text, 19, f"  {label}")


def _policies(report: Report, page: Page) -> Iterator[str]:
    policies = report["policies"]
    told = f"policies {short_digest(policies['digest'])}"
    if policies.get("paths"):
        told += f" from {', '.join(policies['paths'])}"
    if "wallSeconds" in report:
        told += f"; simulated in {length(report['wallSeconds'])}"
    for line in page.wrapped(told, 0):
        yield page.paint(line, DIM)


SECTIONS: Final = (
    _failed,
    fault_lines.section,
    _pods,
    _reasons,
    _not_ours,
    _admission,
    _scheduling,
    _utilisation,
    _series,
    _overcommit,
    _services,
    _suppression,
    balance.section,
    _agents,
)
"""Each with its heading, or nothing where a report has nothing of it. Those of pages are `sections.SECTIONS`, by the same headings."""
