"""How a named function is declared: signatures, meaning, implementation and cost in one row."""

from collections.abc import Callable
from dataclasses import dataclass

from koordpolicy.language.cel.types import Type


@dataclass(frozen=True, slots=True)
class Overload:
    """One signature of a function.

    `id` is stable and unique, such as `contains(string,string)`. With `receiver` the first
    parameter is the target. `implementation` takes run-time values (see `values`) and raises
    `CelError`. `cost` gives the units of one call from the sizes of its arguments.
    """

    id: str
    params: tuple[Type, ...]
    result: Type
    implementation: Callable[..., object]
    receiver: bool = False
    variadic: bool = False
    cost: Callable[[tuple[int, ...]], int] | None = None


@dataclass(frozen=True, slots=True)
class Function:
    """A function by name, as the manual shows it."""

    name: str
    library: str
    summary: str
    overloads: tuple[Overload, ...]
    example: str = ""
