"""Column programs against row programs and against NumPy written by hand.

The expressions are what a scheduler asks of every node for every pod: is the node loaded too much, has
it the memory, and how good is it in two respects. One node in fifty has no measurement, and before each
evaluation one node changes, as it does when the pod before was bound.
"""

import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from koordpolicy.language.cel import ir
from koordpolicy.language.cel.checker import check
from koordpolicy.language.cel.environment import Environment
from koordpolicy.language.cel.library import FUNCTIONS
from koordpolicy.language.cel.lower.columns import ColumnProgram, compile_columns, table_schema
from koordpolicy.language.cel.lower.row import compile_row
from koordpolicy.language.cel.parser import parse
from koordpolicy.language.facts import FACTS, ROOTS
from koordpolicy.model.table import NodeTable
from tests.benchmarks.measure import Row, seconds

SIZES = (100, 1_000, 5_000, 20_000, 100_000)
MOST_ROWS = 5_000
"""Row programs are measured on so many nodes at most; their time per node does not depend on it."""

FILTER = """has(node.usage.total.cpu)
  && node.usage.total.cpu + pod.request.cpu <= node.allocatable.cpu * percent(65)
  && node.allocatable.memory - node.requested.memory >= pod.request.memory"""
SCORE = """(1.0 - (node.usage.total.cpu + pod.request.cpu) / node.allocatable.cpu) * 50.0
  + (1.0 - (node.requested.memory + pod.request.memory) / node.allocatable.memory) * 50.0"""
POD: dict[str, object] = {"request.cpu": 500, "request.memory": 2**30}
ROOT_NAMES = ("node", "pod")


def typed(text: str) -> ir.Node:
    """The typed form of an expression over a node and a pod."""
    environment = Environment(
        variables={name: ROOTS[name].type for name in ROOT_NAMES}, functions=FUNCTIONS, facts=FACTS
    )
    problems: list[Any] = []
    node = check(parse(text), environment, problems, text)
    assert not problems, problems
    return node


def nodes(count: int) -> Iterator[dict[str, object]]:
    """Facts of as many nodes."""
    chance = random.Random(1)
    for _ in range(count):
        facts: dict[str, object] = {
            "allocatable.cpu": chance.choice((8, 32, 96)) * 1000,
            "allocatable.memory": chance.choice((32, 128, 512)) * 2**30,
            "requested.memory": chance.randrange(2**38),
        }
        if chance.random() >= 0.02:
            facts["usage.total.cpu"] = chance.randrange(60_000)
        yield facts


def by_columns(table: NodeTable, program: ColumnProgram) -> Callable[[], object]:
    """A change of one node, and the program over all of them."""
    chance = random.Random(2)
    names = [name for at, name in enumerate(table.names) if "usage.total.cpu" in table.row(at)]

    def run() -> object:
        asked = {"requested.memory": chance.randrange(2**38), "usage.total.cpu": chance.randrange(60_000)}
        table.update(chance.choice(names), asked)
        return program.call_all(table, {"pod": POD})

    return run


def by_hand(table: NodeTable) -> Callable[[], object]:
    """The same arithmetic as one would write it in NumPy: no missing facts, no errors, no overflow."""
    used, cpu = table.column("usage.total.cpu"), table.column("allocatable.cpu").values
    asked, memory = table.column("requested.memory").values, table.column("allocatable.memory").values
    absent = used.absent
    assert absent is not None
    known = ~absent

    def run() -> object:
        load = used.values + 500
        passed = known & (load <= cpu * 0.65) & (memory - asked >= 2**30)
        return passed, (1.0 - load / cpu) * 50.0 + (1.0 - (asked + 2**30) / memory) * 50.0

    return run


def run() -> list[Row]:
    """Nanoseconds a node, by number of nodes."""
    expressions = {"filter": typed(FILTER), "score": typed(SCORE)}
    program = compile_columns(expressions, "node", ROOT_NAMES)
    by_row = compile_row(ROOT_NAMES, expressions)
    rows: list[Row] = []
    for size in SIZES:
        table = NodeTable(table_schema(FACTS, "node"))
        for at, facts in enumerate(nodes(size)):
            table.put(f"node-{at}", facts)
        some = [table.row(at) for at in range(min(size, MOST_ROWS))]
        columns = seconds(by_columns(table, program)) / size
        each = seconds(lambda some=some: [by_row.call(facts, POD) for facts in some]) / len(some)  # type: ignore[misc]
        with np.errstate(all="ignore"):
            bare = seconds(by_hand(table)) / size
        rows.append(
            {
                "nodes": size,
                "columns ns": columns * 1e9,
                "NumPy by hand ns": bare * 1e9,
                "row program ns": each * 1e9,
                "rows / columns": each / columns,
            }
        )
    return rows
