"""Calls whose overload only run time can pick, by the types of the arguments."""

from collections.abc import Callable, Mapping

from koordpolicy.language.cel.errors import NoSuchOverload
from koordpolicy.language.cel.functions import Function, Overload
from koordpolicy.language.cel.library.math import greatest, least, numbers_only
from koordpolicy.language.cel.library.row import CALL
from koordpolicy.language.cel.meter import Meter, Metered, charge
from koordpolicy.language.cel.prices import DISPATCHED
from koordpolicy.language.cel.types import Type
from koordpolicy.language.cel.values import (
    CIDR,
    IP,
    URL,
    Duration,
    Optional,
    Quantity,
    Timestamp,
    TypeValue,
    UInt,
    Value,
    type_name,
)

Accepts = Callable[[Value], bool]

_CLASSES: Mapping[str, tuple[type, ...]] = {
    "null_type": (type(None),),
    "bool": (bool,),
    "int": (int,),
    "uint": (UInt,),
    "double": (float,),
    "string": (str,),
    "bytes": (bytes,),
    "list": (list, tuple),
    "map": (dict,),
    "record": (dict,),
    "type": (TypeValue,),
    "optional_type": (Optional,),
    "google.protobuf.Timestamp": (Timestamp,),
    "google.protobuf.Duration": (Duration,),
    "net.IP": (IP,),
    "net.CIDR": (CIDR,),
    "kubernetes.Quantity": (Quantity,),
    "kubernetes.URL": (URL,),
}

# Arguments of mixed number types fit no single overload, and yet have a meaning.
_MIXED: Mapping[str, Callable[..., Value]] = {
    "math.greatest": numbers_only(greatest),
    "math.least": numbers_only(least),
}


def accepts(kind: Type) -> Accepts:
    """A test whether a run-time value is of a static type, elements of lists and maps included."""
    if kind.name in ("dyn", "param", "error"):
        return lambda value: True
    classes = _CLASSES[kind.name]
    if kind.name == "list" and kind.params and kind.params[0].name not in ("dyn", "param"):
        element = accepts(kind.params[0])
        return lambda value: type(value) in classes and all(map(element, value))  # type: ignore[call-overload]
    return lambda value: type(value) in classes


def dispatcher(id: str, functions: Mapping[str, Function]) -> Metered | None:
    """The function behind a dispatch id such as `size(dyn)` or `.size(dyn)`; None for no such name.

    The leading dot asks for receiver overloads. The result takes the meter first, and raises NoSuchOverload when no
    overload takes the arguments.
    """
    receiver = id.startswith(".")
    name, _, rest = id.removeprefix(".").partition("(")
    count = rest.count(",") + 1 if rest != ")" else 0
    row = functions.get(name)
    if row is None:
        return None
    fitting = [
        (_tests(overload, count), overload.metered or _unpriced(overload.implementation))
        for overload in row.overloads
        if overload.receiver == receiver and _takes(overload, count)
    ]
    mixed = None if receiver else _MIXED.get(name)

    def call(meter: Meter, *arguments: Value) -> Value:
        # Every overload may look at the type of each element.
        elements = sum(len(value) for value in arguments if isinstance(value, (list, tuple)))
        charge(meter, DISPATCHED + 2 * CALL * elements)
        for tests, implementation in fitting:
            if all(test(argument) for test, argument in zip(tests, arguments, strict=True)):
                return implementation(meter, *arguments)
        if mixed is not None:
            return mixed(*arguments)
        raise NoSuchOverload(f"`{name}` does not take ({', '.join(map(type_name, arguments))})")

    return call


def _unpriced(implementation: Callable[..., Value]) -> Metered:
    return lambda meter, *arguments: implementation(*arguments)


def _takes(overload: Overload, count: int) -> bool:
    return len(overload.params) == count or (overload.variadic and count >= len(overload.params))


def _tests(overload: Overload, count: int) -> list[Accepts]:
    tests = [accepts(kind) for kind in overload.params]
    return tests + [tests[-1]] * (count - len(tests)) if tests else tests
