"""The branches of expressions, and which of them evaluations take.

A probe marks them while the bundle is compiled once more: what can go two ways tells which way it went. Marks are
calls of functions that no policy can name, so that folding leaves them alone and both rows and loops keep their order
of evaluation.
"""

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from koordpolicy.diagnostics import Span
from koordpolicy.graph.compiler import probed
from koordpolicy.graph.graph import RuleGraph
from koordpolicy.graph.state import Unit
from koordpolicy.language.cel import ir
from koordpolicy.language.cel.constants import constant
from koordpolicy.language.cel.errors import CelError
from koordpolicy.language.cel.functions import Function, Overload
from koordpolicy.language.cel.ir_walk import rewrite
from koordpolicy.language.cel.library import FUNCTIONS
from koordpolicy.language.cel.lower.row import RowProgram, compile_row
from koordpolicy.language.cel.types import BOOL, INT, param
from koordpolicy.language.cel.values import NONE
from koordpolicy.language.documents import Document
from koordpolicy.language.documents.document import Path
from koordpolicy.language.kinds import PolicySpec
from koordpolicy.language.kinds.bundle import LibrarySpec
from koordpolicy.language.kinds.exceptions import PolicyExceptionSpec


class BranchKind(StrEnum):
    """What can go two ways; a formula can only be evaluated."""

    ARM = "arm"
    OPERAND = "operand"
    DEFAULT = "default"
    ELEMENT = "element"
    CONDITION = "condition"
    SELECTOR = "selector"
    FORMULA = "formula"


class BranchOutcome(StrEnum):
    """Which way a branch went."""

    TAKEN = "taken"
    TRUE = "true"
    FALSE = "false"
    PRESENT = "present"
    ABSENT = "absent"


@dataclass(frozen=True, slots=True)
class Branch:
    """One way that one part of an expression can go. `text` is the part as written; `path` leads to the expression."""

    kind: BranchKind
    outcome: BranchOutcome
    document: str
    path: Path
    span: Span
    text: str

    @property
    def missed(self) -> str:
        """What is said of it where no case took it."""
        return "never evaluated" if self.kind is BranchKind.FORMULA else _MISSED[self.outcome]


_MISSED = {
    BranchOutcome.TAKEN: "never taken",
    BranchOutcome.TRUE: "never true",
    BranchOutcome.FALSE: "never false",
    BranchOutcome.PRESENT: "never has a value",
    BranchOutcome.ABSENT: "never without a value",
}

Expression = tuple[str, Path]
"""An expression by its document's id and its path."""

_TRUTH = (BranchOutcome.TRUE, BranchOutcome.FALSE)
_PRESENCE = (BranchOutcome.PRESENT, BranchOutcome.ABSENT)
_REACHED, _WENT = "reached", "went"
_ID = f"{_REACHED}(int,T)", f"{_WENT}(int,T)"
_SELECTOR: Path = ("spec", "match")


class Branches:
    """The branches of a bundle's own documents, and those that evaluations took.

    `all` are found while compiling. Evaluations are counted between two calls of `taken`.
    """

    def __init__(self, graph: RuleGraph, units: Iterable[Unit]) -> None:
        """The units are those of all layers; branches of the highest are counted."""
        everything = tuple(units)
        own = max((unit.layer for unit in everything), default=0)
        self._units = {
            unit.document: unit
            for unit in everything
            if unit.layer == own and isinstance(unit.spec, PolicySpec | PolicyExceptionSpec | LibrarySpec)
        }
        self._numbers: dict[Branch | Expression, int] = {}
        self._marked: list[Branch | Expression] = []
        self._hits: set[int] = set()
        self._functions = {**FUNCTIONS, **_functions(self._hits)}
        self.graph = probed(graph, everything, self._probe)

    @property
    def all(self) -> tuple[Branch, ...]:
        """All branches, by place."""
        branches = (one for one in self._marked if isinstance(one, Branch))
        return tuple(sorted(branches, key=lambda one: (one.span, one.kind, one.outcome)))

    def evaluate(self, graph: RuleGraph, decision: str, records: Mapping[str, Any]) -> None:
        """Decide on these records; `graph` is that of these branches, or one made from it."""
        roots = graph.decision(decision).roots
        program = graph.once(("branches", decision), lambda: self._program(graph, decision, roots))
        with suppress(CelError):  # what came before the failure was taken
            program.call(*(records.get(root, {}) for root in roots))

    def taken(self) -> tuple[frozenset[Branch], frozenset[Expression]]:
        """The branches taken, and the expressions evaluated, since this was last asked."""
        hits = [self._marked[at] for at in self._hits]
        self._hits.clear()
        return (
            frozenset(one for one in hits if isinstance(one, Branch)),
            frozenset(one for one in hits if not isinstance(one, Branch)),
        )

    def _program(self, graph: RuleGraph, decision: str, roots: tuple[str, ...]) -> RowProgram:
        return compile_row(roots, graph.expression(decision), self._functions, _MARKED * graph.budget)

    def _probe(self, node: ir.Node, text: str, document: Document, path: Path) -> ir.Node:
        unit = self._units.get(document)
        return node if unit is None else _Marking(self, unit, text, path).marked(node)

    def number(self, one: Branch | Expression) -> int:
        """The number of a mark; an expression that is checked twice keeps its own."""
        at = self._numbers.get(one)
        if at is None:
            at = self._numbers[one] = len(self._marked)
            self._marked.append(one)
        return at


_MARKED = 4
"""How much more an expression with marks may cost."""


def _functions(hits: set[int]) -> dict[str, Function]:
    def reached(at: int, value: Any) -> Any:
        hits.add(at)
        return value

    def went(at: int, value: Any) -> Any:
        first = value is not NONE if type(value) is type(NONE) else value is True
        hits.add(at if first else at + 1)
        return value

    made: tuple[tuple[str, str, Callable[..., Any]], ...] = (
        (_REACHED, _ID[0], reached),
        (_WENT, _ID[1], went),
    )
    anything = param("T")
    return {
        name: Function(name, "", "", (Overload(id, (INT, anything), anything, implementation),))
        for name, id, implementation in made
    }


@dataclass(slots=True)
class _Marking:
    """One expression on its way to its marks."""

    branches: Branches
    unit: Unit
    text: str
    path: Path
    _found: bool = field(default=False, init=False)

    def marked(self, node: ir.Node) -> ir.Node:
        whole = node
        if self.path == _SELECTOR:
            return self._both(BranchKind.SELECTOR, whole, whole)
        inner = rewrite(node, self._change)
        if whole.type == BOOL:
            inner = self._both(BranchKind.CONDITION, inner, whole)
        elif not self._found:
            inner = self._reached(self._branch(BranchKind.FORMULA, BranchOutcome.TAKEN, whole), inner)
        return self._reached((self.unit.id, self.path), inner)

    def _change(self, node: ir.Node) -> ir.Node:
        """A node whose parts are marked already; what a library function says has marks of its own."""
        match node:
            case ir.Cond() if not _is_marked(node.then, node.otherwise):
                then, otherwise = (
                    self._reached(self._branch(BranchKind.ARM, BranchOutcome.TAKEN, arm), arm)
                    for arm in (node.then, node.otherwise)
                )
                return replace(node, then=then, otherwise=otherwise)
            case ir.And() | ir.Or() if not _is_marked(*node.args):
                return replace(
                    node, args=tuple(self._both(BranchKind.OPERAND, arg, arg) for arg in node.args)
                )
            case ir.OrElse() if not _is_marked(node.operand):
                return replace(node, operand=self._both(BranchKind.DEFAULT, node.operand, node.operand))
            case ir.Comprehension(predicate=ir.Node() as predicate) if not _is_marked(predicate):
                if not isinstance(predicate, ir.And | ir.Or):  # its operands tell more
                    return replace(node, predicate=self._both(BranchKind.ELEMENT, predicate, predicate))
        return node

    def _both(self, kind: BranchKind, node: ir.Node, written: ir.Node) -> ir.Node:
        outcomes = _PRESENCE if kind is BranchKind.DEFAULT else _TRUTH
        first, _ = (self.branches.number(self._branch(kind, outcome, written)) for outcome in outcomes)
        return self._call(_ID[1], first, node)

    def _reached(self, one: Branch | Expression, node: ir.Node) -> ir.Node:
        return self._call(_ID[0], self.branches.number(one), node)

    def _call(self, overload: str, number: int, node: ir.Node) -> ir.Node:
        self._found = True
        return ir.Call(node.type, overload, (constant(INT, number), node), start=node.start, end=node.end)

    def _branch(self, kind: BranchKind, outcome: BranchOutcome, node: ir.Node) -> Branch:
        positions = self.unit.document.positions
        if kind is BranchKind.SELECTOR:
            return Branch(kind, outcome, self.unit.id, self.path, positions.value(self.path), "match")
        start, end = (node.start, node.end) if node.end > node.start else (0, len(self.text))
        text = " ".join(self.text[start:end].split())
        return Branch(
            kind, outcome, self.unit.id, self.path, positions.text_span(self.path, start, end), text
        )


def _is_marked(*nodes: ir.Node) -> bool:
    return all(isinstance(node, ir.Call) and node.overload in _ID for node in nodes)
