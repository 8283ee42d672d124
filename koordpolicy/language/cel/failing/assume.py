"""What follows from a test: of its being true or false, and of its having a value at all."""

from collections.abc import Callable, Collection
from typing import Final

from koordpolicy.language.cel import ir
from koordpolicy.language.cel.failing.keys import Keys
from koordpolicy.language.cel.failing.known import Atom, Known
from koordpolicy.language.cel.failing.ranges import Ranges, above, below
from koordpolicy.language.cel.failing.texts import conversions_after
from koordpolicy.language.cel.failing.times import MEASURED_TIMES
from koordpolicy.language.cel.types import BOOL
from koordpolicy.language.cel.values import NONE, Optional
from koordpolicy.language.cel.walk import strict_children

AtomOf = Callable[[ir.Node], Atom | None]
"""What a node that had a value has shown: the atom of its failure, None where it cannot fail."""

RootsOf = Callable[[str, Collection[str]], Collection[str]]
"""The roots that are there where another one is one of these texts."""

_MIRRORED: Final = {
    "_<_": "_>_",
    "_<=_": "_>=_",
    "_>_": "_<_",
    "_>=_": "_<=_",
    "_==_": "_==_",
    "_!=_": "_!=_",
}
_OPPOSITE: Final = {
    "_<_": "_>=_",
    "_<=_": "_>_",
    "_>_": "_<=_",
    "_>=_": "_<_",
    "_==_": "_!=_",
    "_!=_": "_==_",
}
_FEW: Final = 16


class Assumptions:
    """Adds to what is known. `atom_of` names what a node needs to have a value."""

    def __init__(self, keys: Keys, ranges: Ranges, atom_of: AtomOf, roots_of: RootsOf) -> None:
        self._keys = keys
        self._ranges = ranges
        self._atom_of = atom_of
        self._roots_of = roots_of
        self._shown_by: dict[int, tuple[ir.Node, frozenset[Atom]]] = {}
        """By nodes, which are kept so that no other one gets their identity."""

    def worlds(self, test: ir.Node, known: Known, *, truth: bool = True) -> list[Known]:
        """What is known after a test, one by one for the ways in which it can have come out so."""
        match test:
            case ir.And(args=args) | ir.Or(args=args) if isinstance(test, ir.And) is truth:
                found = [known]
                for arg in args:
                    found = [one for before in found for one in self.worlds(arg, before, truth=truth)]
                    found = found if len(found) <= _FEW else [self.holds(test, known, truth=truth)]
            case ir.And(args=args) | ir.Or(args=args):
                found = [one for arg in args for one in self.worlds(arg, known, truth=truth)]
            case ir.Call(overload="!_(bool)", args=(operand,)):
                return self.worlds(operand, known, truth=not truth)
            case ir.Cond(condition=condition, then=then, otherwise=otherwise) if test.type == BOOL:
                found = [
                    one
                    for arm, chosen in ((then, True), (otherwise, False))
                    for before in self.worlds(condition, known, truth=chosen)
                    for one in self.worlds(arm, before, truth=truth)
                ]
            case _:
                found = [self.holds(test, known, truth=truth)]
        possible = [one for one in found if not one.impossible]
        return possible if len(possible) <= _FEW else [self.holds(test, known, truth=truth)]

    def evaluated(self, node: ir.Node, known: Known) -> Known:
        """A node had a value: so had all that it fails with."""
        return known.with_atoms(self._shown(node))

    def _shown(self, node: ir.Node) -> frozenset[Atom]:
        """What a node that had a value has shown, and all that has one then; worked out once a node."""
        known = self._shown_by.get(id(node))
        if known is not None:
            return known[1]
        own: list[Atom] = []
        atom = self._atom_of(node)
        if atom is not None:
            own.append(atom)
        if isinstance(node, ir.Field) and isinstance(node.base, ir.Var) and not node.base.local:
            own.append(("record", node.base.name))
        found = frozenset(own).union(*map(self._shown, strict_children(node)))
        self._shown_by[id(node)] = node, found
        return found

    def holds(self, test: ir.Node, known: Known, *, truth: bool = True) -> Known:
        """A test was evaluated, and was true (or false)."""
        match test:
            case ir.Const(value=bool() as value):
                return known if value is truth else Known(impossible=True)
            case ir.And(args=args) | ir.Or(args=args):
                return self._logic(args, known, truth=truth, all_so=isinstance(test, ir.And) is truth)
            case ir.Call(overload="!_(bool)", args=(operand,)):
                return self.holds(operand, known, truth=not truth)
            case ir.Cond(condition=condition, then=then, otherwise=otherwise) if test.type == BOOL:
                yes = self.holds(then, self.holds(condition, known), truth=truth)
                no = self.holds(otherwise, self.holds(condition, known, truth=False), truth=truth)
                return yes.or_else(no)
            case ir.Holds(operand=operand, otherwise=otherwise):
                return self.holds(operand, known, truth=truth).or_else(
                    self.holds(otherwise, known, truth=truth)
                )
        known = self.evaluated(test, known)
        key = self._keys.of(test)
        known = known.within(key, 1.0, 1.0) if truth else known.within(key, 0.0, 0.0)
        return self._told(test, known, truth=truth)

    def _logic(self, args: tuple[ir.Node, ...], known: Known, *, truth: bool, all_so: bool) -> Known:
        if all_so:
            for arg in args:
                known = self.holds(arg, known, truth=truth)
            return known
        found: Known | None = None
        for arg in args:
            one = self.holds(arg, known, truth=truth)
            found = one if found is None else found.or_else(one)
        return known if found is None else found

    def _told(self, test: ir.Node, known: Known, *, truth: bool) -> Known:
        """What the outcome of one test tells that is no logic."""
        match test:
            case ir.HasField(base=base, paths=paths) if truth:
                found: list[Atom] = []
                if isinstance(base, ir.Var) and not base.local:
                    found.append(("record", base.name))
                if len(paths) == 1:
                    found.append(("fact", self._keys.of(base), paths[0]))
                return known.with_atoms(found)
            case ir.Select(operand=operand, field=field, test=True) if truth:
                return known.with_atoms([("key", self._keys.of(operand), self._keys.text(field))])
            case ir.Comprehension(range=walked, macro=macro):
                some = truth if macro in ("exists", "exists_one") else not truth
                return (
                    self._filled(walked, known)
                    if some and macro in ("all", "exists", "exists_one")
                    else known
                )
            case ir.Call():
                return self._call(test, known, truth=truth)
        return known

    def _filled(self, walked: ir.Node, known: Known) -> Known:
        return known.within(self._keys.size(walked), 1.0, float("inf"))

    def _call(self, test: ir.Call, known: Known, *, truth: bool) -> Known:
        operator = test.overload.partition("(")[0]
        if operator == "@in" and truth:
            return self._member(test, known)
        if operator in _MIRRORED:
            return self._compared(operator if truth else _OPPOSITE[operator], test.args, known, sure=truth)
        if test.overload == "hasValue(optional_type(T))":
            return known.with_atoms([("some", self._keys.of(test.args[0]))]) if truth else known
        if truth and (taken := conversions_after(test)):
            text = self._keys.of(test.args[0])
            return known.with_atoms([("taken", made, text) for made in taken])
        return known

    def _member(self, test: ir.Call, known: Known) -> Known:
        element, container = test.args
        if container.type.name == "map":
            return known.with_atoms([("key", self._keys.of(container), self._keys.of(element))])
        known = self._filled(container, known)
        values = _constants(container)
        if values is None or not values:
            return known
        texts = [value for value in values if isinstance(value, str)]
        if len(texts) == len(values) <= _FEW:
            return self._text(element, frozenset(texts), known)
        numbers = [
            value for value in values if isinstance(value, int | float) and not isinstance(value, bool)
        ]
        if len(numbers) == len(values) and element.type.is_number:
            known = self._between(element, min(numbers), max(numbers), known)
            return known.with_atoms([("nonzero", self._keys.of(element))]) if 0 not in numbers else known
        return known

    def _text(self, node: ir.Node, texts: frozenset[str], known: Known) -> Known:
        known = known.among(self._keys.of(node), texts)
        if isinstance(node, ir.Var) and not node.local:
            known = known.with_atoms(("record", name) for name in self._roots_of(node.name, texts))
        if isinstance(node, ir.OrElse) and isinstance(node.other, ir.Const) and node.other.value not in texts:
            return self._there(node.operand, known)
        return known

    def _there(self, optional: ir.Node, known: Known) -> Known:
        """An optional had a value: so what it asks for is there."""
        found: list[Atom] = [("some", self._keys.of(optional))]
        match optional:
            case ir.Select(operand=operand, field=field, optional=True) if operand.type.name == "map":
                found.append(("key", self._keys.of(operand), self._keys.text(field)))
            case ir.Index(operand=operand, index=index, optional=True) if operand.type.name == "map":
                found.append(("key", self._keys.of(operand), self._keys.of(index)))
            case ir.OptField(base=base, path=path) if base.type.name == "record":
                found.append(("fact", self._keys.of(base), path))
        return known.with_atoms(found)

    # Comparisons

    def _compared(self, operator: str, args: tuple[ir.Node, ...], known: Known, *, sure: bool) -> Known:
        """`sure` where the comparison itself was true: of a double its opposite may be true of NaN as well."""
        left, right = args
        if operator in ("_==_", "_!=_"):
            known = self._equal(left, right, known, equal=operator == "_==_")
            known = self._equal(right, left, known, equal=operator == "_==_")
        times = left.type.name == right.type.name and left.type.name in MEASURED_TIMES
        if (not times and not (left.type.is_number and right.type.is_number)) or operator == "_!=_":
            return known
        if not sure and operator != "_==_" and "double" in (left.type.name, right.type.name):
            return known
        known = self._ordered(operator, left, right, known)
        return self._ordered(_MIRRORED[operator], right, left, known)

    def _ordered(self, operator: str, node: ir.Node, other: ir.Node, known: Known) -> Known:
        low, high = self._ranges.of(other, known)
        if node.type.name in MEASURED_TIMES:  # a nanosecond is less than doubles tell apart
            operator = {"_<_": "_<=_", "_>_": "_>=_"}.get(operator, operator)
        whole = node.type.name != "double"
        match operator:
            case "_==_":
                return self._between(node, low, high, known)
            case "_<_":
                return self._between(
                    node, float("-inf"), below(high, whole=whole and other.type.name != "double"), known
                )
            case "_<=_":
                return self._between(node, float("-inf"), high, known)
            case "_>_":
                return self._between(
                    node, above(low, whole=whole and other.type.name != "double"), float("inf"), known
                )
            case "_>=_":
                return self._between(node, low, float("inf"), known)
        return known

    def _between(self, node: ir.Node, low: float, high: float, known: Known) -> Known:
        least, most = self._ranges.of(node, known)
        if max(low, least) > min(high, most):
            # Of times no more is known than what is usual.
            return known if node.type.name in MEASURED_TIMES else Known(impossible=True)
        known = known.within(self._keys.of(node), low, high)
        # What is true of a whole number is true of it as a double.
        if isinstance(node, ir.Call) and node.overload in ("double(int)", "percent(int)", "double(uint)"):
            return known.within(self._keys.of(node.args[0]), low, high)
        return known

    def _equal(self, node: ir.Node, other: ir.Node, known: Known, *, equal: bool) -> Known:
        value = other.value if isinstance(other, ir.Const) else None
        if not isinstance(other, ir.Const):
            if equal and other.type.name == "optional_type" and _is_some(other):
                return self._there(node, known)
            return known
        if isinstance(value, str):
            if equal:
                return self._text(node, frozenset((value,)), known)
            is_default = isinstance(node, ir.OrElse) and isinstance(node.other, ir.Const)
            if is_default and isinstance(node, ir.OrElse) and isinstance(node.other, ir.Const):
                return self._there(node.operand, known) if node.other.value == value else known
            return known
        if isinstance(value, list | tuple | dict):
            return self._filled(node, known) if bool(value) is equal else known
        if isinstance(value, Optional):
            return self._there(node, known) if (value is NONE) is not equal else known
        if isinstance(value, int | float) and not equal and value == 0 and not isinstance(value, bool):
            known = known.with_atoms([("nonzero", self._keys.of(node))])
            low, _ = self._ranges.of(node, known)
            return (
                known.within(self._keys.of(node), 1.0, float("inf"))
                if low >= 0 and node.type.name != "double"
                else known
            )
        return known


def _is_some(node: ir.Node) -> bool:
    return isinstance(node, ir.Call) and node.overload == "optional.of(T)"


def _constants(node: ir.Node) -> list[object] | None:
    match node:
        case ir.Const(value=list() | tuple() as values):
            return list(values)
        case ir.MakeList(elements=elements, optional=optional) if not optional:
            found = [element.value for element in elements if isinstance(element, ir.Const)]
            return found if len(found) == len(elements) else None
    return None
