"""What an expression may cost, known before it runs: an interval of units, as Kubernetes counts them.

A unit is roughly one simple step. Sizes of texts and lists come from constants, or else from bounds:
Kubernetes' own limits on names and labels, and what a node can hold. Shared values are counted
wherever they are used, so the estimate is what a plain interpreter would spend; programs spend less.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from koordpolicy.language.cel import ir
from koordpolicy.language.cel.functions import Function
from koordpolicy.language.cel.ir_walk import walk
from koordpolicy.language.cel.library import FUNCTIONS
from koordpolicy.language.cel.library.limits import MAX_LIST
from koordpolicy.language.cel.types import Type
from koordpolicy.language.cel.values import Optional

_LIST_LITERAL = 10
_MAP_LITERAL = 30


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
_ONE = _Range(1, 1)


def estimate(
    root: ir.Node, bounds: Bounds = DEFAULT_BOUNDS, functions: Mapping[str, Function] = FUNCTIONS
) -> Estimate:
    """The cost of one evaluation of an expression."""
    estimator = _Estimator(bounds, functions)
    for node in walk(root):
        estimator.add(node)
    cost = estimator.costs[id(root)]
    loops = sorted(estimator.loops, key=lambda loop: (-loop.total, loop.start))
    return Estimate(cost.low, cost.high, tuple(loops))


class _Estimator:
    """Costs and sizes of nodes, operands first."""

    def __init__(self, bounds: Bounds, functions: Mapping[str, Function]) -> None:
        self.bounds = bounds
        self.prices = {o.id: o.cost for row in functions.values() for o in row.overloads}
        self.costs: dict[int, _Range] = {}
        self.sizes: dict[int, _Range] = {}
        self.loops: list[Loop] = []

    def add(self, node: ir.Node) -> None:
        self.sizes[id(node)] = self._size(node)
        self.costs[id(node)] = self._cost(node)

    def _sum(self, *nodes: ir.Node) -> _Range:
        total = _NOTHING
        for node in nodes:
            total += self.costs[id(node)]
        return total

    def _cost(self, node: ir.Node) -> _Range:
        match node:
            case ir.Const():
                return _NOTHING
            case ir.Field(base=part) | ir.HasField(base=part) | ir.OptField(base=part):
                return _ONE + self._sum(part)
            case ir.Select(operand=part) | ir.Cast(operand=part):
                return _ONE + self._sum(part)
            case ir.Index(operand=part, index=at):
                return _ONE + self._sum(part, at)
            case ir.Call():
                return self._call(node) + self._sum(*node.args)
            case ir.And(args=args) | ir.Or(args=args):
                return _Range(self.costs[id(args[0])].low, self._sum(*args).high)
            case ir.Cond():
                then, otherwise = self.costs[id(node.then)], self.costs[id(node.otherwise)]
                branches = _Range(min(then.low, otherwise.low), max(then.high, otherwise.high))
                return self._sum(node.condition) + branches
            case ir.MakeList():
                return _Range(_LIST_LITERAL, _LIST_LITERAL) + self._sum(*node.elements)
            case ir.MakeMap():
                parts = (part for entry in node.entries for part in entry)
                return _Range(_MAP_LITERAL, _MAP_LITERAL) + self._sum(*parts)
            case ir.Comprehension():
                return self._comprehension(node)
            case ir.Bind():
                return self._sum(node.init, node.body)
            case ir.OrElse(operand=part, other=other):
                return _ONE + _Range(self.costs[id(part)].low, self._sum(part, other).high)
            case ir.OptMap():
                return _Range(self._sum(node.operand).low, self._sum(node.operand, node.body).high + 1)
        return _ONE

    def _call(self, node: ir.Call) -> _Range:
        sizes = [self.sizes[id(argument)] for argument in node.args]
        kinds = [argument.type.name for argument in node.args]
        operator = node.overload.partition("(")[0]
        if operator == "@in" and kinds[1] != "map":
            return _Range(1, max(1, sizes[1].high))
        if operator in ("_==_", "_!=_"):
            shorter = min(size.high for size in sizes)
            scalar = "list" not in kinds and "map" not in kinds
            return _Range(1, max(1, _tenth(shorter) if scalar else shorter))
        if operator in _TEXT_OPERATORS and kinds[0] in ("string", "bytes"):
            joined = sizes[0] + sizes[1] if operator == "_+_" else _least(sizes)
            return _Range(max(1, _tenth(joined.low)), max(1, _tenth(joined.high)))
        price = self.prices.get(node.overload)
        if price is not None:
            return _priced(price, sizes)
        return _ONE if node.overload in self.prices else self._dispatched(sizes, kinds)

    @staticmethod
    def _dispatched(sizes: list[_Range], kinds: list[str]) -> _Range:
        """A call that run time picks: all it is given may be read once."""
        read = sum(size.high for size, kind in zip(sizes, kinds, strict=True) if kind in _SIZED)
        return _Range(1, 1 + read)

    def _comprehension(self, node: ir.Comprehension) -> _Range:
        walked = self.sizes[id(node.range)]
        step = _ONE + self._sum(*(part for part in (node.predicate, node.transform) if part is not None))
        self.loops.append(Loop(_fact_name(node.range), walked.high, step.high, node.start, node.end))
        early = node.macro in ("all", "exists")
        least = _Range(min(walked.low, 1) if early else walked.low, walked.high)
        return self._sum(node.range) + _Range(1 + least.low * step.low, 1 + least.high * step.high)

    # Sizes

    def _size(self, node: ir.Node) -> _Range:
        match node:
            case ir.Const(value=value):
                held = value.value if isinstance(value, Optional) else value
                sized = isinstance(held, (str, bytes, list, tuple, dict, frozenset))
                return _Range(len(held), len(held)) if sized else _ONE  # type: ignore[arg-type]
            case ir.Field() | ir.OptField():
                bound = self.bounds.facts.get(_fact_name(node))
                return self._default(node.type) if bound is None else _Range(0, bound)
            case ir.MakeList():
                return _Range(len(node.elements) - len(node.optional), len(node.elements))
            case ir.MakeMap():
                return _Range(len(node.entries) - len(node.optional), len(node.entries))
            case ir.Cond():
                then, otherwise = self.sizes[id(node.then)], self.sizes[id(node.otherwise)]
                return _Range(min(then.low, otherwise.low), max(then.high, otherwise.high))
            case ir.Comprehension():
                walked = self.sizes[id(node.range)]
                return _Range(0 if node.predicate is not None else walked.low, walked.high)
            case ir.Bind():
                return self.sizes[id(node.body)]
            case ir.Cast():
                return self.sizes[id(node.operand)]
            case ir.OrElse():
                held, other = self.sizes[id(node.operand)], self.sizes[id(node.other)]
                return _Range(min(held.low, other.low), max(held.high, other.high))
            case ir.Call():
                return self._result_size(node)
        return self._default(node.type)

    def _result_size(self, node: ir.Call) -> _Range:
        kind = _inner(node.type).name
        if kind not in _SIZED:
            return _ONE
        sizes = [self.sizes[id(argument)] for argument in node.args]
        name = node.overload.partition("(")[0].removeprefix(".")
        if name == "_+_":
            return sizes[0] + sizes[1]
        if name in _NOT_LARGER:
            return _Range(0, sizes[0].high)
        if name == "lists.range":
            count = node.args[0].value if isinstance(node.args[0], ir.Const) else None
            return _Range(max(0, count), max(0, count)) if isinstance(count, int) else _Range(0, MAX_LIST)
        if name in ("split", "findAll", "regex.extractAll"):
            return _Range(0, sizes[0].high + 1)
        usual = self._default(node.type)
        return _Range(0, max([usual.high, *(size.high for size in sizes)]))

    def _default(self, kind: Type) -> _Range:
        inner = _inner(kind)
        by_type = {"list": self.bounds.elements, "map": self.bounds.entries, "dyn": self.bounds.text}
        by_type |= {"string": self.bounds.text, "bytes": self.bounds.text}
        high = by_type.get(inner.name)
        return _ONE if high is None else _Range(0, high)


_SIZED = frozenset(("string", "bytes", "list", "map", "dyn"))
_TEXT_OPERATORS = frozenset(("_+_", "_<_", "_<=_", "_>_", "_>=_"))
_NOT_LARGER = frozenset(
    (
        "substring", "trim", "lowerAscii", "upperAscii", "reverse", "slice", "distinct", "sort", "bytes",
        "charAt", "find", "unwrapOpt", "optional.unwrap", "dyn", "value", "first", "last",
    )
)  # fmt: skip


def _inner(kind: Type) -> Type:
    """What an optional may hold, else the type itself."""
    return kind.params[0] if kind.name == "optional_type" and kind.params else kind


def _tenth(size: int) -> int:
    return -(-size // 10)


def _least(sizes: list[_Range]) -> _Range:
    return _Range(min(size.low for size in sizes), min(size.high for size in sizes))


def _priced(price: Callable[[tuple[int, ...]], int], sizes: list[_Range]) -> _Range:
    return _Range(price(tuple(size.low for size in sizes)), price(tuple(size.high for size in sizes)))


def _fact_name(node: ir.Node) -> str:
    if isinstance(node, (ir.Field, ir.OptField)) and isinstance(node.base, ir.Var):
        name = node.base.name if not node.base.local else _inner(node.base.type).record
        return f"{name}.{node.path}"
    return ""
