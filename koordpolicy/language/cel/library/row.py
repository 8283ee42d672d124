"""How the rows of the function table are written down, and the prices they use."""

from collections.abc import Callable

from koordpolicy.language.cel.functions import Function, Overload
from koordpolicy.language.cel.types import Type

Cost = Callable[[tuple[int, ...]], int]


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

    `dotted` puts a dot before the id: for a receiver form beside an equal global one.
    """
    id = f"{'.' if dotted else ''}{name}({','.join(str(kind).replace(' ', '') for kind in params)})"
    return Overload(id, params, result, implementation, receiver, variadic, cost)


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


def reads(*positions: int) -> Cost:
    """A tenth of the sizes of the arguments at `positions`: text or bytes read once."""
    return lambda sizes: 1 + sum(-(-sizes[at] // 10) for at in positions)


def reads_twice(*positions: int) -> Cost:
    """A fifth of the sizes: text read and written."""
    return lambda sizes: 1 + sum(-(-sizes[at] // 5) for at in positions)


def walks(*positions: int) -> Cost:
    """The sizes of the arguments: every element of a list touched once."""
    return lambda sizes: 1 + sum(sizes[at] for at in positions)


def crosses(a: int, b: int, share: int = 1) -> Cost:
    """The product of two sizes, each divided by `share`."""
    return lambda sizes: 1 + -(-sizes[a] // share) * -(-sizes[b] // share)
