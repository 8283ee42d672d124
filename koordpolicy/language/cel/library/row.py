"""How the rows of the function table are written down, and the prices they use."""

from collections.abc import Callable

from koordpolicy.language.cel.functions import METERED_CALL, Cost, Function, Overload
from koordpolicy.language.cel.types import Type

CALL = 4
"""Units of a call that is written out in place."""


def signature(
    name: str,
    params: tuple[Type, ...],
    result: Type,
    implementation: Callable[..., object],
    *,
    receiver: bool = False,
    variadic: bool = False,
    cost: Cost | None = None,
    dotted: bool = False,
) -> Overload:
    """One overload with the id `name(types)`.

    `dotted` puts a dot before the id: for a receiver form beside an equal global one. An implementation with a
    parameter `meter` charges by itself.
    """
    id = f"{'.' if dotted else ''}{name}({','.join(str(kind).replace(' ', '') for kind in params)})"
    return Overload(
        id, params, result, implementation, receiver, variadic, cost, _takes_meter(implementation)
    )


def _takes_meter(implementation: Callable[..., object]) -> bool:
    code = getattr(implementation, "__code__", None)
    return code is not None and "meter" in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]


def function(name: str, library: str, summary: str, example: str, *overloads: Overload) -> Function:
    """A row of the table."""
    return Function(name, library, summary, overloads, example)


def method(
    name: str,
    library: str,
    summary: str,
    example: str,
    params: tuple[Type, ...],
    result: Type,
    implementation: Callable[..., object],
    cost: Cost | None = None,
) -> Function:
    """A row with one receiver overload."""
    return function(
        name, library, summary, example,
        signature(name, params, result, implementation, receiver=True, cost=cost),
    )  # fmt: skip


def plain(
    name: str,
    library: str,
    summary: str,
    example: str,
    params: tuple[Type, ...],
    result: Type,
    implementation: Callable[..., object],
    cost: Cost | None = None,
) -> Function:
    """A row with one global overload."""
    return function(
        name, library, summary, example, signature(name, params, result, implementation, cost=cost)
    )  # fmt: skip


def tenths(characters: int) -> int:
    """Units of reading or writing a text once."""
    return -(-characters // 10)


def takes(units: int) -> Cost:
    """The same whatever the arguments."""
    return lambda sizes: units


def reads(*positions: int, base: int = METERED_CALL) -> Cost:
    """A tenth of the sizes of the arguments at `positions`: text or bytes read once."""
    return lambda sizes: base + sum(tenths(sizes[at].length) for at in positions)


def reads_twice(*positions: int, base: int = METERED_CALL) -> Cost:
    """A fifth of the sizes: text read and written."""
    return lambda sizes: base + 2 * sum(tenths(sizes[at].length) for at in positions)


def walks(*positions: int, step: int = 1, base: int = METERED_CALL) -> Cost:
    """`step` for each element of the lists at `positions`."""
    return lambda sizes: base + step * sum(sizes[at].length for at in positions)
