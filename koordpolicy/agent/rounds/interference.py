"""Rounds of interference: who suffers by what was measured, and what that means for suppression and evictions."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

from koordpolicy.agent.collectors.signal_pace import SignalPace
from koordpolicy.agent.frame import NodeFrame
from koordpolicy.agent.measurements.levels import CPI, PRESSURES, WAITING, Measurements, pressure_measure
from koordpolicy.agent.plan import Notice, Plan
from koordpolicy.agent.strategies.evictable import PodKey, pod_key
from koordpolicy.agent.strategies.eviction_need import Needs
from koordpolicy.agent.strategies.interference import (
    KIND,
    SUPPRESS,
    InterferenceMemory,
    PodSignals,
    Reaction,
    eviction_needs,
    reactions,
    signal_facts,
    suppressed_more,
)
from koordpolicy.agent.strategies.suppression import Suppression, SuppressionAction
from koordpolicy.model.facts import Record

SUFFERS: Final = "Interference"
"""The reason of the Event of a pod that begins to suffer."""
_INTERVALS: Final = 2
"""Of its measurement: a signal that is older is none."""


def signals_of(found: Measurements, uids: Iterable[str], now: int, pace: SignalPace) -> dict[str, PodSignals]:
    """What was measured lately of pods, by UID; `now` of the measurements' clock."""
    pressure, cpi = _INTERVALS * pace.pressure, _INTERVALS * pace.cpi
    stalls = {one: found.signals.latest(pressure_measure(*one), now, pressure) for one in PRESSURES}
    waiting = found.signals.latest(WAITING, now, pressure)
    cycles = found.cpi.latest(CPI, now, cpi)
    signals = {}
    for uid in uids:
        pressed = {one: values[uid] for one, values in stalls.items() if uid in values}
        if pressed or uid in waiting or uid in cycles:
            signals[uid] = PodSignals(pressed, cycles.get(uid), waiting.get(uid))
    return signals


def add_signals(record: Record, signals: Mapping[str, PodSignals]) -> None:
    """Put what was measured of pods, by UID, into their facts."""
    pods: list[Record] = record["pods"]  # type: ignore[assignment]  # a record holds anything
    for pod in pods:
        said = signals.get(str(pod.get("uid", "")))
        if said is not None:
            pod.update(signal_facts(said))


class InterferenceRounds:
    """What rules want now, and what they were told of before."""

    def __init__(self) -> None:
        self._memory = InterferenceMemory()
        self._told: frozenset[tuple[str, PodKey]] = frozenset()
        self.wanted: tuple[Reaction, ...] = ()
        """What all rules want since the last round."""

    def plan(self, frame: NodeFrame) -> Plan:
        """What is told of the pods that suffer; what is done about it is the business of other strategies."""
        signals = {
            pod_key(pod): frame.signals[str(pod["uid"])]
            for pod in frame.pod_records
            if str(pod.get("uid", "")) in frame.signals
        }
        found, self._memory = reactions(frame.graph, frame.record, signals, self._memory, frame.now)
        self.wanted = tuple(found)
        suffering = frozenset((one.rule, pod) for one in found for pod in one.pods)
        notices = [
            Notice(*pod, SUFFERS, f"held up by others on its node: {KIND}/{one.rule}, {one.reaction}")
            for one in found
            for pod in one.pods
            if (one.rule, pod) not in self._told
        ]
        self._told = suffering
        return Plan(notes=tuple(one.words for one in found), notices=tuple(notices))

    def suppressed(self, decision: Suppression, capacity: int) -> tuple[Suppression, str]:
        """Suppression with what is wanted of it beyond, and a phrase that says so; millicores."""
        rules = [one for one in self.wanted if one.reaction == SUPPRESS and one.share > 0]
        if not rules:
            return decision, ""
        strictest = max(rules, key=lambda one: one.share)
        said = f"{strictest.share:g}% less by {KIND}/{strictest.rule}"
        if decision.outcome is not SuppressionAction.SUPPRESS:
            return decision, f"{said} is wanted, and nothing is suppressed: {decision.reason}"
        return suppressed_more(decision, rules, capacity), said

    def needs(self, frame: NodeFrame, others: Needs) -> Needs:
        """What is wanted of evictions beside what others call for, which goes first."""
        own = eviction_needs(frame.graph, frame.record, self.wanted, frame.now)
        return replace(others, by_reason={**others.by_reason, **own.by_reason}) if own.by_reason else others
