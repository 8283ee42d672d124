"""What the rules of calls share: sizes, equality, and functions that are known by name alone."""

from collections.abc import Callable

import z3

from koordpolicy.graph.proof.doubles import Doubles
from koordpolicy.graph.proof.terms import (
    FALSE,
    THING,
    TRUE,
    Bool,
    Double,
    Formula,
    Keyed,
    Listed,
    Maybe,
    Symbolic,
    Text,
    Value,
    Whole,
    both,
    either,
    fresh_name,
    no,
    pick,
    thing_of,
)
from koordpolicy.graph.proof.unknowns import DURATION, TIMESTAMP, Unknowns, limits_of
from koordpolicy.language.cel import ir


class Work:
    """What rules need: operations on doubles, new symbols, and functions that are known by name alone."""

    def __init__(
        self,
        unknowns: Unknowns,
        doubles: Doubles,
        say: Callable[[Formula], None],
        gap: Callable[[str], None],
        never: Callable[[Formula], bool],
    ) -> None:
        self.unknowns = unknowns
        self.doubles = doubles
        self.say = say
        self.gap = gap
        self.never = never
        self._named: dict[tuple[object, ...], Symbolic] = {}
        self._sizes = z3.Function("size", THING, z3.IntSort())

    def named(self, node: ir.Call, args: list[Value], told: bool = True) -> Symbolic:
        """A call that is known by name alone: equal for equal arguments."""
        if told:
            self.gap(f"`{node.overload.partition('(')[0].removeprefix('.')}`")
        key = (node.overload, node.type, *(self._identity(arg) for arg in args))
        known = self._named.get(key)
        if known is None:
            known = self._applied(node, args) or self.unknowns.anything(node.type)
            self._named[key] = known
        return known

    def _identity(self, value: Value) -> object:
        thing = thing_of(value)
        if thing is not None:
            return thing.get_id()
        match value:
            case Bool(term) | Text(term):
                return term.get_id()
            case Whole():
                return value.term.get_id()
            case Double():
                return value.term.get_id(), None if value.tag is None else value.tag.get_id()
        return id(value)

    def _applied(self, node: ir.Call, args: list[Value]) -> Symbolic | None:
        """The call as a function of the solver, so that arguments that are equal by proof have equal results."""
        terms = []
        for arg in args:
            thing = thing_of(arg)
            if thing is not None:
                terms.append(thing)
            elif isinstance(arg, Bool | Whole | Text) or (isinstance(arg, Double) and arg.tag is None):
                terms.append(arg.term)
            else:
                return None
        sorts = [term.sort() for term in terms]
        if not sorts:
            return None
        fails = z3.Function(f"{node.overload} fails", *sorts, z3.BoolSort())(*terms)
        match node.type.name:
            case "bool":
                made: Value = Bool(z3.Function(node.overload, *sorts, z3.BoolSort())(*terms))
            case "string":
                made = Text(z3.Function(node.overload, *sorts, z3.StringSort())(*terms))
            case "int" | "uint" | "google.protobuf.Duration" | "google.protobuf.Timestamp":
                low, high = limits_of(node.type.name)
                term = z3.Function(node.overload, *sorts, z3.IntSort())(*terms)
                self.say(both(term >= low, term <= high))
                made = Whole(term, low, high, node.type.name)
            case _:
                return None
        return Symbolic(fails, made)

    def size(self, value: Value) -> Formula:
        """How many elements a list or a map has."""
        match value:
            case Listed():
                counts = [pick(guard, z3.IntVal(1), z3.IntVal(0)) for guard, _ in value.items]
                return z3.Sum(counts) if counts else z3.IntVal(0)
            case Keyed():
                return value.size
        thing = thing_of(value)
        if thing is None:
            return z3.Int(fresh_name("size"))
        size = self._sizes(thing)
        self.say(size >= 0)
        return size

    def equal(self, one: Value, other: Value) -> Formula:
        """CEL's `==` of two values that are there."""
        match one, other:
            case (Bool(a), Bool(b)) | (Text(a), Text(b)):
                return a == b if not a.eq(b) else TRUE
            case Whole(), Whole():
                if is_time(one) != is_time(other):
                    return FALSE
                return one.term == other.term if not one.term.eq(other.term) else TRUE
            case (Whole(), Double()) | (Double(), Whole()) | (Double(), Double()):
                return self.doubles.equal(self.double(one), self.double(other)).term
            case Maybe(), Maybe():
                inside = self.equal(one.value, other.value)
                return either(both(no(one.has), no(other.has)), both(one.has, other.has, inside))
            case Listed(), Listed() if one.is_plain and other.is_plain:
                if len(one.items) != len(other.items):
                    return FALSE
                pairs = zip(one.items, other.items, strict=True)
                return both(*(self.equal(a.value, b.value) for (_, a), (_, b) in pairs))
        if type(one) is not type(other) and not (thing_of(one) is not None and thing_of(other) is not None):
            plain = (Bool, Whole, Double, Text)
            if isinstance(one, plain) and isinstance(other, plain):
                return FALSE
        first, second = thing_of(one), thing_of(other)
        if first is not None and second is not None:
            return TRUE if first.eq(second) else first == second
        self.gap("equality of values of unknown types")
        return z3.Bool(fresh_name("equal"))

    def double(self, value: Value) -> Double:
        """A number as a double."""
        if isinstance(value, Double):
            return value
        assert isinstance(value, Whole)
        return self.doubles.of_whole(value)


def is_time(value: Whole) -> str:
    """The kind of a point in time or a duration; "" for a number."""
    return value.kind if value.kind in (DURATION, TIMESTAMP) else ""
