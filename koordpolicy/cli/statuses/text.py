"""How a cluster fares, for people in the width of their terminal, and as plain data."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from koordpolicy.cli.counted import counted
from koordpolicy.cli.rollouts.text import span
from koordpolicy.cli.statuses.found import LENT, ClusterStatus, FoundProcess, FoundRevision
from koordpolicy.cli.statuses.waiting import Waiting
from koordpolicy.diagnostics.escaping import safe
from koordpolicy.graph.describe.layout import labelled, paragraph
from koordpolicy.model.protocol import CPU, MEMORY
from koordpolicy.model.time import time_text

_DIGITS: Final = 12
_FEWER_DIGITS: Final = 7
"""Of two revisions in one cell; as Git shortens commits."""
_MOST_REVISIONS: Final = 5
_MOST_DIAGNOSTICS: Final = 5
_MOST_PROCESSES: Final = 20
_MOST_REASONS: Final = 5
_GIB: Final = 1 << 30


def status_lines(status: ClusterStatus, now: int, width: int) -> Iterator[str]:
    """Revisions, processes, nodes, what is lent, what is held back, and at the end what somebody should look at."""
    yield from _revisions(status.revisions, now, width)
    yield ""
    yield from _processes(status, now, width)
    yield ""
    yield from _nodes(status, width)
    yield from labelled("waiting", _waiting(status.waiting), width, indent=0)
    if status.absent or status.forbidden or status.unreadable:
        yield ""
    if status.absent:
        yield from labelled("not served", ", ".join(status.absent) + "; apply deploy/crds", width, indent=0)
    if status.forbidden:
        yield from labelled("forbidden", ", ".join(status.forbidden), width, indent=0)
    for why in status.unreadable[:_MOST_DIAGNOSTICS]:
        yield from labelled("unreadable", why, width, indent=0)
    if len(status.unreadable) > _MOST_DIAGNOSTICS:
        yield from labelled("", f"and {len(status.unreadable) - _MOST_DIAGNOSTICS} more", width, indent=0)
    if status.troubles:
        yield ""
        yield "to look at"
        for trouble in status.troubles:
            yield from paragraph(f"- {trouble}", width, 2, 2)


def _revisions(found: Sequence[FoundRevision], now: int, width: int) -> Iterator[str]:
    if not found:
        yield "no revisions of policies"
        return
    rows: list[Sequence[str]] = [
        ("REVISION", "BUNDLE", "READY", "REASON", "RULES", "PROCESSES", "AGENTS", "AGE")
    ]
    shown = found[:_MOST_REVISIONS]
    for one in shown:
        ready, said = one.ready, one.revision.status
        rows.append(
            (
                named(one.revision.revision),
                one.revision.bundle,
                "" if ready is None else ready.status,
                "" if ready is None else ready.reason,
                "" if said.rules is None else f"{said.rules:,}",
                str(len(said.instances)) if said.instances else "",
                said.agents.words,
                span(now - one.created),
            )
        )
    yield from _table(rows)
    if len(found) > len(shown):
        yield f"and {counted(len(found) - len(shown), 'older one')}"
    for one in shown:
        ready = one.ready
        if ready is None or not one.refused:
            continue
        yield from labelled(named(one.revision.revision), ready.message or ready.reason, width, column=16)
        diagnostics = one.revision.status.diagnostics[:_MOST_DIAGNOSTICS]
        for each in diagnostics:
            place = f"{each.path}:{each.line}:{each.column}: " if each.path else ""
            yield from labelled("", f"{place}{each.code} {each.message}", width, column=16)
        total = one.revision.status.diagnostics_total or 0
        if total > len(diagnostics):
            yield from labelled(
                "",
                f"{total - len(diagnostics)} more: `kubectl describe policyrevision {one.revision.name}`",
                width,
                column=16,
            )


def _processes(status: ClusterStatus, now: int, width: int) -> Iterator[str]:
    if not status.processes and not status.agents and not status.dry_runs:
        yield "no processes: none holds a Lease `koordpolicy-instance-*`"
        return
    marked = list(_table(_process_rows(status, now, marks=True))) if status.processes else []
    fits = max(map(len, marked), default=0) <= width
    if status.processes:
        yield from marked if fits else _table(_process_rows(status, now, marks=False))
    if len(status.processes) > _MOST_PROCESSES:
        yield f"and {counted(len(status.processes) - _MOST_PROCESSES, 'more', '')}"
    if not fits:
        yield from _trials(status.processes, width)
    if status.agents:
        said = ", ".join(
            f"{number:,} run {named(revision) or 'nothing'}" for revision, number in _most(status.agents)
        )
        yield from labelled("agents", said, width, indent=0)
    if status.dry_runs:
        said = ", ".join(
            f"{number:,} by {named(revision) or 'no revision'}" for revision, number in _most(status.dry_runs)
        )
        yield from labelled("dry runs", f"{said}: agents that tell and do nothing", width, indent=0)


def _most(agents: Mapping[str, int]) -> Sequence[tuple[str, int]]:
    """Revisions by how many agents they have, the most first."""
    return sorted(agents.items(), key=lambda item: (-item[1], item[0]))


def _leads(one: FoundProcess) -> str:
    return "yes" if one.leads else ""


def _process_rows(status: ClusterStatus, now: int, *, marks: bool) -> Iterator[Sequence[str]]:
    """The table of processes; with `marks` it says which revision each tries in a rollout."""
    yield "COMPONENT", "INSTANCE", "LEADS", "RUNS", "RENEWED"
    for one in status.processes[:_MOST_PROCESSES]:
        yield one.component, one.instance, _leads(one), _runs(one, marks=marks), _ago(one.renewed, now)


def _trials(found: Sequence[FoundProcess], width: int) -> Iterator[str]:
    """Which revisions are tried by how many processes, where the table has no room for it."""
    for label, tried, verbs, what in (
        (
            "shadow",
            Counter(one.shadows for one in found),
            ("compares its", "compare their"),
            "answers with those of",
        ),
        ("canary", Counter(one.canary for one in found), ("decides", "decide"), "for a part by"),
    ):
        for revision, number in _most({name: count for name, count in tried.items() if name}):
            yield from labelled(
                label, f"{number:,} of these {verbs[number > 1]} {what} {named(revision)}", width, indent=0
            )


def _runs(one: FoundProcess, *, marks: bool) -> str:
    tried = [(word, name) for word, name in (("shadow", one.shadows), ("canary", one.canary)) if name]
    if marks and tried:
        runs = named(one.runs)[:_FEWER_DIGITS] + "".join(
            f" ({word}: {named(name)[:_FEWER_DIGITS]})" for word, name in tried
        )
    else:
        runs = named(one.runs)
    return (
        runs
        + (f" (cannot take {named(one.rejects)})" if one.rejects else "")
        + (f" (back from {named(one.turned_back)})" if one.turned_back else "")
    )


def _ago(moment: int | None, now: int) -> str:
    return "" if moment is None else f"{span(now - moment)} ago"


def _nodes(status: ClusterStatus, width: int) -> Iterator[str]:
    reports = status.reports
    ages = reports.ages
    told = f"{counted(reports.nodes, 'node')}, {len(ages):,} report what they use"
    if ages:
        late = f", {reports.late:,} have missed one" if reports.late else ""
        told += f"{late}: the last reports are {span(ages[0])} to {span(ages[-1])} old, half of them {span(ages[(len(ages) - 1) // 2])} or less"
    yield from labelled("nodes", told, width, indent=0)
    if reports.capacity:
        yield from labelled(
            "in use",
            ", ".join(
                f"{_share(reports.used[each], reports.capacity[each])} of {_amount(each, reports.capacity[each])}"
                for each in (CPU, MEMORY)
                if reports.capacity.get(each)
            ),
            width,
            indent=0,
        )
    front = "lent"
    for one in status.lent:
        kind = LENT[one.resource]
        said = (
            f"{one.resource.partition('/')[2]}: {_amount(kind, one.offered)}, {_share(one.offered, one.of)} of these nodes' own; "
            f"pods ask for {_amount(kind, one.requested)} of it ({_share(one.requested, one.offered)})"
        )
        yield from labelled(front, said, width, indent=0)
        front = ""
    if not status.lent:
        yield from labelled("lent", "nothing: no node offers batch or mid resources", width, indent=0)
    for outside in status.kept_outside:
        said = (
            f"{_amount(CPU, outside.cpu)} and {_amount(MEMORY, outside.memory)} on {counted(outside.nodes, 'node')} "
            f"for {outside.scheduler}, outside Kubernetes"
        )
        yield from labelled("kept", said, width, indent=0)
    held = status.suppressed
    if not held.told:
        said = "no agent says what it leaves to best-effort work"
    elif not held.nodes:
        said = f"nothing, on {counted(held.told, 'node')} that tell"
    else:
        said = (
            f"on {held.nodes:,} of {counted(held.told, 'node')} that tell, best-effort work may use {_amount(CPU, held.allowed)} of "
            f"{_amount(CPU, held.offered)} lent"
        )
    yield from labelled("suppressed", said, width, indent=0)


def _waiting(found: Waiting) -> str:
    if not found.pods:
        return "no pods"
    shown = found.reasons[:_MOST_REASONS]
    others = sum(number for _, number in found.reasons[_MOST_REASONS:])
    said = "; ".join(f"{number:,}: {safe(reason)}" for reason, number in shown)
    more = f"; {others:,} for other reasons" if others else ""
    return f"{counted(found.pods, 'pod')}, the oldest for {span(found.oldest)}. {said}{more}"


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.0f} %" if whole else "-"


def _amount(resource: str, amount: int) -> str:
    """Cores, or GiB."""
    if resource == CPU:
        return f"{amount / 1000:,.1f} cores" if amount < 100_000 else f"{amount / 1000:,.0f} cores"
    return f"{amount / _GIB:,.0f} GiB" if amount >= 100 * _GIB else f"{amount / _GIB:,.1f} GiB"


def named(revision: str) -> str:
    """A commit or a digest, as far as anybody would read it."""
    return revision.removeprefix("sha256:")[:_DIGITS]


def _table(rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Columns as kubectl's; one that is empty in all rows is left out."""
    cells = [tuple(map(safe, row)) for row in rows]
    kept = [at for at in range(len(cells[0])) if any(row[at] for row in cells[1:])]
    widths = [max(len(row[at]) for row in cells) for at in kept]
    for row in cells:
        yield "  ".join(f"{row[at]:<{wide}}" for at, wide in zip(kept, widths, strict=True)).rstrip()


def status_data(status: ClusterStatus) -> Mapping[str, Any]:
    """The same for programs: CPU in millicores, memory in bytes, ages in seconds, all revisions and processes."""
    reports, held = status.reports, status.suppressed
    return {
        "revisions": [_revision(one) for one in status.revisions],
        "processes": [
            {
                "component": one.component,
                "instance": one.instance,
                "renewed": None if one.renewed is None else time_text(one.renewed),
                "runs": one.runs or None,
                "rejects": one.rejects or None,
                "turnedBack": one.turned_back or None,
                "shadows": one.shadows or None,
                "canary": one.canary or None,
                "leads": list(one.leads),
                "sourceTrouble": one.source_trouble or None,
            }
            for one in status.processes
        ],
        "agents": [
            {"revision": revision or None, "agents": number}
            for revision, number in sorted(status.agents.items())
        ],
        "dryRunAgents": [
            {"revision": revision or None, "agents": number}
            for revision, number in sorted(status.dry_runs.items())
        ],
        "nodes": {
            "total": reports.nodes,
            "reporting": len(reports.ages),
            "late": reports.late,
            "reportAges": {
                "youngest": reports.ages[0] / 1e9,
                "median": reports.ages[(len(reports.ages) - 1) // 2] / 1e9,
                "oldest": reports.ages[-1] / 1e9,
            }
            if reports.ages
            else None,
            "used": dict(reports.used),
            "capacity": dict(reports.capacity),
        },
        "lent": [
            {
                "resource": one.resource,
                "nodes": one.nodes,
                "capacity": one.of,
                "offered": one.offered,
                "requested": one.requested,
            }
            for one in status.lent
        ],
        "keptOutside": [
            {
                "scheduler": one.scheduler,
                "cpu": one.cpu,
                "memory": one.memory,
                "nodes": one.nodes,
            }
            for one in status.kept_outside
        ],
        "suppressed": {
            "told": held.told,
            "nodes": held.nodes,
            "offered": held.offered,
            "allowed": held.allowed,
        },
        "waiting": {
            "pods": status.waiting.pods,
            "oldest": status.waiting.oldest / 1e9,
            "reasons": [{"reason": reason, "pods": number} for reason, number in status.waiting.reasons],
        },
        "notServed": list(status.absent),
        "forbidden": list(status.forbidden),
        "unreadable": list(status.unreadable),
        "troubles": list(status.troubles),
    }


def _revision(one: FoundRevision) -> Mapping[str, Any]:
    ready, said = one.ready, one.revision.status
    return {
        "name": one.revision.name,
        "bundle": one.revision.bundle,
        "revision": one.revision.revision,
        "created": time_text(one.created),
        "ready": None if ready is None else ready.status,
        "reason": None if ready is None else ready.reason,
        "message": None if ready is None else ready.message,
        "rules": said.rules,
        "processes": len(said.instances),
        "agents": said.agents.words or None,
        "diagnostics": said.diagnostics_total or len(said.diagnostics),
    }
