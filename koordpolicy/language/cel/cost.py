"""What an expression may cost, known before it runs: an interval of units, as `meter` counts them.

Sizes of texts and lists come from constants, or else from bounds: Kubernetes' own limits on names and labels, and
what a node can hold. Shared values are counted wherever they are used, so the estimate is what a plain interpreter
would spend; programs spend less. What an error costs that a loop absorbs is not in it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from koordpolicy.language.cel import ir
from koordpolicy.language.cel.casts import CAST
from koordpolicy.language.cel.functions import Cost, Function, Overload, Size, price_of_made
from koordpolicy.language.cel.ir_walk import walk
from koordpolicy.language.cel.library import FUNCTIONS
from koordpolicy.language.cel.library.limits import MAX_LIST, MAX_TEXT
from koordpolicy.language.cel.library.lists import price_of_sorting_by
from koordpolicy.language.cel.library.regex import price_of_search
from koordpolicy.language.cel.prices import (
    DISPATCHED,
    KEY,
    is_operator,
    operator_price,
    own_price,
)
from koordpolicy.language.cel.types import Type
from koordpolicy.language.cel.values import Optional
from koordpolicy.language.cel.walk import children


@dataclass(frozen=True, slots=True)
class Bounds:
    """How large values from outside may be.

    `text` characters of a string, `elements` of a list, `entries` of a map. `facts` overrides them for
    single facts, by `record.path` such as `node.pods`.
    """

    text: int = 253
    elements: int = 64
    entries: int = 64
    facts: Mapping[str, int] = field(default_factory=dict)


DEFAULT_BOUNDS = Bounds(
    facts={
        "node.pods": 256,  # kubelet's usual limit is 110, large nodes are given 250
        "node.zones": 16,
        "pod.containers": 64,
        "container.ports": 16,
    }
)


@dataclass(frozen=True, slots=True)
class Loop:
    """A macro's share of the maximum.

    `name` is the fact it walks (`node.pods`) or "" for a computed list; `elements` the bound that was
    assumed, `each` the units of one element, `start:end` its place in the source.
    """

    name: str
    elements: int
    each: int
    start: int
    end: int

    @property
    def total(self) -> int:
        return self.elements * self.each


@dataclass(frozen=True, slots=True)
class Estimate:
    """Units of one evaluation: at least `minimum`, at most `maximum`. `loops` has the dearest first."""

    minimum: int
    maximum: int
    loops: tuple[Loop, ...] = ()


@dataclass(frozen=True, slots=True)
class _Range:
    low: int
    high: int

    def __add__(self, other: "_Range") -> "_Range":
        return _Range(self.low + other.low, self.high + other.high)


_NOTHING = _Range(0, 0)
_ONE = Size(1, 1)


@dataclass(frozen=True, slots=True)
class _Sizes:
    """The least and the greatest that a value may be."""

    low: Size
    high: Size


_SCALAR = _Sizes(_ONE, _ONE)


def estimate(
    root: ir.Node, bounds: Bounds = DEFAULT_BOUNDS, functions: Mapping[str, Function] = FUNCTIONS
) -> Estimate:
    """The cost of one evaluation of an expression."""
    estimator = _Estimator(bounds, functions)
    nodes = walk(root)
    for node in nodes:
        if isinstance(node, ir.Bind):
            estimator.bound[node.name] = node.init
    for node in nodes:
        estimator.add(node)
    cost = estimator.costs[id(root)]
    loops = sorted(estimator.loops, key=lambda loop: (-loop.total, loop.start))
    return Estimate(cost.low, cost.high, tuple(loops))


@dataclass(frozen=True, slots=True)
class _Overloads:
    """All signatures of a table, by their ids and by the name that a call is written with."""

    by_id: Mapping[str, Overload]
    by_name: Mapping[str, Sequence[Overload]]


def _overloads_of(functions: Mapping[str, Function]) -> _Overloads:
    by_id = {overload.id: overload for row in functions.values() for overload in row.overloads}
    by_name: dict[str, list[Overload]] = {}
    for overload in by_id.values():
        by_name.setdefault(overload.id.partition("(")[0].removeprefix("."), []).append(overload)
    return _Overloads(by_id, by_name)


_OVERLOADS: Final = _overloads_of(FUNCTIONS)


class _Estimator:
    """Costs and sizes of nodes, operands first."""

    def __init__(self, bounds: Bounds, functions: Mapping[str, Function]) -> None:
        self.bounds = bounds
        self.overloads = _OVERLOADS if functions is FUNCTIONS else _overloads_of(functions)
        self.costs: dict[int, _Range] = {}
        self.sizes: dict[int, _Sizes] = {}
        self.loops: list[Loop] = []
        self.bound: dict[str, ir.Node] = {}
        self._by_type = {"list": bounds.elements, "map": bounds.entries} | dict.fromkeys(
            ("string", "bytes", "dyn"), bounds.text
        )

    def add(self, node: ir.Node) -> None:
        self.sizes[id(node)] = self._size(node)
        self.costs[id(node)] = self._cost(node)

    def _sum(self, *nodes: ir.Node) -> _Range:
        total = _NOTHING
        for node in nodes:
            total += self.costs[id(node)]
        return total

    def _cost(self, node: ir.Node) -> _Range:
        price = own_price(node)
        own = _Range(price, price)
        match node:
            case ir.Call():
                return own + self._call(node) + self._sum(*node.args)
            case ir.And(args=args) | ir.Or(args=args):
                return own + _Range(self.costs[id(args[0])].low, self._sum(*args).high)
            case ir.Cond():
                then, otherwise = self.costs[id(node.then)], self.costs[id(node.otherwise)]
                branches = _Range(min(then.low, otherwise.low), max(then.high, otherwise.high))
                return own + self._sum(node.condition) + branches
            case ir.Comprehension():
                return own + self._comprehension(node)
            case ir.Cast(operand=part, type=kind) if kind.params:
                return own + _Range(0, CAST * self.sizes[id(part)].high.extent) + self._sum(part)
            case ir.OptMap(operand=part, body=lazy) | ir.OrElse(operand=part, other=lazy):
                return own + _Range(self.costs[id(part)].low, self._sum(part, lazy).high)
        return own + self._sum(*children(node))

    def _call(self, node: ir.Call) -> _Range:
        """What a call costs for the sizes of its arguments, and what it makes."""
        sizes = [self.sizes[id(argument)] for argument in node.args]
        low, high = tuple(size.low for size in sizes), tuple(size.high for size in sizes)
        name = node.overload.partition("(")[0]
        if is_operator(name):
            return _Range(operator_price(node, low), operator_price(node, high))
        made = self._made(node)
        overload = self.overloads.by_id.get(node.overload)
        if overload is None:  # a call that run time picks
            named = self.overloads.by_name.get(name.removeprefix("."), ())
            most = max((_price(o, o.cost, high) for o in named), default=0)
            return _Range(DISPATCHED, DISPATCHED + 8 * sum(size.extent for size in high) + most) + made
        cost = self._searched(node) or overload.cost
        return _Range(_price(overload, cost, low), _price(overload, cost, high)) + made

    def _searched(self, node: ir.Call) -> Cost | None:
        """The price of a search for a pattern that is known; None for any other call."""
        pattern = node.args[1].value if len(node.args) > 1 and isinstance(node.args[1], ir.Const) else None
        return price_of_search(node.overload, pattern) if isinstance(pattern, str) else None

    def _made(self, node: ir.Call) -> _Range:
        kind = node.type.name
        if kind not in ("string", "bytes", "list", "map"):
            return _NOTHING
        made, text = self.sizes[id(node)], kind in ("string", "bytes")
        return _Range(price_of_made(made.low.length, text), price_of_made(made.high.length, text))

    def _comprehension(self, node: ir.Comprehension) -> _Range:
        walked = self.sizes[id(node.range)]
        parts = [part for part in (node.predicate, node.transform) if part is not None]
        step = _Range(2, 2) + self._sum(*parts)
        if node.range.type.name in ("map", "dyn"):
            step += _Range(0, KEY)
        if node.macro == "sortBy":
            step += _Range(0, price_of_sorting_by(walked.high.length))
        self.loops.append(Loop(_fact_name(node.range), walked.high.length, step.high, node.start, node.end))
        early = node.macro in ("all", "exists")
        least = min(walked.low.length, 1) if early else walked.low.length
        return self._sum(node.range) + _Range(least * step.low, walked.high.length * step.high)

    # Sizes

    def _size(self, node: ir.Node) -> _Sizes:
        match node:
            case ir.Const(value=value):
                exact = _of_value(value)
                return _Sizes(exact, exact)
            case ir.Var(name=name, local=True) if name in self.bound:
                return self.sizes.get(id(self.bound[name]), self._default(node.type))
            case ir.Field() | ir.OptField():
                bound = self.bounds.facts.get(_fact_name(node))
                return self._default(node.type, bound)
            case ir.MakeList():
                return self._made_of(node.elements, len(node.elements), len(node.optional))
            case ir.MakeMap():
                return self._made_of(children(node), len(node.entries), len(node.optional))
            case ir.Cond():
                return self._either(node.then, node.otherwise)
            case ir.OrElse():
                return self._either(node.operand, node.other)
            case ir.Comprehension():
                return self._walked(node)
            case ir.Bind():
                return self.sizes[id(node.body)]
            case ir.Cast():
                return self.sizes[id(node.operand)]
            case ir.Call():
                return self._result_size(node)
        return self._default(node.type)

    def _made_of(self, parts: Sequence[ir.Node], count: int, optional: int) -> _Sizes:
        extents = [self.sizes[id(part)] for part in parts]
        low, high = sum(size.low.extent for size in extents), sum(size.high.extent for size in extents)
        least = count - optional
        return _Sizes(Size(least, low + least if not optional else 0), Size(count, high + count))

    def _either(self, one: ir.Node, other: ir.Node) -> _Sizes:
        a, b = self.sizes[id(one)], self.sizes[id(other)]
        return _Sizes(_each(min, a.low, b.low), _each(max, a.high, b.high))

    def _walked(self, node: ir.Comprehension) -> _Sizes:
        walked = self.sizes[id(node.range)]
        if node.macro in ("all", "exists", "exists_one"):
            return _SCALAR
        least = 0 if node.predicate is not None else walked.low.length
        if node.transform is None or node.macro == "sortBy":
            return _Sizes(Size(least, least), walked.high)
        most, each = walked.high.length, self.sizes[id(node.transform)].high
        if node.macro == "transformMapEntry":
            most *= max(1, each.length)
        return _Sizes(Size(least, least), Size(min(most, MAX_LIST), walked.high.length * (1 + each.extent)))

    def _result_size(self, node: ir.Call) -> _Sizes:
        kind = _inner(node.type).name
        if kind not in _SIZED:
            return _SCALAR
        sizes = [self.sizes[id(argument)] for argument in node.args]
        name = node.overload.partition("(")[0].removeprefix(".")
        if name == "_+_":
            low = _each(sum, *(size.low for size in sizes))
            return _Sizes(low, _capped(_each(sum, *(size.high for size in sizes)), kind))
        high = self._greatest(node, name, kind, [size.high for size in sizes])
        return _Sizes(Size(0, 0), _capped(high, kind))

    def _greatest(self, node: ir.Call, name: str, kind: str, sizes: list[Size]) -> Size:
        first = sizes[0] if sizes else _ONE
        if name in _NOT_LARGER:
            return first
        if name == "bytes":
            return Size(4 * first.length, 4 * first.length)
        if name == "lists.range":
            count = node.args[0].value if isinstance(node.args[0], ir.Const) else None
            length = max(0, count) if isinstance(count, int) else MAX_LIST
            return Size(length, length)
        if name in ("split", "findAll", "regex.extractAll"):
            return Size(first.length + 1, 2 * first.length + 1)
        if name in ("replace", "regex.replace"):
            length = (first.length + 1) * (1 + sizes[2].length)
            return Size(length, length)
        if name in ("join", "format", "flatten", "strings.quote", "base64.encode"):
            length = 2 * first.length + sum(2 * size.extent for size in sizes)
            if name == "join" and len(sizes) > 1:
                length += first.length * sizes[1].length
            return Size(length, length)
        usual = self._default(_inner(node.type)).high
        return _each(max, usual, *sizes)

    def _default(self, kind: Type, bound: int | None = None) -> _Sizes:
        inner = _inner(kind)
        high = self._by_type.get(inner.name)
        if high is None:
            return _SCALAR
        length = high if bound is None else bound
        each = 1 + sum(self._default(part).high.extent for part in inner.params)
        return _Sizes(Size(0, 0), Size(length, length * each if inner.params else length))


def _price(overload: Overload, cost: Cost | None, sizes: tuple[Size, ...]) -> int:
    """Units of a call of an overload with arguments of these sizes."""
    if cost is None:
        return 0
    least = overload.least
    if least and len(sizes) == len(least):
        sizes = tuple(_each(max, one, other) for one, other in zip(sizes, least, strict=True))
    return cost(sizes)


_SIZED = frozenset(("string", "bytes", "list", "map", "dyn"))
_NOT_LARGER = frozenset(
    (
        "substring", "trim", "lowerAscii", "upperAscii", "reverse", "slice", "distinct", "sort",
        "charAt", "find", "unwrapOpt", "optional.unwrap", "dyn", "value", "first", "last",
    )
)  # fmt: skip


def _each(pick: Callable[..., int], *sizes: Size) -> Size:
    return Size(pick([size.length for size in sizes]), pick([size.extent for size in sizes]))


def _capped(size: Size, kind: str) -> Size:
    """No text or list is larger than its limit; a list may hold any of its parts many times over."""
    limit = MAX_TEXT if kind in ("string", "bytes") else MAX_LIST
    length = min(size.length, limit)
    return Size(length, length if kind in ("string", "bytes") else size.extent)


_PARTS = (list, tuple, dict, frozenset)


def _of_value(value: object) -> Size:
    """The size of a constant, by what it unfolds to; each shared part is looked at once."""
    held = value.value if isinstance(value, Optional) else value
    if isinstance(held, (str, bytes)):
        return Size(len(held), len(held))
    if not isinstance(held, _PARTS):
        return _ONE
    known: dict[int, int] = {}
    stack: list[tuple[object, bool]] = [(held, False)]
    while stack:
        part, ready = stack.pop()
        if id(part) in known:
            continue
        if isinstance(part, (str, bytes)):
            known[id(part)] = len(part)
        elif not isinstance(part, (*_PARTS, Optional)):
            known[id(part)] = 1
        else:
            inner = _parts(part)
            if ready:
                known[id(part)] = 1 + sum(known[id(each)] for each in inner)
            else:
                stack.append((part, True))
                stack.extend((each, False) for each in inner)
    return Size(len(held), known[id(held)])


def _parts(value: object) -> list[object]:
    match value:
        case dict():
            return [part for entry in value.items() for part in entry]
        case Optional():
            return [value.value]
    return list(value)  # type: ignore[call-overload, no-any-return]


def _inner(kind: Type) -> Type:
    """What an optional may hold, else the type itself."""
    return kind.params[0] if kind.name == "optional_type" and kind.params else kind


def _fact_name(node: ir.Node) -> str:
    if isinstance(node, (ir.Field, ir.OptField)) and isinstance(node.base, ir.Var):
        name = node.base.name if not node.base.local else _inner(node.base.type).record
        return f"{name}.{node.path}"
    return ""
