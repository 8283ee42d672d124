"""The report of a simulation as text."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from koordpolicy.cli.counted import counted, number
from koordpolicy.cli.failed import failure_text
from koordpolicy.cli.simulation import balance, fault_lines
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
    milliseconds,
    percent,
    size,
    waits_note,
)
from koordpolicy.graph.failed import FailedRule

Report = Mapping[str, Any]
_MOST_REASONS = 8


def render(report: Report, page: Page, made: Made | None = None) -> str:
    """The whole report, and at its end how it was made."""
    sections = (
        _head,
        _failed,
        fault_lines.section,
        _pods,
        _reasons,
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
    lines: list[str] = []
    for section in sections:
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
    shown = [("scheduled", "scheduled"), ("pending", "pending"), ("refused", "refused")]
    if pods["notOurs"]:
        shown.append(("notOurs", "not ours"))
    if pods["notArrived"]:
        shown.append(("notArrived", "not arrived yet"))
    for key, label in shown:
        share = pods[key] / pods["total"] if pods["total"] else 0.0
        told = f"  {label:16}{number(pods[key]):>9}  {percent(share):>7}  "
        yield (told + page.paint(bar(share, page.width - len(told)), CYAN)).rstrip()
    yield page.paint(
        f"  of the scheduled ones {number(pods['finished'])} {'has' if pods['finished'] == 1 else 'have'} finished, {number(pods['running'])} {'runs' if pods['running'] == 1 else 'run'} on",
        DIM,
    )
    if pods["placedAnew"]:
        one = pods["placedAnew"] == 1
        told = (
            f"{counted(pods['placedAnew'], 'pod')} {'was' if one else 'were'} on a node already and {'was' if one else 'were'}"
            f" placed anew, as if just created: {number(pods['onOtherNodes'])} on another node than before"
        )
        yield from (page.paint(line, DIM) for line in page.wrapped(told, 2))
    drawn = report["colocation"]
    if not drawn["enabled"]:
        yield "  without co-location: no profiles, nothing offered, nothing suppressed"
    elif drawn["bands"]:
        told = ", ".join(f"{number(count)} on {band} resources" for band, count in drawn["bands"].items())
        names = ", ".join(f"`{name}`" for name in drawn["profiles"])
        yield from page.wrapped(f"drawn into co-location: {told}, by {names}", 2)
    else:
        yield "  drawn into co-location: none (no ColocationProfile matches a pod)"


def _reasons(report: Report, page: Page) -> Iterator[str]:
    for key, heading in (("pending", "Why pods are pending"), ("refused", "Why pods were refused")):
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

    others = report["notOurs"]
    if others:
        yield page.heading("Pods that are not ours: no SchedulingProfile is for their scheduler")
        for one in others[:_MOST_REASONS]:
            yield from page.wrapped(
                f"of `{one['scheduler']}`, such as {one['example']}", 10, f"{number(one['pods']):>8}"
            )


def _admission(report: Report, page: Page) -> Iterator[str]:
    """The rules that were broken without refusing, or where a pod was to be deleted; the others are reasons of refusals."""
    broken = [
        one
        for one in report["admission"]["broken"]
        if (one["operation"], one["enforcement"]) != ("CREATE", "enforce")
    ]
    if not broken:
        return
    yield page.heading("Admission rules that were broken otherwise")
    for one in broken[:_MOST_REASONS]:
        yield from page.wrapped(
            f"`{one['name']}` on {one['operation']}, enforcement `{one['enforcement']}`: such as {one['example']}",
            10,
            f"{number(one['times']):>8}",
        )
        for line in page.wrapped(one["rule"], 10):
            yield page.paint(line, DIM)
    kept = report["admission"]["kept"]
    if kept:
        yield f"  {counted(kept, 'pod')} that {'was' if kept == 1 else 'were'} over {'was' if kept == 1 else 'were'} kept by them"


def _scheduling(report: Report, page: Page) -> Iterator[str]:
    scheduling, waits = report["scheduling"], report["scheduling"]["waitSeconds"]
    yield page.heading("Scheduling", counted(scheduling["attempts"], "attempt"))
    yield from page.wrapped(
        f"time until placed: mean {length(waits['mean'])}, median {length(waits['p50'])},"
        f" 95 % within {length(waits['p95'])}, longest {length(waits['max'])}",
        2,
    )
    if waits["max"]:
        told = (
            f"{number(scheduling['placedAtOnce'])} at once, {number(scheduling['placedWithReports'])} with a report of agents;"
            f" {waits_note(report['workload']['intervalSeconds'])}"
        )
        yield from (page.paint(line, DIM) for line in page.wrapped(told, 2))
    events = [f"{number(one['count'])} {reason}" for reason, one in report["events"]["reasons"].items()]
    if events:
        dropped = report["events"]["dropped"]
        more = f"; {number(dropped)} more were too many of one pod" if dropped else ""
        yield from page.wrapped(f"Events: {', '.join(events)}{more}", 2)
    volumes = report["volumes"]
    if volumes["bound"]:
        yield from page.wrapped(
            f"claims bound: {number(volumes['bound'])}, {number(volumes['made'])} of them to volumes that their"
            " classes made at once, for the zone or node of the first pod where a class waits for one",
            2,
        )


def _utilisation(report: Report, page: Page) -> Iterator[str]:
    yield page.heading("Utilisation")
    yield page.paint(f"  {'':26}{'mean':>9}{'p95':>9}{'highest':>9}", DIM)
    labels = {
        "cpuUsed": "CPU in use",
        "cpuRequested": "CPU requested",
        "cpuBestEffort": "CPU used by best effort",
        "memoryUsed": "memory in use",
    }
    for key, label in labels.items():
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
        tail = f"{percent(one['cpuUsed']):>8}  {number(one['running']):>6} pods"
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
    """How services answered, which is a model's answer."""
    one = report["services"]
    if not one["minutes"]:
        return
    yield page.heading("Services", f"{number(one['minutes'] / 60)} service hours")
    yield from page.wrapped(
        f"median {milliseconds(one['medianSeconds'])}, at the objective's percentile {milliseconds(one['tailSeconds'])}, in the mean",
        19,
        "  response times",
    )
    yield from page.wrapped(
        f"{percent(one['violationShare'])} of service time slower than it may be ({number(one['violationMinutes'])} minutes);"
        f" {percent(one['shortOfNodeTime'])} of node time without the CPU that services wished",
        19,
        "  objectives",
    )


def _suppression(report: Report, page: Page) -> Iterator[str]:
    one = report["suppression"]
    if not one["hostingNodeHours"]:
        return
    yield page.heading(
        "Suppression", f"{counted(one['hostingNodeHours'], 'node hour')} with best-effort work"
    )
    if not one["withheldCoreHours"]:
        yield "  best-effort work got all the CPU that it wished for"
        return
    yield f"  at work          {percent(one['shareOfNodeTime'])} of those"
    yield from page.wrapped(
        f"{counted(one['withheldCoreHours'], 'core hour')}, {percent(one['withheldShare'])} of what best-effort"
        " work wished",
        19,
        "  withheld",
    )
    lowest = one["lowest"]
    yield from page.wrapped(
        f"{number(lowest['target'])} of {counted(lowest['capacity'], 'core')}, on {lowest['node']},"
        f" {clock(lowest['atSeconds'])}",
        19,
        "  lowest target",
    )


def _agents(report: Report, page: Page) -> Iterator[str]:
    one = report["agents"]
    if one is None:
        return
    yield page.heading(
        "Agents", f"{counted(one['rounds'], 'round')} on models of {counted(one['nodes'], 'kernel')}"
    )
    evictions: Mapping[str, int] = one["evictions"]
    told = ", ".join(f"{number(pods)} for {reason}" for reason, pods in evictions.items()) or "none"
    refused = f", {number(one['refusedWrites'])} refused" if one["refusedWrites"] else ""
    for label, text in (
        ("kernel files", f"written {number(one['fileWrites'])} times{refused}"),
        ("evictions", told),
        ("OOM killer", f"{counted(one['oomKills'], 'container')} ended"),
        ("throttled", f"{counted(one['throttledContainerHours'], 'container hour')}"),
        ("at work", ", ".join(one["strategies"])),
        ("not simulated", ", ".join(one["notSimulated"])),
    ):
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
