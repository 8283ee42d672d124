"""How a named function is declared: signatures, meaning, implementation and cost in one row."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from koordpolicy.language.cel.meter import Meter, Metered, charge, stop
from koordpolicy.language.cel.types import Type


class Size(NamedTuple):
    """How large a value is: `length` in characters, octets, elements or entries (1 of anything else); `extent` is that
    with all that is in it, each part as often as it occurs.
    """

    length: int
    extent: int


Cost = Callable[[tuple[Size, ...]], int]
"""Units of one call from the sizes of its arguments."""


@dataclass(frozen=True, slots=True)
class Overload:
    """One signature of a function.

    `id` is stable and unique, such as `contains(string,string)`. With `receiver` the first
    parameter is the target. `implementation` takes run-time values (see `values`) and raises
    `CelError`. `cost` gives the units of one call; without one it takes the few steps that any call takes. What
    `charges` takes a keyword argument `meter` and charges while it works, at most `cost`: for prices that the lengths of
    the arguments do not tell. All others are charged by lengths before they are called, and for what they made after.
    """

    id: str
    params: tuple[Type, ...]
    result: Type
    implementation: Callable[..., object]
    receiver: bool = False
    variadic: bool = False
    cost: Cost | None = None
    charges: bool = False

    @property
    def least(self) -> tuple[Size, ...]:
        """The sizes of arguments that the least price is for: what is smaller costs the same."""
        return () if self.charges else tuple(map(_usual, self.params))

    @property
    def usual_price(self) -> int:
        """Units of a call whose arguments are all small (see `is_small`); charged, where one may be larger, as well."""
        return 0 if self.cost is None else self.cost(tuple(map(_usual, self.params)))

    @property
    def metered(self) -> Metered | None:
        """The implementation with its price charged to the meter it takes first; None where it is free."""
        if self.charges:
            return _charging(self.implementation)
        if self.cost is None:
            return None
        return _priced(self.implementation, self.cost, self.usual_price)


@dataclass(frozen=True, slots=True)
class Function:
    """A function by name, as the manual shows it."""

    name: str
    library: str
    summary: str
    overloads: tuple[Overload, ...]
    example: str = ""


def overload_named(id: str, functions: Mapping[str, Function]) -> Overload | None:
    """The overload with an id; None for an id that asks for dispatch."""
    row = functions.get(id.partition("(")[0].removeprefix("."))
    return None if row is None else next((known for known in row.overloads if known.id == id), None)


def _charging(implementation: Callable[..., Any]) -> Metered:
    def call(meter: Meter, *arguments: Any) -> Any:
        meter[0] -= METERED_CALL
        return implementation(*arguments, meter=meter)

    return call


METERED_CALL = 30
"""Units of any call whose price depends on its arguments."""

_SHORT = 64
"""Characters up to which all texts cost the same."""

_FEW = 16
"""Elements up to which all lists and maps cost the same."""


def _usual(kind: Type) -> Size:
    length = _SHORT if kind.name in ("string", "bytes") else _FEW
    return Size(length, length)


def is_small(length: int, text: bool) -> bool:
    """Whether a text, or a list or map, costs what all small ones do."""
    return length <= (_SHORT if text else _FEW)


def _priced(implementation: Callable[..., Any], cost: Cost, usual: int) -> Metered:
    """Most values are small, and asking what they cost would take longer than what is done with them."""

    def call(meter: Meter, *arguments: Any) -> Any:
        units = usual
        for argument in arguments:
            if type(argument) in _SIZED and len(argument) > (_SHORT if type(argument) in _TEXTS else _FEW):
                units = cost(tuple(map(size_of, arguments)))
                break
        meter[0] -= units
        if meter[0] < 0:
            stop(meter)
        made = implementation(*arguments)
        if type(made) in _SIZED and len(made) > _FEW:
            charge(meter, price_of_made(len(made), type(made) in _TEXTS))
        return made

    return call


_SIZED = frozenset((str, bytes, list, tuple, dict))
_TEXTS = frozenset((str, bytes))
_SCALAR = Size(1, 1)


def size_of(value: object) -> Size:
    """The size of a value as its length tells it: parts of lists and maps count as one."""
    if type(value) not in _SIZED:
        return _SCALAR
    length = len(value)  # type: ignore[arg-type]
    return Size(length, length)


def price_of_made(length: int, text: bool) -> int:
    """Units of a text, list or map that is made: a tenth of a text's characters, each element one."""
    return -(-length // 10) if text else length
