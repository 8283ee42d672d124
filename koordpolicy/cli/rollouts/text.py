"""Rollouts and plans for people, in the width of their terminal, and as plain data."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from koordpolicy.cli.counted import counted
from koordpolicy.cli.rollouts.found import FoundRollout
from koordpolicy.graph.describe.layout import labelled, paragraph
from koordpolicy.model.labels import LabelRequirement, LabelSelector, Operator
from koordpolicy.model.policy_revision import RevisionAgents, agents_to_json
from koordpolicy.model.time import time_text
from koordpolicy.runtime.rollout.plan import RolloutPlan, RolloutStep
from koordpolicy.runtime.rollout.state import Phase, RolloutProgress, to_json

_SECOND = 10**9
_SHORT = 12
_PLACING = "SchedulingProfile"


def table(found: Iterable[FoundRollout], now: int, width: int) -> Iterator[str]:
    """One line a rollout: revision, phase, step, how long in it, what was compared."""
    rows = [("REVISION", "PHASE", "STEP", "FOR", "COMPARED", "DIFFERENT")]
    for one in found:
        state, total = one.state, one.gathered.counts.total
        ended = state.phase.is_end
        rows.append(
            (
                short(state),
                str(state.phase),
                "" if state.phase is Phase.COMPLETE else state.step,
                "" if ended else span(now - state.since),
                f"{total.compared:,}" if total.compared else "",
                _share(one) if total.compared else "",
            )
        )
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    widths[2] = min(widths[2], max(8, width - sum(widths) + widths[2] - 2 * len(widths)))
    for row in rows:
        cells = (f"{cell[:size]:<{size}}" for cell, size in zip(row, widths, strict=True))
        yield "  ".join(cells).rstrip()


def details(one: FoundRollout, now: int, width: int) -> Iterator[str]:
    """All that is known of one rollout."""
    state, gathered = one.state, one.gathered
    subject, total = state.subject, gathered.counts.total
    yield f"{subject.bundle} {_named(subject.revision)}"
    yield from labelled("phase", f"{state.phase}", width)
    if not state.phase.is_end:
        since = f"`{state.step}` ({state.index + 1}), for {span(now - state.since)}"
        paused = state.paused + (now - state.paused_at if state.paused_at is not None else 0)
        yield from labelled("step", since + (f", {span(paused)} of it paused" if paused else ""), width)
    if state.message:
        yield from labelled("because" if state.phase.is_end else "says", state.message, width)
    if one.asked:
        yield from labelled("asked", f"to {one.asked}, not obeyed yet", width)
    yield from labelled("after", _named(subject.previous) or "nothing", width)
    yield from labelled("began", time_text(state.began), width)
    if gathered.instances:
        agents = f", {gathered.agents.seen:,} of them agents" if gathered.agents.seen else ""
        rejected = f", {gathered.rejected} of them cannot take it" if gathered.rejected else ""
        yield from labelled(
            "seen by", counted(gathered.instances, "process", "es") + agents + rejected, width
        )
    yield from _agents(gathered.agents, width)
    if total.compared:
        yield from labelled("compared", f"{counted(total.compared, 'decision')}, {_share(one)} differ", width)
        for kind, tally in sorted(gathered.counts.kinds.items()):
            failed = f", {tally.failed:,} fail" if tally.failed else ""
            yield from labelled(
                "", f"{kind}: {tally.different:,} of {tally.compared:,} differ{failed}", width
            )
    if state.failing and not state.phase.is_end:
        guards = ", ".join(
            f"`{guard}` for {span(now - since)}" for guard, since in sorted(state.failing.items())
        )
        yield from labelled("failing", guards, width)
    yield ""
    for entry in state.history:
        by = "" if entry.by in ("koordpolicy", "") or entry.by in entry.message else f" ({entry.by})"
        yield from paragraph(f"{time_text(entry.at)} {entry.message}{by}", width, 2, 21)


def _agents(agents: RevisionAgents, width: int) -> Iterator[str]:
    """Which agents run it, and of those that do not, which and why."""
    if agents.words:
        parts = [f"{agents.words} run it" if agents.due is None else f"{agents.words} that are due run it"]
        parts += [
            f"{number:,} {words}"
            for number, words in (
                (agents.rejected, "cannot take it"),
                (agents.behind, "behind"),
                (agents.silent, "silent"),
            )
            if number
        ]
        yield from labelled("agents", ", ".join(parts), width)
    for one in agents.lagging:
        why = ": ".join(part for part in (one.reason, one.message) if part)
        runs = f"runs {_named(one.revision)}" if one.revision else "runs nothing"
        yield from labelled(
            "", f"{one.node} {one.state.lower()}, {runs}" + (f"; {why}" if why else ""), width
        )


def as_data(one: FoundRollout) -> dict[str, Any]:
    """A rollout as plain data."""
    state, gathered = one.state, one.gathered
    subject = state.subject
    return {
        "name": subject.name,
        "bundle": subject.bundle,
        "revision": subject.revision,
        "digest": subject.digest,
        "commit": subject.commit,
        **to_json(state),
        "asked": one.asked or None,
        "instances": {
            "total": gathered.instances,
            "rejected": gathered.rejected,
            "canary": gathered.canary,
        },
        "agents": agents_to_json(gathered.agents) or None,
        "kinds": {
            kind: {"compared": tally.compared, "different": tally.different, "failed": tally.failed}
            for kind, tally in sorted(gathered.counts.kinds.items())
        },
    }


def planned(plan: RolloutPlan, reasons: Mapping[str, str], width: int) -> Iterator[str]:
    """The steps and guards of a plan."""
    if not plan.steps:
        yield "no Rollout: a new revision decides everywhere as soon as it compiles"
        return
    if plan.kinds:
        yield from paragraph(f"for changes of {', '.join(sorted(plan.kinds))}", width)
    total = sum(step.hold for step in plan.steps)
    waits = any(step.until_resumed for step in plan.steps)
    for number, step in enumerate(plan.steps, 1):
        yield from paragraph(f"{number}. {step.name}: {_does(step, plan.kinds)}, {_lasts(step)}", width, 0, 3)
    end = ", and as long as somebody waits to resume it" if waits else ""
    yield from paragraph(f"then everywhere, after {span(total)} at the earliest{end}", width)
    if plan.guards:
        yield ""
        yield f"looked at every {span(plan.every)}"
    for guard in plan.guards:
        patience = f" for {span(guard.patience)}" if guard.patience else ""
        then = "pauses" if guard.pauses else "returns to the old revision"
        known = (
            "" if guard.known_within is None else f", as does not being told after {span(guard.known_within)}"
        )
        rule = reasons.get(guard.name, "")
        yield from paragraph(f"- {guard.name}: {rule}; failing{patience} {then}{known}", width, 0, 2)


def plan_data(plan: RolloutPlan, reasons: Mapping[str, str]) -> dict[str, object]:
    """A plan as plain data, times in seconds, shares in percent points."""
    second = 10**9
    return {
        "kinds": sorted(plan.kinds),
        "every": plan.every / second,
        "steps": [
            {
                "name": step.name,
                "hold": step.hold / second,
                "untilResumed": step.until_resumed,
                "sample": step.sample,
                "nodes": None if step.nodes is None else _selector(step.nodes),
                "pods": None if step.pods is None else _selector(step.pods),
                "share": step.share,
            }
            for step in plan.steps
        ],
        "guards": [
            {
                "name": guard.name,
                "require": reasons.get(guard.name, ""),
                "patience": guard.patience / second,
                "pauses": guard.pauses,
                "knownWithin": None if guard.known_within is None else guard.known_within / second,
            }
            for guard in plan.guards
        ],
    }


def _does(step: RolloutStep, kinds: frozenset[str]) -> str:
    """What a step does, of the changes that go by it: one of `kinds` at least, of any where it is empty."""
    parts = []
    if step.has_canary:
        share = "all " if step.share is None else f"{step.share:g}% of "
        if step.of_nodes and kinds != {_PLACING}:
            parts.append(f"decides on {share}nodes{_those(step.nodes)}")
        if step.of_pods and (not kinds or _PLACING in kinds):
            parts.append(f"places {share}pods{_those(step.pods)}")
    if step.sample:
        parts.append(f"is asked beside the old one on {step.sample:g}% of decisions")
    return " and ".join(parts) or "waits"


def _those(selector: LabelSelector | None) -> str:
    return "" if selector is None else f" with {_selector(selector)}"


def _lasts(step: RolloutStep) -> str:
    if not step.until_resumed:
        return f"for {span(step.hold)}"
    return f"for {span(step.hold)} and until resumed" if step.hold else "until resumed"


def _selector(selector: LabelSelector) -> str:
    return ",".join(map(_requirement, selector.requirements)) or "any labels"


def _requirement(one: LabelRequirement) -> str:
    values = "|".join(sorted(one.values))
    match one.operator:
        case Operator.IN:
            return f"{one.key}={values}"
        case Operator.NOT_IN:
            return f"{one.key}!={values}"
        case Operator.EXISTS:
            return one.key
        case Operator.DOES_NOT_EXIST:
            return f"!{one.key}"


def short(state: RolloutProgress) -> str:
    """The revision as people recognise it."""
    subject = state.subject
    return (subject.commit or subject.digest)[:_SHORT]


def _named(revision: str) -> str:
    """A commit as it is, a digest as far as anybody would read it."""
    kind, colon, digits = revision.partition(":")
    return f"{kind}:{digits[:_SHORT]}" if colon else revision


def _share(one: FoundRollout) -> str:
    total = one.gathered.counts.total
    return f"{100.0 * total.different / total.compared:.1f}%"


def span(nanoseconds: int) -> str:
    """A time in its two largest units: `1h30m`, `12m5s`, `3d4h`."""
    seconds = max(0, nanoseconds) // _SECOND
    parts = [
        (seconds // 86_400, "d"),
        (seconds // 3600 % 24, "h"),
        (seconds // 60 % 60, "m"),
        (seconds % 60, "s"),
    ]
    first = next((at for at, (number, _) in enumerate(parts) if number), 3)
    return "".join(f"{number}{unit}" for number, unit in parts[first : first + 2] if number) or "0s"
