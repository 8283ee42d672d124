"""The outputs of a program for one pod, or for pods alike, asked row by row.

What no fact of a row decides is worked out when the values of the other roots are given, and stands in the
generated code as a variable. What fails so, such as a fact that the pod has not, is left in its place, where perhaps
nobody needs it: which parts fail decides which of a few functions is taken.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from koordpolicy.language.cel import ir
from koordpolicy.language.cel.errors import CelError
from koordpolicy.language.cel.ir_walk import number
from koordpolicy.language.cel.lower.columns.simplify import from_the_top
from koordpolicy.language.cel.lower.row import Bind, RowProgram, compile_bound, compile_row
from koordpolicy.language.cel.values import Value
from koordpolicy.language.cel.walk import children

Answer: TypeAlias = "object | CelError"
"""A number, bool or string, nanoseconds for durations and points in time, any other value as it is; or what
went wrong."""

_MAX_VARIANTS: Final = 16
"""Functions that are kept; each set of parts that fail has its own."""


@dataclass(frozen=True, slots=True)
class BoundRows:
    """The outputs of a program, all roots but the row's given. For one thread.

    `ask(facts)` gives each output's `Answer` for a row with these facts, in the order of the program's `outputs`.
    """

    ask: Callable[[Mapping[str, object]], tuple[Answer, ...]]


class Binder:
    """Binds expressions to the values of all roots but the first, which stands for the row."""

    __slots__ = ("_budget", "_parts", "_prepare", "_roots", "_trees", "_variants")

    def __init__(self, roots: tuple[str, ...], outputs: Sequence[ir.Node], budget: int) -> None:
        self._roots = roots
        self._budget = budget
        self._trees = outputs
        self._parts = _settled(outputs, roots[0])
        self._prepare: RowProgram | None = None
        self._variants: dict[tuple[int, ...], Bind] = {}

    def bind(self, own: Sequence[Value]) -> BoundRows:
        """The expressions with the values of the other roots, in order."""
        if self._prepare is None:
            self._prepare = compile_row(
                self._roots[1:], {part.name: part.node for part in self._parts}, budget=self._budget
            )
        found = list(self._prepare.call(*own).values())
        failed = tuple([at for at, value in enumerate(found) if isinstance(value, CelError)])
        variant = self._variants.get(failed)
        if variant is None:
            if len(self._variants) == _MAX_VARIANTS:
                del self._variants[next(iter(self._variants))]
            variant = self._variants[failed] = self._variant(frozenset(failed))
        return BoundRows(variant(*own, *found))

    def _variant(self, failed: frozenset[int]) -> Bind:
        known = {
            id(node): part.variable
            for at, part in enumerate(self._parts)
            if at not in failed
            for node in part.places
        }
        trees = [from_the_top(tree, lambda node: known.get(id(node))) for tree in self._trees]
        return compile_bound((*self._roots, *(part.name for part in self._parts)), trees, self._budget)


@dataclass(frozen=True, slots=True)
class _Part:
    """Equal nodes that no fact of a row decides: one of them, all of them, and the root that stands for them."""

    name: str
    node: ir.Node
    places: tuple[ir.Node, ...]

    @property
    def variable(self) -> ir.Var:
        return ir.Var(self.node.type, self.name)


def _settled(trees: Sequence[ir.Node], row: str) -> list[_Part]:
    """The largest parts of the trees that the other roots decide alone."""
    table = number(trees)
    varies: list[bool] = []
    for node, operands in zip(table.nodes, table.operands, strict=True):
        itself = isinstance(node, ir.Var) and not node.local and node.name == row
        varies.append(itself or any(varies[operand] for operand in operands))
    places: dict[int, list[ir.Node]] = {}
    seen: set[int] = set()
    stack = list(trees)
    while stack:
        node = stack.pop()
        if id(node) in seen or isinstance(node, (ir.Const, ir.Var)):
            continue
        seen.add(id(node))
        if varies[table.of(node)] or table.free[table.of(node)]:
            stack.extend(children(node))
        else:
            places.setdefault(table.of(node), []).append(node)
    return [_Part(f"#{at}", table.nodes[at], tuple(nodes)) for at, nodes in sorted(places.items())]
