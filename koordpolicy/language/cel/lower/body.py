"""The body of one generated function, written from numbered nodes.

What an operand's text needs beforehand goes into the current block as statements; the text itself
is used once. Operands that are evaluated only sometimes (branches, the right side of logic, a loop's
body) are written into blocks of their own, with a scope of their own for values already at hand.

Equal nodes are computed once: where the first use surely comes before the others, its value simply
gets a name; elsewhere it is remembered on first need (`x = UNSET` ahead, `if x is UNSET: x = ...`).
Code that would be written a second time, and code nested too deeply for Python, becomes a function
of its own, a *part*.
"""

import keyword
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeAlias

from koordpolicy.language.cel import ir
from koordpolicy.language.cel.functions import Function, Overload, overload_named
from koordpolicy.language.cel.ir_walk import Numbering
from koordpolicy.language.cel.lower import charging
from koordpolicy.language.cel.lower.source import Block
from koordpolicy.language.cel.values import UInt, Value

_WORTH_REMEMBERING = 6
_PART_HEIGHT = 30
_MAX_NESTING = 10
_NO_ROOTS: frozenset[str] = frozenset()


Compute: TypeAlias = Callable[["Body", ir.Node, tuple[int, ...]], str]
"""The text of a node's value, of its operands by number; statements that it needs go ahead of it into the body."""


class Program:
    """What the functions of one program share: numbered nodes, constants, parts, and how a node is computed."""

    def __init__(
        self,
        roots: tuple[str, ...],
        numbering: Numbering,
        functions: Mapping[str, Function],
        fact_names: Mapping[str, str],
        compute: "Compute",
    ) -> None:
        self.roots = roots
        self.numbering = numbering
        self.functions = functions
        self.fact_names = fact_names
        self.compute = compute
        self.constants: dict[str, Value] = {}
        self.constant_keys: dict[str, object] = {}
        self.root_names = [_identifier(name, at) for at, name in enumerate(roots)]
        self.metered: list[bool] = []
        self.uses_roots: list[frozenset[str]] = []
        self.written: set[int] = set()
        self._constant_names: dict[object, str] = {}
        self._parts: dict[int, str] = {}
        self._pending: list[int] = []
        self.has_loop = any(isinstance(node, ir.Comprehension) for node in numbering.nodes)
        for node, below in zip(numbering.nodes, numbering.operands, strict=True):
            charges = self.has_loop or charging.charges(self.overload, node)
            self.metered.append(charges or any(self.metered[n] for n in below))
            names = _NO_ROOTS.union(*(self.uses_roots[n] for n in below)) if below else _NO_ROOTS
            if isinstance(node, ir.Var) and not node.local:
                if node.name not in roots:
                    raise ValueError(f"`{node.name}` is not among the roots")
                names |= {node.name}
            self.uses_roots.append(names)

    def overload(self, id: str) -> Overload | None:
        """The overload with an id; None for an id that asks for dispatch."""
        return overload_named(id, self.functions)

    def constant(self, value: Value, key: object = None) -> str:
        """The name under which generated code finds a value; equal keys share one."""
        if key is not None and key in self._constant_names:
            return self._constant_names[key]
        name = f"K{len(self.constants)}"
        self.constants[name] = value
        if key is not None:
            self._constant_names[key] = name
            self.constant_keys[name] = key
        return name

    def literal(self, node: ir.Const) -> str:
        """The text of a constant."""
        value = node.value
        if value is None or isinstance(value, (bool, str, bytes)):
            return repr(value)
        if isinstance(value, int) and not isinstance(value, UInt):
            return repr(value) if value >= 0 else f"({value})"
        if isinstance(value, float) and math.isfinite(value):
            return repr(value) if math.copysign(1.0, value) > 0 else f"({value})"
        return self.constant(value, ("const", node.type, node.key) if node.key else None)

    def step_price(self, loop: ir.Comprehension, operands: tuple[int, ...]) -> int:
        """Units of one step of a loop, apart from what is charged while it runs."""
        table, seen, total = self.numbering, set(operands[:1]), charging.STEP[loop.macro]
        waiting = list(operands[1:])
        while waiting:
            n = waiting.pop()
            # What is small is computed again wherever it is needed; the rest once a step.
            if n in seen and table.weight[n] >= _WORTH_REMEMBERING:
                continue
            seen.add(n)
            total += charging.step_price(self.overload, table.nodes[n])
            waiting += (
                table.operands[n][:1] if isinstance(table.nodes[n], ir.Comprehension) else table.operands[n]
            )
        return total

    def price(self) -> int:
        """Units of all nodes, each once, apart from what is charged while they are computed."""
        return sum(charging.step_price(self.overload, node) for node in self.numbering.nodes)

    def part(self, n: int) -> tuple[str, list[str], list[str], bool]:
        """The function that computes node `n`: name, roots, free locals, whether it takes the meter."""
        if n not in self._parts:
            self._parts[n] = f"part{len(self._parts)}"
            self._pending.append(n)
        roots = [name for name in self.roots if name in self.uses_roots[n]]
        return self._parts[n], roots, sorted(self.numbering.free[n]), self.metered[n]

    def write_parts(self, module: Block) -> None:
        """Write all parts that were asked for, those asked for meanwhile included."""
        while self._pending:
            n = self._pending.pop()
            name, roots, free, metered = self.part(n)
            body = Body(self, tuple(roots), frozenset(free), metered)
            body.is_part = True
            body.block.line(f"return {body.compute(n)}")
            module.line(f"def {name}({', '.join(body.parameters)}):")
            module.nest(body.finish())


def _identifier(name: str, at: int) -> str:
    return (
        f"{name}_" if name.isascii() and name.isidentifier() and not keyword.iskeyword(name) else f"root{at}"
    )


@dataclass(slots=True)
class _Frame:
    """The function's body, or a loop's: where values that depend on its variables are forgotten."""

    names: frozenset[str]
    depth: int
    prologue: Block
    memos: dict[int, str] = field(default_factory=dict)


class Body:
    """One generated function."""

    def __init__(self, program: Program, roots: tuple[str, ...], free: frozenset[str], metered: bool) -> None:
        self.program = program
        self.numbering = program.numbering
        self.block = Block()
        self.may_fail = False
        self.nesting = 0
        self.locals: dict[str, str] = {}
        self._count = 0
        self._scopes: list[dict[int, str]] = [{}]
        self._start = Block()
        self._frames = [_Frame(free, 1, self._start)]
        self.is_part = False
        names = dict(zip(program.roots, program.root_names, strict=True))
        self.roots = {name: names[name] for name in roots}
        for name in sorted(free):
            self.locals[name] = self.fresh()
        self.parameters = [*self.roots.values(), *(self.locals[name] for name in sorted(free))]
        if metered:
            self.parameters.append("meter")

    def finish(self) -> Block:
        """The whole body, with what has to stand at its start."""
        whole = Block()
        whole.append(self._start)
        whole.append(self.block)
        return whole

    def fresh(self) -> str:
        """A new local name."""
        self._count += 1
        return f"t{self._count}"

    def node(self, n: int) -> ir.Node:
        """The node with a number."""
        return self.numbering.nodes[n]

    def operands(self, n: int) -> tuple[int, ...]:
        """The numbers of a node's operands."""
        return self.numbering.operands[n]

    # Values

    def text(self, n: int) -> str:
        """The text of a node's value here, to be used once; may write statements ahead of it."""
        for scope in reversed(self._scopes):
            if n in scope:
                return scope[n]
        node = self.node(n)
        if isinstance(node, ir.Const):
            return self.program.literal(node)
        if isinstance(node, ir.Var):
            return self.locals[node.name] if node.local else self.roots[node.name]
        if self._is_remembered(n):
            return self._remember(n)
        text = self.compute_or_call(n)
        if self.numbering.uses[n] > 1:
            text = self.name(text)
            self._scopes[-1][n] = text
        return text

    def atom(self, n: int) -> str:
        """A text that may be repeated: a name or a short constant."""
        text = self.text(n)
        return text if text.isidentifier() or isinstance(self.node(n), ir.Const) else self.name(text)

    def name(self, text: str) -> str:
        """Give a text's value a name."""
        if text.isidentifier() and text not in ("True", "False", "None"):
            return text
        name = self.fresh()
        self.block.line(f"{name} = {text}")
        return name

    def truth(self, n: int) -> str:
        """The text of a condition, checked at run time where its static type is not bool."""
        text = self.text(n)
        if self.node(n).type.name == "bool":
            return text
        self.may_fail = True
        return f"as_bool({text})"

    def compute_or_call(self, n: int) -> str:
        """Write a node's computation here, or the call of a part."""
        program, table = self.program, self.numbering
        again = n in program.written and table.weight[n] >= _WORTH_REMEMBERING
        deep = table.height[n] > 1 and (table.height[n] % _PART_HEIGHT == 0 or self.nesting >= _MAX_NESTING)
        if not again and not deep:
            program.written.add(n)
            return self.compute(n)
        name, roots, free, metered = program.part(n)
        self.may_fail = True
        arguments = [self.roots[root] for root in roots] + [self.locals[local] for local in free]
        return f"{name}({', '.join([*arguments, 'meter'] if metered else arguments)})"

    def compute(self, n: int) -> str:
        """Write a node's computation here."""
        node = self.node(n)
        return self.program.compute(self, node, self.operands(n))

    @property
    def repeats(self) -> bool:
        """Whether what is written here may run many times: in a loop, or in a part called by one."""
        return self.program.has_loop and (self.is_part or len(self._frames) > 1)

    # Values remembered on first need

    def _owner(self, n: int) -> int:
        free = self.numbering.free[n]
        for at in range(len(self._frames) - 1, 0, -1):
            if not free.isdisjoint(self._frames[at].names):
                return at
        return 0

    def _is_remembered(self, n: int) -> bool:
        if self.numbering.weight[n] < _WORTH_REMEMBERING:
            return False
        at = self._owner(n)
        frame = self._frames[at]
        if n in frame.memos:
            return True
        outside = at != len(self._frames) - 1
        sometimes = len(self._scopes) != frame.depth
        return outside or (sometimes and self.numbering.uses[n] > 1)

    def _remember(self, n: int) -> str:
        frame = self._frames[self._owner(n)]
        name = frame.memos.get(n)
        if name is None:
            name = frame.memos[n] = self.fresh()
            frame.prologue.line(f"{name} = UNSET")
        with self.branch() as inner:
            self.block.line(f"{name} = {self.compute_or_call(n)}")
        self.block.line(f"if {name} is UNSET:")
        self.block.nest(inner)
        self._scopes[-1][n] = name
        return name

    # Blocks

    @contextmanager
    def branch(self) -> Iterator[Block]:
        """Write into a new block, with a scope of its own; the caller places it."""
        outer, self.block = self.block, Block()
        self._scopes.append({})
        self.nesting += 1
        try:
            yield self.block
        finally:
            self.block = outer
            self._scopes.pop()
            self.nesting -= 1

    @contextmanager
    def watch(self) -> Iterator["Watch"]:
        """Note whether what is written meanwhile may fail."""
        before, self.may_fail = self.may_fail, False
        seen = Watch()
        try:
            yield seen
        finally:
            seen.may_fail = self.may_fail
            self.may_fail = self.may_fail or before

    @contextmanager
    def loop(self, names: Mapping[str, str]) -> Iterator[Block]:
        """Write the body of a loop over local variables, given as IR name to Python name."""
        self.locals.update(names)
        with self.branch() as inner:
            prologue = Block()
            inner.parts.append(_Flat(prologue))
            self._frames.append(_Frame(frozenset(names), len(self._scopes), prologue))
            try:
                yield inner
            finally:
                self._frames.pop()
                for name in names:
                    del self.locals[name]


class _Flat(Block):
    """A block that stands on the level of its parent, to be filled in later."""

    __slots__ = ()

    def __init__(self, inner: Block) -> None:
        super().__init__()
        self.parts = inner.parts

    def lines(self, level: int = 0) -> Iterator[str]:
        yield from super().lines(level - 1)


@dataclass(slots=True)
class Watch:
    """What `Body.watch` saw."""

    may_fail: bool = False
