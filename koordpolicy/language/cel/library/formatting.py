"""`format`: a template with verbs, filled in from a list."""

import math
import re
from collections.abc import Callable, Sequence

from koordpolicy.language.cel.errors import InvalidArgument, NoSuchOverload
from koordpolicy.language.cel.functions import METERED_CALL, Size
from koordpolicy.language.cel.library.convert import plain_decimal
from koordpolicy.language.cel.library.limits import MAX_TEXT, check_text
from koordpolicy.language.cel.library.row import tenths
from koordpolicy.language.cel.meter import UNMETERED, Meter, charge
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


def format_text(template: str, arguments: Sequence[Value], meter: Meter = UNMETERED) -> str:
    """Fill in a template. Raises InvalidArgument or NoSuchOverload, LimitExceeded by length."""
    charge(meter, _OF_TEMPLATE * len(template))
    result: list[str] = []
    used = size = 0
    for text, verb, digits in _parts(template):
        if not verb:
            result.append(text)
        elif used == len(arguments):
            raise InvalidArgument(f"the format needs more than {len(arguments)} arguments")
        else:
            result.append(_show(verb, arguments[used], digits, meter))
            used += 1
        size += len(result[-1])
        check_text(size)
    charge(meter, tenths(size))
    return "".join(result)


_OF_TEMPLATE = 16
"""Units of a template's character, which may be a verb, or half of one."""

_SHOWN = 80
"""Units of showing a number, point in time, address or such."""


def price_of_format(sizes: tuple[Size, ...]) -> int:
    """Units of filling in a template, where everything is shown in full."""
    template, arguments = sizes
    return (
        METERED_CALL + _OF_TEMPLATE * template.length + (_SHOWN + 1) * (arguments.extent + arguments.length)
    )


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


def _show(verb: str, value: Value, digits: int, meter: Meter) -> str:
    if type_name(value) not in _TAKES[verb]:
        raise NoSuchOverload(f"`%{verb}` cannot show {type_name(value)}")
    if type(value) is float and not math.isfinite(value):
        return plain_decimal(value)
    if verb == "s":
        return _Shower(meter).text(value)
    charge(meter, _SHOWN + (len(value) // 5 if isinstance(value, (str, bytes)) else 0))
    return _SHOW[verb](value, digits)


class _Shower:
    """Shows any value as `%s` does, keys of maps in order: no more characters than a text may have."""

    def __init__(self, meter: Meter) -> None:
        self._meter = meter
        self._left = MAX_TEXT

    def text(self, value: Value, depth: int = 0) -> str:
        """The text of the value or a part of it. Raises NoSuchOverload, InvalidArgument, LimitExceeded."""
        if depth > _DEPTH_LIMIT:
            raise InvalidArgument(f"a value nested deeper than {_DEPTH_LIMIT} levels")
        match value:
            case list() | tuple():
                self._take(2 + 2 * len(value))
                return f"[{', '.join([self.text(element, depth + 1) for element in value])}]"
            case dict():
                self._take(2 + 4 * len(value))
                charge(self._meter, len(value) * len(value).bit_length())
                parts = (
                    (self.text(key_value(k), depth + 1), self.text(v, depth + 1)) for k, v in value.items()
                )
                return "{" + ", ".join(f"{k}: {v}" for k, v in sorted(parts)) + "}"
            case str() | bytes():
                self._take(len(value))
                return value if isinstance(value, str) else value.decode("utf-8", "replace")
        charge(self._meter, _SHOWN)
        shown = _scalar(value)
        self._take(len(shown))
        return shown

    def _take(self, characters: int) -> None:
        """Count what is shown before it is made, and what is made of it in turn."""
        charge(self._meter, _PART + 2 * tenths(characters))
        self._left -= characters
        if self._left < 0:
            check_text(MAX_TEXT + 1)


_PART = 12
"""Units of any part of what is shown, beside its characters."""


def _scalar(value: Value) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int():
            return int.__repr__(value)
        case float():
            return plain_decimal(value)
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
    "d": _decimal,
    "f": _fixed,
    "e": _scientific,
    "b": lambda value, _: f"{int(value):b}",
    "o": lambda value, _: f"{int(value):o}",
    "x": _hex,
    "X": lambda value, _: _hex(value, 0).upper(),
}
