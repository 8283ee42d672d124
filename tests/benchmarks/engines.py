"""One filter and one score of five terms together, the same text over the same facts, in every engine there is.

The facts have no units here, since only ours knows any. One node in fifty has no usage: the filter tests for
it, the score ends in an error that the engine has to tell from a value. Ours come as the row program and the
column program; NumPy by hand, without missing facts or errors, is what the machine can do at best.
"""

import random
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from koordpolicy.language.cel import ir
from koordpolicy.language.cel.checker import check
from koordpolicy.language.cel.environment import Environment
from koordpolicy.language.cel.errors import CelError
from koordpolicy.language.cel.library import FUNCTIONS
from koordpolicy.language.cel.lower.columns import compile_columns, table_schema
from koordpolicy.language.cel.lower.row import compile_row
from koordpolicy.language.cel.parser import parse
from koordpolicy.language.cel.types import INT, record
from koordpolicy.language.facts.table import EVERYWHERE, Fact, FactTable, Record
from koordpolicy.model.table import NodeTable
from tests.benchmarks.chart import draw
from tests.benchmarks.measure import Row, seconds
from tests.benchmarks.peers import PEERS, Absent, Answers, Measured

SIZES = (100, 1_000, 5_000, 20_000, 100_000)
COMPARED_AT = 5_000
MOST_ROWS = 5_000

FILTER = """has(node.usage.total.cpu)
  && double(node.usage.total.cpu + pod.request.cpu) <= double(node.allocatable.cpu) * 0.65
  && node.allocatable.memory - node.requested.memory >= pod.request.memory"""
SCORE = """(1.0 - double(node.usage.total.cpu + pod.request.cpu) / double(node.allocatable.cpu)) * 50.0
  + (1.0 - double(node.requested.memory + pod.request.memory) / double(node.allocatable.memory)) * 50.0"""

POD: Mapping[str, object] = {"request.cpu": 500, "request.memory": 2**30}
_PATHS = {
    "node": ("allocatable.cpu", "allocatable.memory", "requested.memory", "usage.total.cpu"),
    "pod": tuple(POD),
}
PLAIN = FactTable(
    Record(name, name, tuple(Fact(path, INT, path, EVERYWHERE, may_be_missing=True) for path in paths))
    for name, paths in _PATHS.items()
)
"""The facts of both records as plain numbers."""

COLUMNS, ROWS, NUMPY = "column program", "row program", "NumPy by hand"


def typed(text: str) -> ir.Node:
    """The typed form of an expression over a node and a pod of plain numbers."""
    variables = {name: record(name) for name in _PATHS}
    environment = Environment(variables=variables, functions=FUNCTIONS, facts=PLAIN)
    problems: list[Any] = []
    node = check(parse(text), environment, problems, text)
    assert not problems, problems
    return node


EXPRESSIONS: Mapping[str, ir.Node] = {"filter": typed(FILTER), "score": typed(SCORE)}


def nodes(count: int) -> Iterator[dict[str, object]]:
    """Facts of as many nodes, by path."""
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


def nested(facts: Mapping[str, object]) -> dict[str, Any]:
    """Facts as maps in maps, the form that other engines read; a group is there even when it is empty."""
    tree: dict[str, Any] = {"usage": {"total": {}}}
    for path, value in facts.items():
        *groups, last = path.split(".")
        inner = tree
        for group in groups:
            inner = inner.setdefault(group, {})
        inner[last] = value
    return tree


def by_column(facts: list[dict[str, object]]) -> Measured:
    """Our column program on all nodes at once."""
    table = _table(facts)
    program = compile_columns(EXPRESSIONS, "node", tuple(_PATHS))
    assert not program.fallback
    spent = seconds(lambda: program.call_all(table, {"pod": POD}))
    found = program.call_all(table, {"pod": POD})
    passed, score = found["filter"], found["score"]
    known = np.ones(len(facts), bool) if score.errors is None else ~score.errors
    errors = sum(int(one.errors.sum()) for one in (passed, score) if one.errors is not None)
    return Measured(
        spent / len(facts), Answers(int(passed.values.sum()), errors, float(score.values[known].sum()))
    )


def by_row(facts: list[dict[str, object]]) -> Measured:
    """Our row program, node by node; one call gives both results."""
    some = facts[:MOST_ROWS]
    filters, scores = (compile_row(tuple(_PATHS), EXPRESSIONS[name]) for name in ("filter", "score"))

    def ask() -> Answers:
        passed, errors, total = 0, 0, 0.0
        for node in some:
            try:
                passed += filters.call(node, POD) is True
            except CelError:
                errors += 1
            try:
                total += scores.call(node, POD)
            except CelError:
                errors += 1
        return Answers(passed, errors, total)

    return Measured(seconds(ask) / len(some), ask())


def by_hand(facts: list[dict[str, object]]) -> Measured:
    """The bare arithmetic on arrays that are at hand."""
    table = _table(facts)
    used, cpu = table.column("usage.total.cpu"), table.column("allocatable.cpu").values
    asked, memory = table.column("requested.memory").values, table.column("allocatable.memory").values
    known = np.ones(len(facts), bool) if used.absent is None else ~used.absent

    def run() -> tuple[Any, Any]:
        load = used.values + 500
        passed = known & (load <= cpu * 0.65) & (memory - asked >= 2**30)
        return passed, (1.0 - load / cpu) * 50.0 + (1.0 - (asked + 2**30) / memory) * 50.0

    passed, score = run()
    answers = Answers(int(passed.sum()), int((~known).sum()), float(score[known].sum()))
    return Measured(seconds(run) / len(facts), answers)


def _table(facts: list[dict[str, object]]) -> NodeTable:
    table = NodeTable(table_schema(PLAIN, "node"))
    for at, one in enumerate(facts):
        table.put(f"node-{at}", one)
    return table


def run() -> list[Row]:
    """Nanoseconds a node, an engine a row; and the chart of it.

    `times ours` is against the column program at 5,000 nodes, `same answers` compares with the row program's on
    the same nodes.
    """
    ours: tuple[tuple[str, Callable[[list[dict[str, object]]], Measured]], ...] = (
        (COLUMNS, by_column), (NUMPY, by_hand), (ROWS, by_row),
    )  # fmt: skip
    facts = list(nodes(max(SIZES)))
    found: dict[str, dict[int, float]] = {}
    notes: dict[str, str] = {}
    for name, measure in ours:
        for size in SIZES:
            measured = measure(facts[:size])
            found.setdefault(name, {})[size] = measured.seconds * 1e9
            notes[name] = _judged(measured.answers, min(size, MOST_ROWS) if name == ROWS else size, facts)
    pod = nested(POD)
    trees = [nested(one) for one in facts[:MOST_ROWS]]
    for peer in PEERS:
        times = found.setdefault(peer.name, {})
        for size in SIZES:
            asked = min(size, peer.most)
            if size > asked and times and any(known >= asked for known in times):
                times[size] = times[max(known for known in times if known >= asked)]
                continue
            try:
                measured = peer.measure(FILTER, SCORE, trees[:asked], pod)
            except Absent as reason:
                notes[peer.name] = str(reason)
                break
            times[size] = measured.seconds * 1e9
            notes[peer.name] = _judged(measured.answers, asked, facts)
    draw({name: times for name, times in found.items() if times}, Path("build/benchmarks/engines"))
    return [_row(name, times, notes[name], found[COLUMNS]) for name, times in found.items()]


def _judged(answers: Answers, asked: int, facts: list[dict[str, object]]) -> str:
    return "yes" if answers.agrees(_expected(facts[:asked])) else f"no: {answers}"


def _expected(facts: list[dict[str, object]]) -> Answers:
    """The answers in plain Python."""
    passed, errors, total = 0, 0, 0.0
    for node in facts:
        if "usage.total.cpu" not in node:
            errors += 1
            continue
        used, cpu, asked, memory = (
            _whole(node[path])
            for path in ("usage.total.cpu", "allocatable.cpu", "requested.memory", "allocatable.memory")
        )
        passed += float(used + 500) <= float(cpu) * 0.65 and memory - asked >= 2**30
        total += (1.0 - (used + 500) / cpu) * 50.0 + (1.0 - (asked + 2**30) / memory) * 50.0
    return Answers(passed, errors, total)


def _whole(value: object) -> int:
    assert isinstance(value, int)
    return value


def _row(name: str, times: Mapping[int, float], note: str, ours: Mapping[int, float]) -> Row:
    cells: dict[str, object] = {"engine": name}
    cells |= {f"{size:,} nodes": times[size] for size in SIZES if size in times}
    if COMPARED_AT in times:
        cells["times ours"] = times[COMPARED_AT] / ours[COMPARED_AT]
    return cells | {"same answers": note}
