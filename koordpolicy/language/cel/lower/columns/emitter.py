"""From typed nodes to the statements that compute them for all rows at once.

`Emitter` decides in which way a node is computed: once for all rows, kept between calls, in columns, or row by
row. The rules for the classes of nodes are handed to it (`nodes`), those for overloads stand in `arithmetic`. Each node's symbol is remembered under
its value number, so that what several outputs share is computed once. What has no column form is
evaluated by a row program for the rows that need it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from koordpolicy.language.cel import ir
from koordpolicy.language.cel.functions import Overload
from koordpolicy.language.cel.ir_walk import bound_names, facts_of, rewrite, walk
from koordpolicy.language.cel.library import OVERLOADS
from koordpolicy.language.cel.lower.columns.frame import Frame
from koordpolicy.language.cel.lower.columns.parts import (
    ENTRIES,
    OPERATION,
    ROWS,
    WORK,
    WORTH_KEEPING,
    ZEROS,
    Fallback,
    KeptPart,
    RowPart,
    own_effort,
)
from koordpolicy.language.cel.lower.columns.symbols import (
    BOOL,
    COUNTED,
    DOUBLE,
    DURATION,
    NUMBERS,
    STRING,
    TIMESTAMP,
    EntrySpace,
    Need,
    NoColumnForm,
    Symbol,
    ThingVec,
    Vec,
    kind_of,
)
from koordpolicy.language.cel.lower.columns.writer import OUT, SPACE, Writer
from koordpolicy.language.cel.values import INT_MAX, INT_MIN, Duration, Timestamp

_MAX_LEVELS: Final = 85
"""Levels of nodes that are written within each other. Python takes 100 of blocks, and 20 of loops."""

_MAX_LOOPS: Final = 10


EmitNode: TypeAlias = Callable[["Emitter", ir.Node, Need | None], Symbol]
"""Writes a node in columns, by the rule for its class. Raises NoColumnForm."""

Rule: TypeAlias = Callable[["Emitter", Sequence[Vec]], Vec]
"""Writes one overload for its operands in columns."""


@dataclass(slots=True, kw_only=True)
class Emitter(Frame):
    """Writes one program. `fallen` has the numbers of nodes known to have no column form."""

    emit_node: EmitNode
    table_root: str
    roots: tuple[str, ...]
    fallen: dict[int, Fallback] = field(default_factory=dict)
    prepare: Writer = field(default_factory=lambda: Writer("p"))
    exports: list[str] = field(default_factory=list)
    used: list[Fallback] = field(default_factory=list)
    shared: dict[str, ir.Node] = field(default_factory=dict)
    parts: list[RowPart] = field(default_factory=list)
    lanes: dict[str, str] = field(default_factory=dict)
    overloads: Mapping[str, Overload] = field(default_factory=lambda: OVERLOADS)
    uses_lists: bool = False
    kept: list[KeptPart] = field(default_factory=list)
    _levels: int = 0
    _keeping: tuple[tuple[str, ...], str] | None = None
    _efforts: dict[int, int] = field(default_factory=dict)
    _impure: dict[int, bool] = field(default_factory=dict)
    _ranges: dict[str, int] = field(default_factory=dict)
    _varying: dict[int, bool] = field(default_factory=dict)
    _partial: dict[int, bool] = field(default_factory=dict)

    @property
    def constants(self) -> dict[str, object]:
        """The values behind global names of the generated code."""
        return {**self.prepare.constants, **self.writer.constants}

    # --- what nodes are -------------------------------------------------------------------------

    def varies(self, node: ir.Node) -> bool:
        """Whether the value differs from row to row."""
        return self._holds(self.numbering.of(node), self._varying, self._varies_itself)

    def _varies_itself(self, number: int) -> bool:
        node = self.numbering.nodes[number]
        if not isinstance(node, ir.Var):
            return False
        if not node.local:
            return node.name == self.table_root
        # A macro's variable is one for all rows where the list is that it walks.
        if not self._ranges:
            for binder, operands in zip(self.numbering.nodes, self.numbering.operands, strict=True):
                for name in bound_names(binder):
                    self._ranges[name] = operands[0]
        return self._holds(self._ranges[node.name], self._varying, self._varies_itself)

    def is_partial(self, node: ir.Node) -> bool:
        """Whether computing it takes row programs."""
        return self._holds(self.numbering.of(node), self._partial, self.fallen.__contains__)

    def _holds(self, number: int, known: dict[int, bool], itself: Callable[[int], bool]) -> bool:
        """Whether something is so of a node or of any below it, however deep."""
        stack = [number]
        while stack:
            at = stack[-1]
            if at in known:
                stack.pop()
                continue
            below = self.numbering.operands[at]
            if itself(at) or any(known.get(operand) for operand in below):
                known[at] = True
            elif unknown := [operand for operand in below if operand not in known]:
                stack += unknown
            else:
                known[at] = False
        return known[number]

    # --- emission -------------------------------------------------------------------------------

    def emit(self, node: ir.Node, need: Need | None = None) -> Symbol:
        """Write what computes a node; its symbol.

        `need` names the mask of rows whose value matters (None: all): what row programs evaluate is
        evaluated for those only. Raises NoColumnForm when no row program can stand in either.
        """
        found = self.emit_held(node, need)
        return self.as_int(found) if isinstance(found, Vec) else found

    def emit_held(self, node: ir.Node, need: Need | None = None) -> Symbol:
        """The same for those who take whole numbers as doubles as well."""
        number = self.numbering.of(node)
        key = (number, need if self.is_partial(node) else None)
        found = self.writer.recall(key)
        if found is None:
            found = self._emit(node, number, need)
            self.writer.remember(key, found)
        return found  # type: ignore[return-value]

    def _emit(self, node: ir.Node, number: int, need: Need | None) -> Symbol:
        if not self.varies(node):
            return self._emit_uniform(node)
        if number in self.fallen:
            if kind_of(node.type) is None:
                raise NoColumnForm(node, self.fallen[number].reason)
            return self._emit_fallback(node, need)
        self._levels += 1
        try:
            with self.writer.attempt():
                self._limit_levels(node)
                if self._is_kept(node, number):
                    return self._emit_kept(node)
                return self.emit_node(self, node, need)
        except NoColumnForm as found:
            if not self._falls_back(node):
                raise
            self.fallen[number] = Fallback(found.reason, found.node.start, found.node.end)
            self._partial.clear()
            return self._emit_fallback(node, need)
        finally:
            self._levels -= 1

    def _limit_levels(self, node: ir.Node) -> None:
        if self._levels > _MAX_LEVELS or self.writer.loops > _MAX_LOOPS:
            raise NoColumnForm(node, "too many levels")

    def emit_vec(self, node: ir.Node, need: Need | None = None) -> Vec:
        """Write a node that must be a plain vector or scalar."""
        vec = self.emit_number(node, need)
        return self.as_int(vec)

    def emit_bool(self, node: ir.Node, need: Need | None = None) -> Vec:
        """Write a node that has to be a bool, which one of type dyn need not be."""
        vec = self.emit_vec(node, need)
        if vec.kind != BOOL:
            raise NoColumnForm(node, f"a bool is wanted, this is a {vec.kind}")
        return vec

    def emit_number(self, node: ir.Node, need: Need | None = None) -> Vec:
        """The same, where whole numbers may be held as doubles."""
        symbol = self.emit_held(node, need)
        if not isinstance(symbol, Vec):
            raise NoColumnForm(node, f"values of type {node.type} have no column")
        return symbol

    # --- what the table alone decides -----------------------------------------------------------

    def _is_kept(self, node: ir.Node, number: int) -> bool:
        """Whether the value is worth keeping between calls: it takes work, and beside the table only roots of one
        value, such as `now`, decide it.
        """
        if not isinstance(node, WORK) or kind_of(node.type) in (None, STRING) or self.is_partial(node):
            return False
        if self.numbering.free[number] or self._holds(number, self._impure, self._depends):
            return False
        return self._effort(number) >= WORTH_KEEPING

    def _effort(self, number: int) -> int:
        """What it takes to compute a node, in operations on whole columns, roughly."""
        stack = [number]
        while stack:
            below = self.numbering.operands[stack[-1]]
            if unknown := [operand for operand in below if operand not in self._efforts]:
                stack += unknown
                continue
            at = stack.pop()
            total = sum(self._efforts[operand] for operand in below) + own_effort(self.numbering.nodes[at])
            self._efforts[at] = min(total, 1_000)
        return self._efforts[number]

    def _depends(self, number: int) -> bool:
        """Whether a node needs what a kept part does not have: other roots, prepared values, loops."""
        node = self.numbering.nodes[number]
        if isinstance(node, (ir.Const, ir.Var)):
            return isinstance(node, ir.Var) and not (
                node.local or node.name == self.table_root or self._is_given(node)
            )
        if isinstance(node, ir.Comprehension) and not self.varies(node.range):
            return True
        return not self.varies(node)

    def _given(self, node: ir.Node) -> list[str]:
        """The variables of the roots of one value that a part reads."""
        roots = {part.name: part for part in walk(node) if self._is_given(part)}  # type: ignore[attr-defined]
        return [self.emit_vec(roots[name]).values for name in sorted(roots)]

    def _is_given(self, node: ir.Node) -> bool:
        """Whether a node is a root of one value."""
        return isinstance(node, ir.Var) and not node.local and kind_of(node.type) is not None

    def _emit_kept(self, node: ir.Node) -> Vec:
        facts = tuple(sorted(path for record, path in facts_of(node) if record == self.table_root))
        given = "".join(f", {name}" for name in self._given(node))
        if (facts, given) == self._keeping:
            vec = self.emit_node(self, node, None)
            assert isinstance(vec, Vec)
            return vec
        outer, listed, keeping = self.writer, self.uses_lists, self._keeping
        self.writer, self.uses_lists, self._keeping = Writer(beside=outer), False, (facts, given)
        try:
            self.writer.line(f"{SPACE} 0 n")
            vec = self.emit_vec_of(self.emit_node(self, node, None), node)
            if self.uses_lists:  # row programs know nothing of doubles
                vec = self.as_int(vec)
            value, failed = self.own_arrays(vec)
            numbers = vec.kind in NUMBERS
            low, high = self.bounds_of(vec) if numbers else ("0", "0")
            part = KeptPart(
                node, facts, given, self.writer.lines, (value, failed, low, high), self.uses_lists
            )
        finally:
            whole = self.uses_lists
            self.writer, self.uses_lists, self._keeping = outer, listed or whole, keeping
        self.kept.append(part)
        value, failed = outer.name("v"), outer.name("e")
        low, high = outer.name("l"), outer.name("h")
        outer.line(
            f"{value}, {failed}, {low}, {high} = kept{len(self.kept) - 1}.get(table, rows, n, meter{given})",
            (),
        )
        bounds = (lambda: (low, high)) if numbers else None
        return Vec(vec.kind, value, ROWS, failed, bounds, unsigned=vec.unsigned)

    def own_arrays(self, vec: Vec) -> tuple[str, str]:
        """Values and errors of a vector in arrays that are nobody else's."""
        value, failed = vec.values, vec.errors or "None"
        if not vec.fresh:  # it may be the table's own, which changes later
            value = self.array(vec.kind, ROWS, f"copy_of({value}, {OUT})")
        if failed != "None":
            failed = self.new("e", f"None if {failed} is None else {failed}.copy()")
        return value, failed

    def emit_vec_of(self, symbol: Symbol, node: ir.Node) -> Vec:
        """The symbol, which must be a vector over rows."""
        if not isinstance(symbol, Vec) or symbol.space is not ROWS:
            raise NoColumnForm(node, f"values of type {node.type} have no column")
        return symbol

    # --- what it costs --------------------------------------------------------------------------

    def price_of_pass(self, node: ir.Comprehension) -> str:
        """The text of the units of one pass of a loop over the rows: its body, once for all of them."""
        parts = [part for part in (node.predicate, node.transform) if part is not None]
        return f"{sum(1 for _ in walk(*parts))} * ({OPERATION} + n // {ENTRIES})"

    def price_of_all(self, count: str) -> str:
        """The text of the units of the whole program over so many entries."""
        return f"{len(self.numbering.nodes)} * ({OPERATION} + {count} // {ENTRIES})"

    # --- one value for all rows -----------------------------------------------------------------

    def _emit_uniform(self, node: ir.Node) -> Symbol:
        if isinstance(node, ir.Const):
            return self.constant(node)
        lanes = self.numbering.free[self.numbering.of(node)]
        if lanes:
            return self._emit_in_lane(node)
        key = ("uniform", self.numbering.of(node))
        found = self.prepare.recall(key)
        if found is None:
            value, failed = self._prepare(node)
            found = self._convert(self.prepare, node, value, failed)
            self.exports += [found.values] if failed == "False" else [found.values, failed]
            self.prepare.remember(key, found)
        return found  # type: ignore[return-value]

    def _prepare(self, node: ir.Node) -> tuple[str, str]:
        writer = self.prepare
        value, failed = writer.name("u"), writer.name("f")
        if isinstance(node, ir.Field) and isinstance(node.base, ir.Var):
            writer.line(f"{value} = {self.root(node.base.name)}.get({node.path!r}, ABSENT)")
            writer.line(f"{failed} = {value} is ABSENT")
        elif isinstance(node, ir.Var):
            writer.line(f"{value} = {self.root(node.name)}")
            failed = "False"
        else:
            self.shared[value] = node
            writer.line(f"{value} = shared[{value!r}]; {failed} = isinstance({value}, CelError)")
        return value, failed

    def root(self, name: str) -> str:
        """The generated code's name of a root."""
        return f"root{self.roots.index(name)}"

    def _emit_in_lane(self, node: ir.Node) -> Symbol:
        """A value that depends on the variable of a loop over a list or map of the pod's."""
        writer = self.writer
        if isinstance(node, ir.Var):
            name = self.lanes[node.name]
            return self._convert(writer, node, writer.let("u", name), "False")
        value, failed = writer.name("u"), writer.name("f")
        if isinstance(node, ir.Field) and isinstance(node.base, ir.Var) and node.base.local:
            writer.line(f"{value} = {self.lanes[node.base.name]}.get({node.path!r}, ABSENT)")
            writer.line(f"{failed} = {value} is ABSENT")
        else:
            part, arguments = self.row_part(node)
            writer.line(f"{value}, {failed} = attempt(row{part}, meter, {', '.join(arguments)})")
        return self._convert(writer, node, value, failed)

    def _convert(self, writer: Writer, node: ir.Node, value: str, failed: str) -> Vec | ThingVec:
        """Bring a run-time value to the form that columns hold."""
        kind = kind_of(node.type)
        never = None if failed == "False" else failed
        if kind is None:
            return ThingVec(value, never, node.type)
        if kind in (DURATION, TIMESTAMP):
            writer.line(f"{value} = 0 if {failed} else instant({value})")
        elif never:
            writer.line(f"if {failed}: {value} = {ZEROS[kind]}")
        numbers = kind in COUNTED or kind == DOUBLE
        if kind == DOUBLE:  # NaN is within no bounds
            bounds = (
                f"({value} if {value} == {value} else -inf)",
                f"({value} if {value} == {value} else inf)",
            )
        else:
            bounds = (value, value)
        return Vec(kind, value, None, never, (lambda: bounds) if numbers else None)

    def constant(self, node: ir.Const) -> Vec | ThingVec:
        """A constant; it need not be part of the program's trees."""
        value, kind = node.value, kind_of(node.type)
        if value is None and kind is not None:
            raise NoColumnForm(node, "nothing holds here, and no number stands for that")
        if kind is not None and isinstance(value, (Duration, Timestamp)):
            if not INT_MIN <= value.ns <= INT_MAX:
                raise NoColumnForm(node, "a point in time beyond the years 1678 to 2262")
            value = value.ns
        if kind is None:
            return ThingVec(self.writer.constant("K", value), None, node.type)
        if kind == STRING or value != value or value in (float("inf"), float("-inf")):
            name = self.writer.constant("K", value)
        else:
            name = f"({value!r})" if isinstance(value, (int, float)) and value < 0 else repr(value)
        bounds = None if value != value else (lambda: (name, name))
        more = isinstance(value, float) and value > 0
        numbers = bounds if kind in COUNTED or kind == DOUBLE else None
        return Vec(kind, name, None, None, numbers, unsigned=more)

    # --- row by row -----------------------------------------------------------------------------

    def _falls_back(self, node: ir.Node) -> bool:
        if kind_of(node.type) is None:
            return False
        free = self.numbering.free[self.numbering.of(node)]
        return all(name in self.lanes for name in free)

    def row_part(self, node: ir.Node, varying: bool = False) -> tuple[int, list[str]]:
        """A row program for a node: its number, and its arguments in the generated code.

        With `varying` its first parameter is the row, and not among the arguments.
        """
        free = sorted(self.numbering.free[self.numbering.of(node)])

        def as_root(part: ir.Node) -> ir.Node:
            if isinstance(part, ir.Var) and part.local and part.name in free:
                return ir.Var(part.type, part.name)
            return part

        names = (*((self.table_root,) if varying else ()), *self.roots, *free)
        self.parts.append(RowPart(rewrite(node, as_root), names))
        arguments = [*(self.root(name) for name in self.roots), *(self.lanes[name] for name in free)]
        return len(self.parts) - 1, [f"{argument}," for argument in arguments] if varying else arguments

    def _emit_fallback(self, node: ir.Node, need: Need | None) -> Vec:
        writer, kind = self.writer, kind_of(node.type)
        assert kind is not None
        cell = self._cell(node, kind)
        value, failed = writer.name("v"), writer.name("e")
        # A mask over elements says nothing about which rows they belong to: then all are needed.
        wanted = need.mask if need is not None and need.space is ROWS else None
        writer.line(f"{value}, {failed} = {cell}.fill({wanted})")
        return Vec(kind, value, ROWS, failed)

    def _cell(self, node: ir.Node, kind: str | None) -> str:
        """The variable of the cell of a node, made where its parameters are known."""
        number = self.numbering.of(node)
        cell = self.writer.recall(("cell", number))
        if cell is None:
            if self.fallen[number] not in self.used:
                self.used.append(self.fallen[number])
            part, arguments = self.row_part(node, varying=True)
            cell = self.writer.let(
                "cell", f"Cell(row{part}, {kind!r}, table, rows, n, ({' '.join(arguments)}), strings, meter)"
            )
            self.writer.remember(("cell", number), cell)
        assert isinstance(cell, str)
        return cell

    def note_fallback(self, node: ir.Node, found: NoColumnForm) -> None:
        """Remember that a whole output has no column form."""
        self.fallen[self.numbering.of(node)] = Fallback(found.reason, found.node.start, found.node.end)

    def by_rows(self, node: ir.Node) -> tuple[str, str]:
        """Values and errors of an output that only row programs can give."""
        number = self.numbering.of(node)
        if number not in self.fallen:
            self.fallen[number] = Fallback(
                f"results of type {node.type} have no column", node.start, node.end
            )
        cell = self._cell(node, kind_of(node.type))
        value, failed = self.writer.name("v"), self.writer.name("e")
        self.writer.line(f"{value}, {failed} = {cell}.fill(None)")
        return value, failed

    def narrow(self, need: Need | None, mask: str, space: EntrySpace) -> Need:
        """What is needed where `mask`, over `space`, says so too."""
        if need is None or need.space is not space:
            return Need(self.writer.let("m", mask) if mask.startswith("~") else mask, space)
        return Need(self.writer.let("m", f"{mask} & {need.mask}"), space)
