"""What the manager and the agents know of all nodes as columns: facts that change with events row by row, what was measured at once."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from koordpolicy.algorithms.node_record import node_record
from koordpolicy.algorithms.records import PodRecords
from koordpolicy.cluster.objects import ClusterObjects
from koordpolicy.graph import RuleGraph
from koordpolicy.graph.bands import bands_up_to
from koordpolicy.language.cel.lower.columns import ColumnProgram, ColumnResult, compile_columns, table_schema
from koordpolicy.language.facts import FACTS, TIMES
from koordpolicy.model.facts import Record
from koordpolicy.model.facts.node import of_object
from koordpolicy.model.facts.record import BASIC
from koordpolicy.model.table import NodeTable
from koordpolicy.model.table.kinds import ListFact, ScalarFact, Schema, Storage
from koordpolicy.simulator.fleet import Fleet
from koordpolicy.simulator.machines import Machine

SLOT: Final = "simulator/slot"
"""Where the record of a pod keeps its slot: no fact of the language, but of ours."""
NO_SLOT: Final = -1
_PROD: Final = "prod"
_PUBLISHED: Final = ("annotations", "resources.", "allocatable.", "capacity.", "physical.", "free.")
_NATIVE: Final = frozenset(
    f"{prefix}.{step}" for prefix in ("allocatable", "capacity", "physical") for step in BASIC
)

_OF_OBJECTS: Final = frozenset({"device", "resource"})
"""Records that follow from objects, beside the node's."""


def is_settled(graph: RuleGraph, decision: str) -> bool:
    """Whether a decision about a node is the same as long as its object is, but for what is published there."""
    if decision not in graph:
        return True
    return all(
        _stays(path) if root == "node" else root in _OF_OBJECTS
        for root, path in graph.program(decision).facts
    )


def _stays(path: str) -> bool:
    if path in _NATIVE or path.startswith("overrides"):
        return True
    return of_object(path) and not path.startswith(_PUBLISHED)


class NodeColumns:
    """The table: rows are machines in their order. `refresh` makes rows anew, `measure` writes what agents report of all."""

    def __init__(self, graph: RuleGraph, objects: ClusterObjects, fleet: Fleet) -> None:
        self.table = NodeTable(_schema())
        self._graph = graph
        self._objects = objects
        self._fleet = fleet
        self._records = PodRecords()

    def record(self, machine: Machine, now: int) -> Record | None:
        """All facts of one node as of the last reports; None where it cannot be read."""
        sight = self._objects.sight(machine.name)
        if sight is None:
            return None
        seen = replace(sight, metric=self._fleet.report(machine))
        return node_record(seen, self._graph.catalogue, TIMES, now, self._records)

    def refresh(self, machines: Iterable[Machine], now: int) -> None:
        """Make the rows of machines anew, of which something is another than what is measured."""
        for machine in machines:
            record = self.record(machine, now)
            if record is None:
                continue
            for pod in record["pods"]:  # type: ignore[attr-defined]  # a list of records
                running = machine.pods.get((pod["namespace"], pod["name"]))
                pod[SLOT] = NO_SLOT if running is None else running.slot
            self.table.put(machine.name, record)
        self._records.keep(tuple(self._objects.pods.values()))

    def measure(self) -> None:
        """Write what was measured into the rows, all of which are there."""
        fleet, table = self._fleet, self.table
        reports = fleet.over(np.arange(len(fleet.machines)))
        table.write_maps(("resources.usage",), reports.usage)
        prod = reports.of_bands(frozenset((_PROD,)))
        for step, resource in BASIC.items():
            table.write(f"usage.total.{step}", reports.usage[resource])
            table.write(f"usage.prod.{step}", prod[resource])
        slots = table.elements("pods").column(SLOT).values
        known = np.flatnonzero(slots != NO_SLOT)
        used = fleet.cpu_of(slots[known])
        known, used = known[used >= 0], used[used >= 0]
        table.write_elements("pods", "usage.cpu", used, known)

    def ask(
        self, program: ColumnProgram, resource: str, now: int, cluster: Record
    ) -> dict[str, ColumnResult]:
        """The outputs of a program for all rows; `resource` is what pods of other bands are set against, "" for none."""
        if resource and any(path.startswith("usage.highPriority") for _, path in program.facts):
            reports = self._fleet.over(np.arange(len(self._fleet.machines)))
            above = frozenset(self._fleet.bands()) - bands_up_to(self._graph, resource)
            for step, used in reports.of_bands(above).items():
                for name, native in BASIC.items():
                    if native == step:
                        self.table.write(f"usage.highPriority.{name}", used)
        roots = {"now": TIMES.timestamp(now), "cluster": cluster}
        return program.call_all(self.table, {root: roots.get(root, {}) for root in program.roots})

    def compiled(self, decisions: dict[str, str]) -> ColumnProgram | None:
        """Decisions of numbers by the names of outputs, as one program over the rows; None where that cannot be."""
        graph = self._graph
        roots = {root for name in decisions.values() for root in graph.decision(name).roots}
        if not roots <= {"node", "now", "cluster"}:
            return None
        expressions = {output: graph.expression(name) for output, name in decisions.items()}
        program = compile_columns(expressions, "node", ("node", "now", "cluster"), budget=graph.budget)
        reads_published = any(
            path == "" or (path.startswith(_PUBLISHED) and path not in _NATIVE and path != "resources.usage")
            for root, path in program.facts
            if root == "node"
        ) or any(root != "node" and path == "resources.usage" for root, path in program.facts)
        return None if program.fallback or reads_published else program


def _schema() -> Schema:
    """That of nodes, whose pods have slots."""
    schema = {**table_schema(FACTS, "node")}
    pods = schema["pods"]
    assert isinstance(pods, ListFact)
    schema["pods"] = ListFact({**pods.elements, SLOT: ScalarFact(Storage.INT)})
    return schema


def numbers_of(result: ColumnResult) -> tuple[NDArray[np.int64], NDArray[np.bool_]] | None:
    """The values of an output of whole numbers, and the rows where it failed; None for an output of another kind."""
    if result.kind != "int":
        return None
    failed = np.zeros(len(result), np.bool_) if result.errors is None else result.errors
    return result.values.astype(np.int64, copy=False), failed
