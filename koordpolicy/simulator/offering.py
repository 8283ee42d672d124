"""What nodes offer beyond what they have: the manager's decision for all nodes at once, node by node where anything but use changed.

Formulas are asked as columns. Whatever else decides about publishing (is it offered, how old may reports be, how far may amounts
change) is asked when a node was decided by itself, and is the same until something of the node changes. Amounts that
are written go to who listens as values, as reports do, and to the store before anything else is written there.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Final

import numpy as np
from numpy.typing import NDArray

from koordpolicy.cluster.objects import ClusterObjects
from koordpolicy.graph import RuleGraph
from koordpolicy.graph.bands import band_resources
from koordpolicy.language.cel.lower.columns import ColumnProgram
from koordpolicy.manager.controllers.controller import NODE_POLICIES, OvercommitController, Reconciliation
from koordpolicy.manager.controllers.node_plan import origin_text
from koordpolicy.manager.controllers.overcommit import KIND, PublishAction
from koordpolicy.manager.controllers.publishing import PublishPolicy
from koordpolicy.model.changing import changing
from koordpolicy.model.node import Node
from koordpolicy.model.protocol import CPU, MEMORY, ORIGIN_EXTENDED_ALLOCATABLE
from koordpolicy.model.reading import ObjectError
from koordpolicy.model.third_party import third_party_allocations
from koordpolicy.simulator.failures import SimulatedFailures
from koordpolicy.simulator.fleet import Fleet
from koordpolicy.simulator.node_columns import NodeColumns, is_settled, numbers_of

_ASKED: Final = ("cpu", "memory")
_NATIVE: Final = MappingProxyType({"cpu": CPU, "memory": MEMORY})
_ONLY_BY_NODE: Final = ("zone.", "parameters", "variables")
_NEVER: Final = np.iinfo(np.int64).max

Whole = NDArray[np.int64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class _Formulas:
    """One overcommitted resource: its program, and the names of what it is published as, by native resource."""

    resource: str
    program: ColumnProgram
    names: Mapping[str, str]


class Offering:
    """Decides for nodes of which only the use has changed. `columns` have their rows, in the order of the fleet's machines."""

    def __init__(
        self,
        graph: RuleGraph,
        columns: NodeColumns,
        fleet: Fleet,
        controller: OvercommitController,
        objects: ClusterObjects,
        failures: SimulatedFailures,
        publish: Callable[[Node, Collection[str]], bool],
    ) -> None:
        self._graph = graph
        self._columns = columns
        self._fleet = fleet
        self._controller = controller
        self._objects = objects
        self._failures = failures
        self._publish = publish
        self._formulas = self._compiled()
        count = len(fleet.machines)
        self._plain = np.zeros(count, np.bool_)
        self._written = np.zeros(count, np.int64)
        self._refresh = np.full(count, _NEVER, np.int64)
        self._policies: list[Mapping[str, PublishPolicy]] = [{}] * count
        self._resting = {resource: np.zeros(count, np.bool_) for resource in graph.subjects(KIND)}
        """Where a resource is not offered, whatever is measured."""
        amounts = [name for one in self._formulas or () for name in one.names.values()]
        self._offered = {name: np.zeros(count, np.int64) for name in amounts}
        self._share = {name: np.zeros(count) for name in amounts}

    def _compiled(self) -> Sequence[_Formulas] | None:
        """The formulas as columns; None where more than they depends on what is measured."""
        graph = self._graph
        for key in graph.decisions:
            name = str(key)
            if key.kind in NODE_POLICIES or (key.kind == KIND and key.field not in _ASKED):
                if key.field.startswith(_ONLY_BY_NODE):
                    continue
                if not is_settled(graph, name):
                    return None
        found = []
        for resource in graph.subjects(KIND):
            asked = {field: f"{KIND}/{resource}.{field}" for field in _ASKED}
            if not all(name in graph for name in asked.values()):
                return None
            program = self._columns.compiled(asked)
            if program is None:
                return None
            found.append(_Formulas(resource, program, band_resources(graph, resource)))
        return found

    @property
    def plain(self) -> Mask:
        """The nodes that are decided as columns until something of them changes."""
        return self._plain

    def decided(self, place: int, found: Reconciliation | None) -> None:
        """A node was decided by itself, and what was to be written was written."""
        self._plain[place] = False
        if found is None or self._formulas is None:
            return
        node = self._objects.nodes[found.node]
        row = dict(self._columns.table.row(place))
        now = self._controller.now()
        policies, resting = {}, set()
        for one in found.calculations:
            if (one.reason and one.outcome is not PublishAction.RESET) or one.failed or one.zones:
                return
            if one.standing is not None and (one.standing.abnormal or one.turns_in is not None):
                return
            if one.outcome is PublishAction.KEEP:
                return
            rules = PublishPolicy.of(self._graph, one.resource, row, now, {})
            if (rules.ratio or 0) > 1 or (rules.deducts and _is_shared(node)):
                return
            if one.outcome is PublishAction.RESET:
                resting.add(one.resource)
            policies[one.resource] = rules
        settled = self._controller.settled_at(found.node)
        if settled is None:
            return
        self._plain[place] = True
        self._policies[place] = policies
        for resource, rests in self._resting.items():
            rests[place] = resource in resting
        self._written[place] = settled
        waits = [one.refresh for one in policies.values() if one.refresh is not None]
        self._refresh[place] = min(waits, default=_NEVER)
        for formulas in self._formulas:
            rules = policies[formulas.resource]
            for name in formulas.names.values():
                self._share[name][place] = rules.share
        self._stands(place, node)

    def _stands(self, place: int, node: Node) -> None:
        for name, offered in self._offered.items():
            amount = node.allocatable.get(name)
            offered[place] = -1 if amount is None else amount

    def decide(self, reported: Mask, now: int) -> Sequence[int]:
        """Decide for the plain nodes that have reported, and write what differs; the places of those where it could not be told."""
        concerned = self._plain & reported
        count = len(self._fleet.machines)
        failed = np.zeros(count, np.bool_)
        wanted: dict[str, Whole] = {}
        cluster = self._controller.cluster_of(self._graph)
        for one in self._formulas or ():
            rests, ask = self._resting[one.resource], partial(self._columns.ask, one.program, one.resource)
            found = self._failures.at_once(lambda ask=ask: ask(now, cluster))  # type: ignore[misc]
            if found is None:
                return np.flatnonzero(concerned).tolist()
            for field, native in _NATIVE.items():
                told = numbers_of(found[field])
                if told is None:
                    return np.flatnonzero(concerned).tolist()
                amounts, wrong = told
                failed |= wrong & ~rests
                if native in one.names:
                    wanted[one.names[native]] = np.where(rests, -1, np.maximum(amounts, 0))
        plain = concerned & ~failed
        due = now - self._written > self._refresh
        worth, changed = due, np.zeros(count, np.bool_)
        for name, amounts in wanted.items():
            stands = self._offered[name]
            moved = np.abs(amounts - stands).astype(np.float64) * 1000.0 > stands * 1000.0 * self._share[name]
            worth = worth | np.where((stands < 0) | (amounts < 0), stands != amounts, moved)
            changed |= stands != amounts
        for place in np.flatnonzero(plain & worth).tolist():
            if changed[place] and not self._write(
                place, {name: int(one[place]) for name, one in wanted.items()}
            ):
                worth[place] = False  # it is so at the next reports
                continue
            self._controller.note_settled(self._fleet.names[place])
        self._written[plain & worth] = now
        return np.flatnonzero(concerned & failed).tolist()

    def _write(self, place: int, wanted: Mapping[str, int]) -> bool:
        """Write the amounts of a node as the manager would; whether that was taken. `wanted` are -1 for what is not offered."""
        node = self._objects.nodes[self._fleet.names[place]]
        offered = {name: amount for name, amount in wanted.items() if amount >= 0}
        gone: set[str] = set()
        origin = ""
        for one in self._formulas or ():
            rests = bool(self._resting[one.resource][place])
            names = [name for name in one.names.values() if rests or name in wanted]
            if rests:
                gone.update(names)
            if self._policies[place][one.resource].deducts:
                origin = origin_text({name: offered.get(name, 0) for name in names})
        annotations = node.annotations
        if origin and annotations.get(ORIGIN_EXTENDED_ALLOCATABLE) != origin:
            annotations = {**annotations, ORIGIN_EXTENDED_ALLOCATABLE: origin}
        changed = _offering(
            node, _others(node.allocatable, offered, gone), _others(node.capacity, offered, gone), annotations
        )
        if not self._publish(changed, self._offered.keys()):
            return False
        self._stands(place, changed)
        return True


def _is_shared(node: Node) -> bool:
    """Whether other schedulers have something of a node, or that cannot be told."""
    try:
        return bool(third_party_allocations(node.annotations))
    except ObjectError:
        return True


_offering: Final = changing(Node, "allocatable", "capacity", "annotations")


def _others(amounts: Mapping[str, int], offered: Mapping[str, int], gone: Collection[str]) -> dict[str, int]:
    """Amounts of which some are others now, or not there any more."""
    found = {**amounts, **offered}
    for name in gone:
        found.pop(name, None)
    return found
