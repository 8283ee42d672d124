"""The values that an expression can have: constants in all arms of conditionals, through parameters, `orValue`, lists and
maps; intervals where they are numbers; and what only run time can tell.

It may say "anything", never something false: whatever an expression gives is among its values.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice, product
from math import inf, isnan
from types import MappingProxyType
from typing import Any, Final

from koordpolicy.graph.decide import parameter_key
from koordpolicy.graph.rules import Decision, DecisionKey, Rule
from koordpolicy.language.cel import ir
from koordpolicy.language.cel.constants import constant
from koordpolicy.language.cel.fold import fold
from koordpolicy.language.cel.permitted import elements
from koordpolicy.language.cel.types import Type
from koordpolicy.language.cel.values import NONE, Duration, Optional, Value

_MOST = 200
"""Values of one expression; of more, the rest counts as anything."""
_DEEPEST = 60
"""Levels of an expression, parameters included, that are looked into."""
_MOST_CALLS = 32
"""Combinations of arguments that a call is tried with."""


@dataclass(frozen=True, slots=True)
class PossibleValue:
    """Values that an expression can have: one where it is `known`, else the numbers from `low` to `high` (or none, NaN), or
    anything.

    With `part` it is not the whole, but one of its elements: those of a list or map are told one by one where not all of
    it is known at once. `node` and `rule` tell whose expression they come from. Durations are counted in nanoseconds.
    """

    node: ir.Node
    rule: Rule
    known: bool = False
    value: Value = None
    low: float = -inf
    high: float = inf
    part: bool = False


@dataclass(frozen=True, slots=True)
class RuleValues:
    """All that a rule's value can be, and the same with the elements of lists in their place, each once."""

    values: tuple[PossibleValue, ...]
    elements: tuple[PossibleValue, ...]


Locals = Mapping[str, tuple[PossibleValue, ...]]


@dataclass(frozen=True, slots=True)
class PossibleValues:
    """Finds the values that rules can have among the decisions of one graph; `constants` are what its expressions read by space and name."""

    decisions: Mapping[DecisionKey, Decision]
    constants: Mapping[tuple[str, str], ir.Node]

    def of(self, rule: Rule) -> tuple[PossibleValue, ...]:
        """What a rule's value can be; nothing for an optional without a value. An optional's value stands for it."""
        return _kept(self._of(rule.value, rule, {}, 0), rule.value, rule)

    def all_of(self, rule: Rule) -> RuleValues:
        """What a rule's value can be, as a whole and element by element."""
        values = self.of(rule)
        elements = tuple(self.elements(values))
        if len(elements) > 1:
            elements = tuple(dict.fromkeys(elements))
        return RuleValues(values, values if elements == values else elements)

    def elements(self, possible: Iterable[PossibleValue]) -> Iterator[PossibleValue]:
        """The elements of lists, the values of maps, and everything else as it is."""
        for one in possible:
            if one.part:
                yield replace(one, part=False)
            elif one.known and isinstance(one.value, list | tuple | dict):
                for value in elements(one.value):
                    yield from _known(one.node, one.rule, value)
            else:
                yield one

    def _of(self, node: ir.Node, rule: Rule, names: Locals, depth: int) -> Iterator[PossibleValue]:
        if depth > _DEEPEST:
            yield PossibleValue(node, rule)
            return
        within = _At(rule, names, depth + 1)
        match node:
            case ir.Const(value=value):
                yield from _known(node, rule, value)
            case ir.Cond(then=first, otherwise=second) | ir.OrElse(operand=first, other=second):
                yield from self._below(first, within)
                yield from self._below(second, within)
            case ir.Cast(operand=operand):
                yield from self._below(operand, within)
            case ir.Bind(name=name, init=init, body=body) | ir.OptMap(operand=init, name=name, body=body):
                known = _kept(self._below(init, within), init, rule)
                yield from self._below(body, replace(within, names={**names, name: known}))
            case ir.Var(local=True, name=name) if name in names:
                yield from names[name]
            case ir.Ref():
                yield from self._referred(node, within)
            case ir.Select(test=False) | ir.Index():
                yield from self._taken(node, within)
            case ir.MakeList(elements=parts):
                yield from self._parts(parts, within)
            case ir.MakeMap(entries=entries):
                yield from self._parts([held for _, held in entries], within)
            case ir.Comprehension(macro="filter" | "sortBy", range=walked):
                yield from self._alone(self._below(walked, within))
            case ir.Call():
                yield from self._called(node, within)
            case _:
                yield PossibleValue(node, rule, low=_least(node.type))

    def _below(self, node: ir.Node, at: "_At") -> Iterator[PossibleValue]:
        return self._of(node, at.rule, at.names, at.depth)

    def _parts(self, parts: Sequence[ir.Node], at: "_At") -> Iterator[PossibleValue]:
        """The elements of a list, or the values of a map, which is not known as a whole."""
        for part in parts:
            for one in self._below(part, at):
                yield PossibleValue(part, at.rule, part=True) if one.part else replace(one, part=True)

    def _alone(self, possible: Iterable[PossibleValue]) -> Iterator[PossibleValue]:
        """Lists of some of the elements, of which it is not known which."""
        for one in self.elements(possible):
            yield replace(one, part=True) if one.known else one

    def _referred(self, node: ir.Ref, at: "_At") -> Iterator[PossibleValue]:
        held = self.constants.get((node.space, node.name))
        if held is not None:
            for one in self._of(held, at.rule, {}, at.depth):
                yield replace(one, node=node)
            return
        decision = None
        if node.space == "parameters":
            decision = self.decisions.get(parameter_key(at.rule.key, node.name))
        if decision is None:
            yield PossibleValue(node, at.rule)
            return
        for inner in decision.rules:
            yield from self._of(inner.value, inner, {}, at.depth)
            if inner.match.test is None:
                break  # what ranks below it never decides
        else:
            yield from self._of(decision.default, at.rule, {}, at.depth)

    def _taken(self, node: ir.Select | ir.Index, at: "_At") -> Iterator[PossibleValue]:
        """What stands in a map or list: under a key where it is known, else all of it."""
        key = node.field if isinstance(node, ir.Select) else _constant(node.index)
        match node.operand:
            case ir.MakeMap(entries=entries):
                for _, entry in entries:
                    yield from self._below(entry, at)
            case ir.MakeList(elements=elements):
                for element in elements:
                    yield from self._below(element, at)
            case operand:
                for one in self._below(operand, at):
                    if one.part:
                        yield replace(one, part=False)
                    elif not one.known:
                        yield PossibleValue(node, at.rule, low=_least(node.type))
                    for value in _entries(one.value, key) if one.known and not one.part else ():
                        yield from _known(one.node, one.rule, value)

    def _called(self, node: ir.Call, at: "_At") -> Iterator[PossibleValue]:
        if node.overload in _SAME:
            yield from self._below(node.args[0], at)
            return
        given = [_kept(self._below(argument, at), argument, at.rule) for argument in node.args]
        # An optional's value stands for it, which does not say that there is one.
        told = not any(argument.type.name == _OPTIONAL for argument in node.args)
        if told and all(one.known and not one.part for possible in given for one in possible):
            tried = islice(product(*given), _MOST_CALLS + 1)
            results = [_applied(node, arguments) for arguments in tried]
            if len(results) <= _MOST_CALLS and all(isinstance(one, ir.Const) for one in results):
                for result in results:
                    yield from _known(node, at.rule, _constant(result))
                return
        low, high = _interval(node, [_hull(possible) for possible in given])
        yield PossibleValue(node, at.rule, low=low, high=high)


@dataclass(frozen=True, slots=True)
class _At:
    """Whose expression it is, what its local variables can be, and how deep it stands."""

    rule: Rule
    names: Locals
    depth: int


def _constant(node: ir.Node) -> Value:
    return node.value if isinstance(node, ir.Const) else None


def _entries(held: Value, key: Value) -> Iterable[Value]:
    """What a map or list gives under a key, or under any where that is not known; nothing where there is none."""
    if isinstance(held, dict):
        return held.values() if key is None else [held[key]] if isinstance(key, str) and key in held else ()
    if isinstance(held, list | tuple):
        return held if type(key) is not int else held[key : key + 1] if key >= 0 else ()
    return ()


def _kept(possible: Iterator[PossibleValue], node: ir.Node, rule: Rule) -> tuple[PossibleValue, ...]:
    """At most so many, the rest being anything."""
    kept = tuple(islice(possible, _MOST + 1))
    return kept if len(kept) <= _MOST else (*kept[:_MOST], PossibleValue(node, rule))


def _known(node: ir.Node, rule: Rule, value: Value) -> Iterator[PossibleValue]:
    """A constant; of an optional what it holds; nothing for what is no value."""
    while isinstance(value, Optional):
        if value is NONE:
            return
        value = value.value
    if value is None:
        return
    number = value.ns if isinstance(value, Duration) else value
    if isinstance(number, int | float) and not isinstance(number, bool) and not isnan(number):
        yield PossibleValue(node, rule, known=True, value=value, low=number, high=number)
    else:
        yield PossibleValue(node, rule, known=True, value=value)


_OPTIONAL: Final = "optional_type"
_SAME: Final = frozenset(("optional.of(T)", "dyn(A)", "value(optional_type(T))"))
"""Calls that give what they take."""


def _applied(node: ir.Call, arguments: Sequence[PossibleValue]) -> ir.Node:
    """The call of constants, computed where that is possible."""
    args = tuple(
        constant(argument.type, given.value) for argument, given in zip(node.args, arguments, strict=True)
    )
    return fold(replace(node, args=args))


def _least(type: Type) -> float:
    return 0 if type.name == "uint" else -inf


Bounds = tuple[float, float]


def _hull(possible: Sequence[PossibleValue]) -> Bounds:
    """The interval around all values; everything where there are none."""
    if not possible:
        return -inf, inf
    return min(one.low for one in possible), max(one.high for one in possible)


def _interval(node: ir.Call, given: Sequence[Bounds]) -> Bounds:
    """Between what the numbers lie that a call gives."""
    if not (node.type.is_number or node.type.name == "google.protobuf.Duration"):
        return -inf, inf
    work = _ARITHMETIC.get(node.overload.partition("(")[0].removeprefix("."))
    low, high = work(*given) if work is not None else (_least(node.type), inf)
    return (-inf, inf) if isnan(low) or isnan(high) else (low, high)


def _times(one: Bounds, other: Bounds) -> Bounds:
    ends = [0.0 if 0 in (a, b) else a * b for a in one for b in other]
    return min(ends), max(ends)


def _over(one: Bounds, other: Bounds) -> Bounds:
    if other[0] <= 0 <= other[1]:
        return -inf, inf
    ends = [a / b for a in one for b in other if abs(a) != inf or abs(b) != inf]
    return (min(ends), max(ends)) if len(ends) == 4 else (-inf, inf)


def _widest(one: Bounds) -> Bounds:
    """With what rounding may change, to a whole number or to a double."""
    low, high = one
    return low - 1 - abs(low) * _ROUNDING, high + 1 + abs(high) * _ROUNDING


_ROUNDING: Final = 2.0**-50


def _size(*_: Bounds) -> Bounds:
    return 0, inf


def _most(*given: Bounds) -> Bounds:
    return max(low for low, _ in given), max(high for _, high in given)


def _fewest(*given: Bounds) -> Bounds:
    return min(low for low, _ in given), min(high for _, high in given)


def _absolute(one: Bounds) -> Bounds:
    low, high = one
    return (0.0 if low <= 0 <= high else min(abs(low), abs(high))), max(abs(low), abs(high))


_ARITHMETIC: Mapping[str, Callable[..., Any]] = MappingProxyType(
    {
        "_+_": lambda a, b: (a[0] + b[0], a[1] + b[1]),
        "_-_": lambda a, b: (a[0] - b[1], a[1] - b[0]),
        "_*_": _times,
        "_/_": lambda a, b: _widest(_over(a, b)),
        "-_": lambda a: (-a[1], -a[0]),
        "scale": lambda a, b: _widest(_times(a, b)),
        "size": _size,
        "math.abs": _absolute,
        "max": _most,
        "math.greatest": _most,
        "min": _fewest,
        "math.least": _fewest,
        **dict.fromkeys(("number", "amount"), lambda a: a),
        **dict.fromkeys(("millicores", "bytesOf", "percent", "int", "double"), _widest),
    }
)
"""How calls of numbers give intervals, from those of their arguments; what is absent gives any number."""
