"""Where values lie, how they meet, and what is known of them: the ground that emission stands on."""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field

from koordpolicy.language.cel import ir
from koordpolicy.language.cel.ir_walk import Numbering
from koordpolicy.language.cel.lower.columns.parts import ROWS, space_of
from koordpolicy.language.cel.lower.columns.symbols import (
    COUNTED,
    DOUBLE,
    DTYPES,
    INT,
    NUMBERS,
    STRING,
    WHOLE,
    WIDEST,
    Bounds,
    EntrySpace,
    NoColumnForm,
    RecordVec,
    Symbol,
    Vec,
)
from koordpolicy.language.cel.lower.columns.writer import OUT, Writer

EXACT = str(2**53)
"""Whole numbers up to this one are doubles."""


@dataclass(slots=True, kw_only=True)
class Frame:
    """The code of one function so far, and the meaning of local variables in it.

    Values of a row stand for each of its elements where an operation is about elements. Masks of
    errors join as operands do. Bounds of numbers are written only where something asks for them.
    With `exact` ints may be held as doubles, on `guards` places where the code gives up beyond those.
    """

    numbering: Numbering
    writer: Writer = field(default_factory=Writer)
    local: dict[str, Symbol] = field(default_factory=dict)
    exact: bool = False
    guards: int = 0
    _spaces: int = 0

    @property
    def rows(self) -> EntrySpace:
        """The space of the table's rows."""
        return ROWS

    def local_space(self, name: str) -> EntrySpace | None:
        """The space of a local variable; None when it is one for all."""
        found = self.local.get(name)
        return None if found is None else space_of(found)

    # --- spaces ---------------------------------------------------------------------------------

    def space_of(self, args: Sequence[Vec]) -> EntrySpace | None:
        """The space in which operands meet: that of elements, if any, else that of rows."""
        return self._innermost([arg.space for arg in args], self.numbering.nodes[-1])

    def _innermost(self, spaces: Iterable[EntrySpace | None], node: ir.Node) -> EntrySpace | None:
        """The space within all others; None where there is none at all."""
        found: EntrySpace | None = None
        for space in spaces:
            if space is None or (found is not None and found.within(space)):
                continue
            if found is not None and not space.within(found):
                raise NoColumnForm(node, "elements of two lists meet")
            found = space
        return found

    def space_of_node(self, node: ir.Node) -> EntrySpace:
        """Where a node's entries lie: in the space of the elements that it names, else in that of rows."""
        free = self.numbering.free[self.numbering.of(node)]
        return self._innermost(map(self.local_space, free), node) or ROWS

    def spread(self, vec: Vec, space: EntrySpace) -> str:
        """The values as an array over a space, also of what is one for all."""
        if vec.space is None:
            return self.once("v", f"np.full({space.count}, {self.element_of(vec)}, {DTYPES[vec.kind]!r})")
        return self.values_in(vec, space)

    def values_in(self, vec: Vec, space: EntrySpace | None) -> str:
        """The values where `space` has its entries: a row's value for each of its elements."""
        if vec.space is space or vec.space is None:
            return vec.values
        assert space is not None and space.parent is not None
        key = ("spread", vec.values, space)
        found = self.writer.recall(key)
        if found is None:
            text = f"np.take({self.values_in(vec, space.parent)}, {space.owners}, 0, {OUT}, 'clip')"
            found = self.array(vec.kind, space, text, apart=True)
            self.writer.remember(key, found)
        assert isinstance(found, str)
        return found

    def errors_in(self, vec: Vec, space: EntrySpace | None) -> str | None:
        """The variable with the mask of errors in a space; for scalars in no space, the bool."""
        if vec.errors is None or vec.space is space:
            return vec.errors
        assert space is not None
        if vec.space is None:
            return self._once(
                ("failed", vec.errors, space), "e", f"np.ones({space.count}, bool) if {vec.errors} else None"
            )
        errors = self.errors_in(vec, space.parent)
        text = f"None if {errors} is None else {errors}[{space.owners}]"
        return self._once(("spread", vec.errors, space), "e", text)

    def join_errors(self, args: Sequence[Vec], space: EntrySpace | None) -> str | None:
        """The variable with the joined errors of operands."""
        joined: str | None = None
        for arg in args:
            errors = self.errors_in(arg, space)
            joined = self.join(joined, errors, space)
        return joined

    def join(self, one: str | None, other: str | None, space: EntrySpace | None = ROWS) -> str | None:
        """Two masks of errors as one."""
        if one is None or other is None or one == other:
            return one or other
        if space is None:
            return self._once(("either", one, other), "f", f"{one} or {other}")
        text = f"{one} if {other} is None else {other} if {one} is None else {one} | {other}"
        return self._once(("join", one, other), "e", text)

    def new(self, prefix: str, text: str) -> str:
        """The variable of an expression that gives an array of its own."""
        name = self.writer.name(prefix)
        self.writer.line(f"{name} = {text}", ())
        return name

    def once(self, prefix: str, text: str) -> str:
        """The variable of an expression that is written once a block."""
        return self._once(("once", text), prefix, text)

    def new_space(self) -> int:
        """The number of one more space."""
        self._spaces += 1
        return self._spaces

    def _once(self, key: Hashable, prefix: str, text: str) -> str:
        found = self.writer.recall(key)
        if found is None:
            found = self.writer.let(prefix, text)
            self.writer.remember(key, found)
        assert isinstance(found, str)
        return found

    # --- numbers and strings --------------------------------------------------------------------

    def bounds_of(self, vec: Vec) -> Bounds:
        """Texts of the least and the greatest value that an operand may have."""
        key = ("bounds", vec.values)
        found = self.writer.recall(key)
        if found is None:
            whole = WIDEST if vec.kind in COUNTED else ("-inf", "inf")
            found = whole if vec.bounds is None else vec.bounds()
            self.writer.remember(key, found)
        return found  # type: ignore[return-value]

    def as_double(self, vec: Vec, text: str, space: EntrySpace) -> str:
        """The values, which `text` names where they are used, as doubles."""
        if vec.kind == DOUBLE:
            return text
        if vec.kind == WHOLE and vec.unsigned:
            return text
        if vec.space is None:
            if text.isdigit():
                return f"{text}.0"
            return self._once(("double", text), "d", f"float({text})")
        if vec.column is not None and vec.space is space:
            return self._once(("doubles", vec.column), "d", f"{vec.column}.doubles")
        found = self.writer.recall(("double", text))
        if found is None:
            made = f"np.add({text}, 0.0, {OUT})" if vec.kind == WHOLE else f"as_doubles({text}, {OUT})"
            found = self.array(DOUBLE, space, made)
            self.writer.remember(("double", text), found)
        assert isinstance(found, str)
        return found

    def as_whole(self, vec: Vec) -> Vec:
        """Whole numbers held as doubles; what is no int stays. The code gives up where one is beyond 2**53."""
        if vec.kind != INT:
            return vec
        key = ("whole", vec.values)
        text, bounds = self.writer.recall(key), self.bounds_of(vec)
        if text is None:
            self.guard(*bounds)
            text = self.as_double(vec, vec.values, vec.space or ROWS)
            self.writer.remember(key, text)
        return Vec(
            WHOLE,
            str(text),
            vec.space,
            vec.errors,
            lambda: bounds,
            unsigned=True,
        )

    def as_int(self, vec: Vec) -> Vec:
        """Whole numbers as int64, whatever they are held as; anything else stays."""
        if vec.kind != WHOLE:
            return vec
        assert vec.space is not None
        key = ("int", vec.values)
        found = self.writer.recall(key)
        if found is None:
            found = self.array(INT, vec.space, f"truncate({vec.values}, {OUT})")
            self.writer.remember(key, found)
        return Vec(INT, str(found), vec.space, vec.errors, vec.bounds, fresh=True)

    def guard(self, low: str, high: str) -> None:
        """Give up where a bound of whole numbers is beyond those that doubles hold."""
        if low.isdigit() and high.isdigit() and int(high) <= 2**53:
            return
        self.guards += 1
        self.writer.line(f"if {low} < -{EXACT} or {high} > {EXACT}: raise Beyond")

    def array(self, kind: str, space: EntrySpace, text: str, apart: bool = False, name: str = "") -> str:
        """The variable of an array that an operation writes, at `OUT` (see `Writer.make`)."""
        return self.writer.make(name or self.writer.name("v"), DTYPES[kind], space.number, text, apart)

    def choose(
        self, chosen: str, then: str, otherwise: str, kind: str, space: EntrySpace, name: str = ""
    ) -> str:
        """The variable of values of a number kind picked by a mask."""
        key = ("wide", chosen)
        mask = self.writer.recall(key)
        if mask is None:
            mask = self.array(INT, space, f"wide_mask({chosen}, {OUT})")
            self.writer.remember(key, mask)
        return self.array(kind, space, f"select({mask}, {then}, {otherwise}, {OUT})", True, name)

    def code_of(self, vec: Vec) -> str:
        """The number of a string that is one for all rows."""
        return self._once(("code", vec.values), "c", f"strings.code({vec.values})")

    def element_of(self, vec: Vec) -> str:
        """A value that is one for all rows, in the form that arrays hold."""
        return self.code_of(vec) if vec.kind == STRING else vec.values

    # --- columns --------------------------------------------------------------------------------

    def read(self, record: RecordVec, call: str) -> str:
        """The variable of a column of a record, such as `column('capacity.cpu')`, rows selected."""
        key = ("column", record.store, call)
        found = self.writer.recall(key)
        if found is None:
            found = self.writer.let("c", f"{record.store}.{call}")
            if record.space is ROWS:
                self.writer.line(f"if rows is not None: {found} = {found}.pick(rows)")
            self.writer.remember(key, found)
        assert isinstance(found, str)
        return found

    def column(self, record: RecordVec, call: str, kind: str) -> Vec:
        """A column of a fact as a vector, absent entries in error."""
        name = self.read(record, call)
        value = self._once(("values", name), "v", f"{name}.values")
        failed = self._once(("absent", name), "e", f"{name}.absent")
        numbers = kind in NUMBERS
        bounds = (f"{name}.low", f"{name}.high")
        return Vec(
            kind,
            value,
            record.space,
            failed,
            (lambda: bounds) if numbers else None,
            column=name,
        )
