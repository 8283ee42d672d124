"""`format`: a template with verbs, filled in from a list."""

import math
import re
from collections.abc import Callable, Sequence

from koordpolicy.language.cel.errors import InvalidArgument, NoSuchOverload
from koordpolicy.language.cel.library.convert import plain_decimal
from koordpolicy.language.cel.library.limits import bounded_text, check_text
from koordpolicy.language.cel.types import Type
from koordpolicy.language.cel.values import (
    CIDR,
    IP,
    Duration,
    Timestamp,
    TypeValue,
    UInt,
    Value,
    key_value,
    type_name,
)
from koordpolicy.language.cel.values_time import format_duration, format_timestamp

_VERB = re.compile(r"%(?:%|(?:\.([0-9]{1,4}))?([a-zA-Z]))")
_DEFAULT_DIGITS = 6
_MAX_DIGITS = 300
_DEPTH_LIMIT = 64

_TAKES: dict[str, frozenset[str]] = {
    "s": frozenset(
        (
            "string", "bool", "bytes", "int", "uint", "double", "list", "map", "type", "null_type",
            "google.protobuf.Timestamp", "google.protobuf.Duration", "net.IP", "net.CIDR",
        )
    ),
    "d": frozenset(("int", "uint", "double")),
    "f": frozenset(("int", "uint", "double")),
    "e": frozenset(("int", "uint", "double")),
    "b": frozenset(("int", "uint", "bool")),
    "o": frozenset(("int", "uint")),
    "x": frozenset(("int", "uint", "string", "bytes")),
    "X": frozenset(("int", "uint", "string", "bytes")),
}  # fmt: skip


def check_format(template: str, types: Sequence[Type]) -> None:
    """Check a literal template against the static types of its arguments.

    Raises InvalidArgument for an unknown verb, a missing or surplus argument, or a type the verb
    cannot show. dyn and unknown types pass.
    """
    used = 0
    for _, verb, _ in _parts(template):
        if not verb:
            continue
        if used == len(types):
            raise InvalidArgument(f"the format has more verbs than the {len(types)} arguments")
        name = types[used].name
        if name not in _TAKES[verb] and name not in ("dyn", "error", "param"):
            raise InvalidArgument(f"`%{verb}` cannot show {types[used]}")
        used += 1
    if used < len(types):
        raise InvalidArgument(f"the format uses {used} of {len(types)} arguments")


def format_text(template: str, arguments: Sequence[Value]) -> str:
    """Fill in a template. Raises InvalidArgument or NoSuchOverload, LimitExceeded by length."""
    result: list[str] = []
    used = size = 0
    for text, verb, digits in _parts(template):
        if not verb:
            result.append(text)
        elif used == len(arguments):
            raise InvalidArgument(f"the format needs more than {len(arguments)} arguments")
        else:
            result.append(_show(verb, arguments[used], digits))
            used += 1
        size += len(result[-1])
        check_text(size)
    return "".join(result)


def _parts(template: str) -> "list[tuple[str, str, int]]":
    """Literal stretches ("text", "", 0) and verbs ("", verb, digits) in order."""
    parts: list[tuple[str, str, int]] = []
    position = 0
    while (at := template.find("%", position)) >= 0:
        if at > position:
            parts.append((template[position:at], "", 0))
        found = _VERB.match(template, at)
        if found is None:
            raise InvalidArgument("`%` without a verb; write %% for a percent sign")
        verb = found.group(2)
        if verb is None:
            parts.append(("%", "", 0))
        elif verb not in _TAKES:
            raise InvalidArgument(f"unknown verb `%{verb}`")
        else:
            digits = int(found.group(1)) if found.group(1) else _DEFAULT_DIGITS
            if digits > _MAX_DIGITS:
                raise InvalidArgument(f"more than {_MAX_DIGITS} digits")
            parts.append(("", verb, digits))
        position = found.end()
    if position < len(template):
        parts.append((template[position:], "", 0))
    return parts


def _show(verb: str, value: Value, digits: int) -> str:
    if type_name(value) not in _TAKES[verb]:
        raise NoSuchOverload(f"`%{verb}` cannot show {type_name(value)}")
    if type(value) is float and not math.isfinite(value):
        return plain_decimal(value)
    return _SHOW[verb](value, digits)


def show(value: Value, depth: int = 0) -> str:
    """Any value as `%s` shows it; keys of maps in order. Raises NoSuchOverload."""
    if depth > _DEPTH_LIMIT:
        raise InvalidArgument(f"a value nested deeper than {_DEPTH_LIMIT} levels")
    match value:
        case str():
            return value
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int():
            return int.__repr__(value)
        case float():
            return plain_decimal(value)
        case bytes():
            return value.decode("utf-8", "replace")
        case list() | tuple():
            return bounded_text(f"[{', '.join(show(element, depth + 1) for element in value)}]")
        case dict():
            shown = sorted((show(key_value(k), depth + 1), show(v, depth + 1)) for k, v in value.items())
            return bounded_text("{" + ", ".join(f"{k}: {v}" for k, v in shown) + "}")
        case Timestamp():
            return format_timestamp(value)
        case Duration():
            return format_duration(value)
        case TypeValue():
            return value.name
        case IP():
            return str(value.address)
        case CIDR():
            return f"{value.address}/{value.length}"
    raise NoSuchOverload(f"`%s` cannot show {type_name(value)}")


def _decimal(value: Value, _: int) -> str:
    return plain_decimal(value) if type(value) is float else int.__repr__(value)


def _hex(value: int | str | bytes, _: int) -> str:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").hex()
    return value.hex() if isinstance(value, bytes) else f"{int(value):x}"


def _fixed(value: float, digits: int) -> str:
    return f"{_exact(value):.{digits}f}"


def _scientific(value: float, digits: int) -> str:
    return f"{_exact(value):.{digits}e}"


def _exact(value: float) -> float:
    return int(value) if isinstance(value, UInt) else value


_SHOW: dict[str, Callable[..., str]] = {
    "s": lambda value, _: show(value),
    "d": _decimal,
    "f": _fixed,
    "e": _scientific,
    "b": lambda value, _: f"{int(value):b}",
    "o": lambda value, _: f"{int(value):o}",
    "x": _hex,
    "X": lambda value, _: _hex(value, 0).upper(),
}
