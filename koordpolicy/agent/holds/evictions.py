"""For which reasons the agent of a node may let a pod go, by policy and by the last report of the node."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from koordpolicy.agent.holds.hold import AskedDecision, HeldPod, Hold, HoldState
from koordpolicy.agent.strategies import cpu_eviction, memory_eviction
from koordpolicy.agent.strategies.evictable import Evictable, pod_key
from koordpolicy.agent.strategies.eviction_need import BELOW, INVALID, OFF, RELEASE, Need
from koordpolicy.language.cel.errors import CelError
from koordpolicy.model.protocol import CPU, MEMORY

_INTERVAL: Final = 1.0


class _Reason(NamedTuple):
    """A reason of evictions: as Events call it, the section of its kind, its thresholds, and what is short, in words."""

    name: str
    kind: str
    section: str
    thresholds: tuple[str, ...]
    short: str


REASONS: Final = (
    _Reason(
        cpu_eviction.BEST_EFFORT,
        cpu_eviction.KIND,
        "bestEffort",
        ("bestEffort.threshold", "bestEffort.upper"),
        "best-effort pods get too little of the CPU that they ask for",
    ),
    _Reason(
        cpu_eviction.BY_PRIORITY,
        cpu_eviction.KIND,
        "byPriority",
        ("byPriority.threshold", "byPriority.highestPriority"),
        "much of the node's CPU is in use",
    ),
    _Reason(
        cpu_eviction.BY_REQUESTS,
        cpu_eviction.KIND,
        "byRequests",
        ("byRequests.threshold", "byRequests.highestPriority"),
        "more CPU is requested than the node offers",
    ),
    _Reason(
        memory_eviction.BEST_EFFORT,
        memory_eviction.KIND,
        "bestEffort",
        ("threshold",),
        "much of the node's memory is in use",
    ),
    _Reason(
        memory_eviction.BY_PRIORITY,
        memory_eviction.KIND,
        "byPriority",
        ("threshold", "byPriority.highestPriority"),
        "much of the node's memory is in use",
    ),
    _Reason(
        memory_eviction.BY_REQUESTS,
        memory_eviction.KIND,
        "byRequests",
        ("byRequests.threshold", "byRequests.highestPriority"),
        "more memory is requested than the node offers",
    ),
)
"""In the order in which agents go through them."""

_OF_REASONS: Final = {
    one.name: tuple(f"{one.kind}.{field}" for field in (f"{one.section}.candidates", *one.thresholds))
    for one in REASONS
}


def decisions_of(reason: str) -> tuple[str, ...]:
    """The decisions behind a reason that an Event of an eviction names; none for one that is not known."""
    if reason.startswith("Interference/"):
        return (f"{reason}.when", f"{reason}.reaction")
    return _OF_REASONS.get(reason, ())


def evictions(held: HeldPod) -> Iterator[Hold]:
    """Each reason with what it means for the pod."""
    needs: dict[str, Need | CelError] = {}
    used = held.node.get("usage.total.cpu")
    measured = cpu_eviction.MeasuredCPU(_INTERVAL, None if used is None else int(used))  # type: ignore[call-overload]
    for kind in (cpu_eviction.KIND, memory_eviction.KIND):
        try:
            found = (
                cpu_eviction.cpu_needs(held.graph, held.node, measured, held.now)
                if kind == cpu_eviction.KIND
                else memory_eviction.memory_needs(held.graph, held.node, held.now)
            )
            needs |= found.by_reason
        except CelError as error:
            needs |= {one.name: error for one in REASONS if one.kind == kind}
    for reason in REASONS:
        yield _of_reason(held, reason, needs.get(reason.name))


def _of_reason(held: HeldPod, reason: _Reason, need: Need | CelError | None) -> Hold:
    title = reason.name
    names = ["enabled", f"{reason.section}.enabled"]
    if need is None or (isinstance(need, Need) and need.why == OFF):
        says = "No policy lets pods go for that." if need is None else "Policy lets nobody go for that."
        return Hold(title, reason.kind, HoldState.OFF, says, _asked(held, reason, names[1:]))
    names += [f"{reason.section}.candidates", f"{reason.section}.order", *reason.thresholds]
    asked = _asked(held, reason, names)
    if isinstance(need, CelError):
        return Hold(title, reason.kind, HoldState.UNKNOWN, f"It cannot be told here: {need}.", asked)
    if need.why == INVALID:
        says = "Its thresholds do not go together, or one is missing: nobody goes."
        return Hold(title, reason.kind, HoldState.OFF, says, asked)
    place, of = _place(held, reason)
    if not place:
        says = f"Where {reason.short}, others go: policy does not let this pod go for that."
        return Hold(title, reason.kind, HoldState.SPARES, says, asked)
    turn = "it goes, as the only one" if of == 1 else f"it goes as number {place} of {of}"
    if need.why == RELEASE:
        says = f"By the last report {reason.short}, and pods go: {turn}."
        return Hold(title, reason.kind, HoldState.HOLDS, says, asked, unseen="what the agent measures now")
    if need.why == BELOW:
        percent = "" if need.percent is None else f", {need.percent}% by the last report"
        says = f"Where {reason.short}, {turn}. That is not so now{percent}."
    else:
        says = f"Where {reason.short}, {turn}. Whether that is so, its agent alone measures."
    return Hold(title, reason.kind, HoldState.MAY, says, asked, unseen="what the agent measures now")


def _asked(held: HeldPod, reason: _Reason, names: list[str]) -> tuple[AskedDecision, ...]:
    return held.asked(*(f"{reason.kind}.{one}" for one in names))


def _place(held: HeldPod, reason: _Reason) -> tuple[int, int]:
    """Which one it is of those that may go, counted from 1, and how many these are; 0 where it may not."""
    rules = Evictable(held.graph, reason.kind, held.node, held.now)
    highest = None
    if reason.section != "bestEffort":
        highest = rules.about().value(f"{reason.section}.highestPriority")
    pods = rules.candidates(reason.section, highest_priority=highest)
    measured = f"usage.{CPU if reason.kind == cpu_eviction.KIND else MEMORY}"
    keys = [pod_key(one) for one in pods if highest is None or measured in one]
    mine = pod_key(held.facts)
    return (keys.index(mine) + 1 if mine in keys else 0), len(keys)
