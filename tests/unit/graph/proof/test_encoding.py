"""The solver's picture of an expression admits what the engine does, on random expressions and random inputs.

If it did not, a proof could be wrong. Every fact is given its value, and the solver is asked whether the expression can
then come to what the engine says: it must be able to.
"""

from typing import Any

import pytest
import z3

from koordpolicy.graph.conditions import settled
from koordpolicy.graph.proof.draws import Draws
from koordpolicy.graph.proof.encode import Encoder, TooLarge
from koordpolicy.graph.proof.goal import arguments
from koordpolicy.graph.proof.pools import Pools
from koordpolicy.graph.proof.reads import reads_of
from koordpolicy.graph.proof.search import Search
from koordpolicy.graph.proof.terms import (
    Bool,
    Double,
    Formula,
    Listed,
    Record,
    Symbolic,
    Text,
    Whole,
    good,
    unlike,
)
from koordpolicy.language.cel import ir
from koordpolicy.language.cel.errors import CelError
from koordpolicy.language.cel.ir_walk import inline_binds, number
from koordpolicy.language.cel.lower.row import compile_row
from koordpolicy.language.cel.types import BOOL
from koordpolicy.language.cel.values import Duration, Timestamp
from koordpolicy.language.facts import ROOTS
from tests.unit.graph.diff.test_compare import compiled
from tests.unit.graph.proof.expressions import EXPRESSIONS, of_text

ELEMENTS = 3
INPUTS = 25


class Given:
    """Says of the facts of an encoder that they are those of some records."""

    def __init__(self, encoder: Encoder) -> None:
        self.encoder = encoder
        self.said: list[Formula] = []

    def root(self, name: str, value: Any) -> None:
        declared = ROOTS[name]
        self._value(self.encoder.unknowns.root(name, declared.type), value)

    def _record(self, symbol: Record, held: dict[str, Any], paths: list[str]) -> None:
        for path in paths:
            present, value = symbol.get(path)
            self.said.append(present if path in held else z3.Not(present))
            if path in held:
                self._value(value, held[path])

    def _value(self, symbol: Any, value: Any) -> None:
        match symbol, value:
            case Bool(term), bool():
                self.said.append(term == value)
            case Whole(), Duration() | Timestamp():
                self.said.append(symbol.term == value.ns)
            case Whole(), int():
                self.said.append(symbol.term == int(value))
            case Double(), float():
                self.said.append(symbol.term == self.encoder.doubles.constant(value).term)
            case Text(term), str():
                self.said.append(term == z3.StringVal(value))
            case Record(), dict():
                self._record(symbol, value, sorted(self.known(symbol)))
            case Listed(items=items), list():
                for at, (guard, item) in enumerate(items):
                    self.said.append(guard if at < len(value) else z3.Not(guard))
                    if at < len(value):
                        self._value(item.value, value[at])
            case _, dict():
                for key in self.encoder.unknowns.keys:
                    has, found = symbol.find(Text(z3.StringVal(key)))
                    self.said.append(has if key in value else z3.Not(has))
                    if key in value:
                        self._value(found.value, value[key])
                self.said.append(symbol.size == len(value))

    def known(self, symbol: Record) -> list[str]:
        """The paths that were asked of a record."""
        return self.encoder.unknowns.paths(symbol)


def admitted(node: ir.Node, records: dict[str, Any]) -> bool | None:
    """Whether the solver's picture admits the engine's answer; None where that was too much work."""
    tree = inline_binds(node)
    encoder = Encoder(number([tree]), tuple(reads_of([tree]).keys), ELEMENTS, lambda facts, formula: False)
    try:
        made = encoder.outcome(tree)
    except TooLarge:
        return None
    given = Given(encoder)
    for name in {root for root, _ in reads_of([tree]).facts}:
        if name in records:
            given.root(name, records[name])
    program = compile_row(tuple(ROOTS), tree)
    try:
        value = program.call(*arguments(program.roots, records))
        actual = encoder.constant(value, node.type)
    except CelError:
        actual = Symbolic(z3.BoolVal(True), good(made.value).value)
    solver = z3.Solver()
    solver.set("rlimit", 2_000_000)
    solver.add(*encoder.facts, *given.said, z3.Not(unlike(made, actual)))
    answer = solver.check()
    return None if answer == z3.unknown else bool(answer == z3.sat)


def checked(node: ir.Node, name: str, inputs: int, *, tells: bool = True) -> None:
    reads = reads_of([node])
    search = Search(_Nothing(node), reads, Pools(reads, {}), Draws(name.encode().ljust(8)))
    told = 0
    for _ in range(inputs):
        records = dict(search.change(search.rng.choice(search.situations).records))
        if any(
            len(held) > ELEMENTS
            for record in records.values()
            if isinstance(record, dict)
            for held in record.values()
            if isinstance(held, list)
        ):
            continue
        answer = admitted(node, records)
        assert answer is not False, (name, records)
        told += answer is True
    assert told or not inputs or not tells


class _Nothing:
    """A goal that no input meets."""

    def __init__(self, node: ir.Node) -> None:
        self.expressions = (node,)
        self.pairs = ((node, node),)
        self.given = None

    def prepared(self, records: Any) -> Any:
        return records

    def met(self, records: Any) -> bool:
        return False


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_an_expression(text: str) -> None:
    checked(of_text(text), text, INPUTS)


@pytest.mark.parametrize("text", [text for text in EXPRESSIONS if of_text(text).type == BOOL])
def test_a_condition_that_can_fail(text: str) -> None:
    checked(settled(of_text(text), ""), text, INPUTS)


def test_the_decisions_of_the_pack() -> None:
    """All of them can be told but the square roots of one strategy, which a solver knows by name alone."""
    graph = compiled({}).graph
    assert graph is not None
    for key in graph.decisions:
        node = graph.expression(str(key))
        if not isinstance(node, ir.Const):
            checked(node, str(key), 3, tells="[FragmentationAware]" not in str(key))
