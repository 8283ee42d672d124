"""Suppression of best-effort work on all nodes: what policy aims at as a column, what agents write node by node, once for equal nodes."""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from koordpolicy.agent.strategies.suppression import (
    KIND,
    QUOTA,
    CPUSuppression,
    Suppression,
    SuppressionAction,
)
from koordpolicy.agent.strategies.suppression_plan import BestEffortGroup, plan
from koordpolicy.graph import RuleGraph
from koordpolicy.language.cel.lower.columns import ColumnProgram
from koordpolicy.model.facts import Record
from koordpolicy.simulator.failures import SimulatedFailures
from koordpolicy.simulator.fleet import Fleet
from koordpolicy.simulator.journal import Journal
from koordpolicy.simulator.machines import Machine
from koordpolicy.simulator.node_columns import NodeColumns, is_settled, numbers_of

ROUNDS: Final = 16
"""Rounds of suppression in one interval; growing in steps of a tenth is over by then."""
_OF_AGENTS: Final = ".interval"
"""How often agents of real nodes look: virtual time has steps of its own."""
_MEASURED: Final = ("target", "minimum")
"""What is asked of all nodes at once; all else about suppression changes with objects."""
_MOST: Final = 1 << 16

Whole = NDArray[np.int64]


@dataclass(slots=True)
class _Kept:
    """What was decided of a node when its row was made; `plain` where only the target changes with what is measured."""

    decision: Suppression
    plain: bool


class Suppressing:
    """Holds groups of best-effort pods back, as agents do. One that has no such pods, and is not held, is left alone."""

    def __init__(
        self,
        graph: RuleGraph,
        columns: NodeColumns,
        fleet: Fleet,
        failures: SimulatedFailures,
        journal: Journal,
    ) -> None:
        self._graph = graph
        self._columns = columns
        self._fleet = fleet
        self._failures = failures
        self._journal = journal
        self._suppression = CPUSuppression(graph)
        self._program: ColumnProgram | None = None
        fields = [str(key) for key in graph.decisions if key.kind == KIND]
        asked = {name: f"{KIND}.{name}" for name in _MEASURED if f"{KIND}.{name}" in graph}
        others = [
            name
            for name in fields
            if name not in asked.values() and ".figures" not in name and not name.endswith(_OF_AGENTS)
        ]
        if "target" in asked and all(is_settled(graph, name) for name in others if ".parameters" not in name):
            self._program = columns.compiled(asked)
        self._kept: dict[int, _Kept] = {}
        self._written: dict[Hashable, tuple[frozenset[int], int]] = {}

    def changed(self, machines: Iterable[Machine]) -> None:
        """Rows of machines were made anew."""
        for machine in machines:
            self._kept.pop(machine.index, None)

    def hold(self, machines: Iterable[Machine], now: int) -> bool:
        """Let the agents of machines do their rounds; whether any group may use another amount now."""
        targets = self._targets(now)
        changed = False
        for machine in machines:
            decision = self._decision(machine, targets, now)
            if decision is not None:
                changed |= self._carry_out(machine, decision)
        return changed

    def note(self, machines: Iterable[Machine], now: int, since: int) -> None:
        """Note where most was withheld, and where suppression aimed lowest; `since` is when the simulation began."""
        withheld = self._fleet.withheld
        journal = self._journal
        for machine in machines:
            amount = int(withheld[machine.index])
            kept = self._kept.get(machine.index)
            if not amount or kept is None or kept.decision.outcome is not SuppressionAction.SUPPRESS:
                continue
            if not journal.would_hold(amount, machine.cpu, kept.decision.target):
                continue
            record = self._columns.record(machine, now)
            if record is not None:
                decision = self._suppression.decide(record, now)
                journal.held(now - since, machine, amount, decision, record)

    # --- within -----------------------------------------------------------------------------------

    def _targets(self, now: int) -> tuple[Whole, NDArray[np.bool_]] | None:
        """The target of each node in millicores, its minimum applied, and where it cannot be told."""
        program = self._program
        if program is None:
            return None
        found = self._failures.at_once(lambda: self._columns.ask(program, "", now, {}))
        if found is None:
            return None
        told = [numbers_of(one) for one in found.values()]
        numbers = [one for one in told if one is not None]
        if len(numbers) < len(told):
            return None
        failed = np.logical_or.reduce([failed for _, failed in numbers])
        return np.maximum.reduce([values for values, _ in numbers]), failed

    def _decision(
        self, machine: Machine, targets: tuple[Whole, NDArray[np.bool_]] | None, now: int
    ) -> Suppression | None:
        kept = self._kept.get(machine.index)
        if kept is not None and kept.plain and targets is not None and not targets[1][machine.index]:
            target = int(targets[0][machine.index])
            if target != kept.decision.target:
                kept.decision = replace(kept.decision, target=target)
            return kept.decision
        record = self._columns.record(machine, now)
        if record is None:
            return None
        decision = self._decided(machine, record, now)
        plain = decision.outcome is SuppressionAction.SUPPRESS
        self._kept[machine.index] = _Kept(decision, plain)
        return decision

    def _decided(self, machine: Machine, record: Record, now: int) -> Suppression:
        decision = self._suppression.decide(record, now)
        self._failures.suppressed(machine.name, record, decision.reason, now)
        return decision

    def _carry_out(self, machine: Machine, decision: Suppression) -> bool:
        """What the agent writes in its rounds until nothing changes; whether the group may use another amount then."""
        before = int(self._fleet.limit[machine.index])
        # CPUs are given whole, so that targets between the same two numbers of them are one.
        target = decision.target if decision.mechanism == QUOTA else -(-decision.target // 1000)
        asked = (
            decision.outcome,
            decision.mechanism,
            target,
            decision.cpuset_limits,
            decision.quota_limits,
            len(machine.processors),  # which follow from their number
            machine.cpu,
            machine.cpuset,
            machine.quota,
        )
        written = self._written.get(asked)
        if written is None:
            written = _rounds(machine, decision)
            if len(self._written) >= _MOST:
                self._written.clear()
            self._written[asked] = written
        if written == (machine.cpuset, machine.quota):
            return False
        machine.cpuset, machine.quota = written
        self._fleet.limit[machine.index] = limit = machine.limit()
        return limit != before


def _rounds(machine: Machine, decision: Suppression) -> tuple[frozenset[int], int]:
    cpuset, quota = machine.cpuset, machine.quota
    for _ in range(ROUNDS):
        planned = plan(decision, BestEffortGroup(machine.processors, machine.cpu, cpuset, quota))
        before = cpuset, quota
        if planned.cpuset:
            cpuset = planned.cpuset[-1].cpus
        if planned.quota is not None:
            quota = planned.quota
        if (cpuset, quota) == before:
            break
    return cpuset, quota
