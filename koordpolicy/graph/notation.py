"""Values as policies write them: 6500 millicores are `6500m`, 8589934592 bytes are `8Gi`, 65.0 percent is `65%`.

The inverse of `literal_value`: reading what stands here gives the value again.
"""

import json
import math
from collections.abc import Mapping
from typing import Any

from koordpolicy.language.cel.types import DYN, Type, Unit
from koordpolicy.language.cel.values import Duration, Optional, Timestamp, Value, key_value
from koordpolicy.language.cel.values_plain import to_plain
from koordpolicy.language.cel.values_time import NANOS, format_timestamp

NOTHING = "nothing"
"""What is shown where no rule decided, or for an optional without value."""

_BINARY = (("Ti", 1 << 40), ("Gi", 1 << 30), ("Mi", 1 << 20), ("Ki", 1 << 10))
_DECIMAL = (("G", 10**9), ("M", 10**6), ("k", 10**3))
_BYTES = (("T", 10**12), *_DECIMAL)
_MOST_DECIMALS, _MOST_DIGITS = 9, 6
"""What may stand behind and before the point of a quantity, of the largest unit too."""
_TIMES = (("h", 3600 * NANOS), ("m", 60 * NANOS), ("s", NANOS), ("ms", 10**6), ("us", 10**3), ("ns", 1))


CUT = "…"
"""Stands for what is left out of a value."""


class TooManyElements(ValueError):
    """The value is too large to be written out."""


class _Room:
    """What may still be written of one value. Values may share parts, and unfold to far more than memory holds."""

    __slots__ = ("is_short", "items", "text")

    def __init__(self, items: int, text: int) -> None:
        self.items = items
        self.text = text
        self.is_short = False

    def cut(self) -> str:
        self.is_short = True
        return CUT


def _for_documents() -> _Room:
    return _Room(items=10_000, text=100_000)


def _for_people() -> _Room:
    return _Room(items=100, text=1_000)


_DEEPEST = 64
"""Levels of lists and maps that are written: JSON in a fact has no more."""


def written(type: Type, value: Value, resource: str | None = None) -> object:
    """Plain data that stands for the value in a document.

    `resource` names what an `amount` counts, as in `literal_value`. A value of another class than its type
    promises is given as it is. Of one with more than 10,000 elements, of a text with more than 100,000 characters
    the rest is left out.
    """
    return _plain(type, value, resource, _for_documents())


def exactly(type: Type, value: Value) -> object:
    """As `written`, but whole. Raises `TooManyElements`."""
    room = _for_documents()
    plain = _plain(type, value, None, room)
    if room.is_short:
        raise TooManyElements("a value of more than 10,000 elements")
    return plain


def _plain(type: Type, value: Value, resource: str | None, room: _Room, depth: int = 0) -> object:
    if isinstance(value, Optional):
        inner = type.params[0] if type.params else DYN
        return None if value.value is None else _plain(inner, value.value, resource, room, depth)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return value if len(value) <= room.text else value[: room.text] + room.cut()
    if isinstance(value, list | tuple):
        element = type.params[0] if type.name == "list" and type.params else DYN
        items: list[object] = []
        for item in value:
            if room.items <= 0 or depth >= _DEEPEST:
                items.append(room.cut())
                break
            room.items -= 1
            items.append(_plain(element, item, resource, room, depth + 1))
        return items
    if isinstance(value, Mapping):
        entry = type.params[1] if type.name == "map" and len(type.params) == 2 else DYN
        entries: dict[str, object] = {}
        for key, item in value.items():
            if room.items <= 0 or depth >= _DEEPEST:
                entries[CUT] = room.cut()
                break
            room.items -= 1
            entries[str(key_value(key))] = _plain(entry, item, str(key), room, depth + 1)
        return entries
    if isinstance(value, Duration):
        return _duration(value)
    if isinstance(value, Timestamp):
        return format_timestamp(value)
    if isinstance(value, int | float):
        return _number(type.unit, value, resource)
    return to_plain(value)


def _number(unit: Unit | None, value: Any, resource: str | None) -> object:
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if unit is Unit.CPU or (unit is Unit.AMOUNT and resource == "cpu"):
        return int(value) // 1000 if value % 1000 == 0 else f"{value}m"
    if unit is Unit.PERCENT:
        return f"{plain_number(value)}%"
    if unit is Unit.BYTES:
        return _scaled(int(value), _BINARY)
    if unit is Unit.BANDWIDTH:
        return _scaled(int(value), _DECIMAL)
    return value if isinstance(value, float) else int(value)


def _scaled(value: int, steps: tuple[tuple[str, int], ...]) -> object:
    for suffix, size in steps:
        if value and value % size == 0:
            return f"{value // size}{suffix}"
    return value


def as_before(type: Type, value: Value, before: object) -> object:
    """As `exactly`, but bytes in the unit in which somebody wrote another value: `258.4Gi`."""
    if type.unit is Unit.BYTES and isinstance(value, int) and isinstance(before, str):
        for steps in (_BINARY, _BYTES):
            for at, (suffix, _) in enumerate(steps):
                if before.endswith(suffix):
                    return _in_units(value, steps[at:])
    return exactly(type, value)


def _in_units(value: int, steps: tuple[tuple[str, int], ...]) -> object:
    """A decimal number of the first unit in which it is read as the value again; fractions of bytes are rounded up."""
    for suffix, size in steps:
        for digits in range(_MOST_DECIMALS + 1):
            scale = 10**digits
            count = value * scale // size
            if -(-count * size // scale) == value and 0 <= count < scale * 10**_MOST_DIGITS:
                fraction = f".{count % scale:0{digits}d}" if digits else ""
                return f"{count // scale}{fraction}{suffix}"
    return value


def plain_number(value: float) -> str:
    """A finite number without exponent and without idle zeros: `65`, `0.5`."""
    text = f"{value:.9f}".rstrip("0").rstrip(".")
    return "0" if text in ("-0", "") else text


def _duration(value: Duration) -> str:
    """Units as large as can be: `1h30m`, `90s` as `1m30s`, `250ms`."""
    rest = abs(value.ns)
    parts = []
    for unit, size in _TIMES:
        count, rest = divmod(rest, size)
        if count:
            parts.append(f"{count}{unit}")
    return ("-" if value.ns < 0 else "") + ("".join(parts) or "0s")


def show(type: Type, value: Value) -> str:
    """The value on one line, for people: `6500m`, `[LS, LSR]`, `{cpu: 4}`, `nothing`; of a large one the beginning."""
    plain = _plain(type, value, None, _for_people())
    return NOTHING if plain is None else flow(plain)


def about(type: Type, value: Value) -> str:
    """As `show`, but bytes that are no whole number of larger units are rounded: `about 76.8Gi`."""
    if type.unit is Unit.BYTES and isinstance(value, int) and abs(value) >= 10 << 10 and value % (1 << 10):
        suffix, size = next((suffix, size) for suffix, size in _BINARY if abs(value) >= size)
        return f"about {plain_number(round(value / size, 1))}{suffix}"
    return show(type, value)


def flow(plain: object) -> str:
    """Plain data as YAML on one line. Texts are quoted where YAML would read something else."""
    if plain is None:
        return "null"
    if isinstance(plain, bool):
        return "true" if plain else "false"
    if isinstance(plain, str):
        return plain if _stands_plain(plain) else _quoted(plain)
    if isinstance(plain, list | tuple):
        return "[" + ", ".join(flow(item) for item in plain) + "]"
    if isinstance(plain, Mapping):
        return "{" + ", ".join(f"{flow(str(key))}: {flow(item)}" for key, item in plain.items()) + "}"
    return str(plain)


def _quoted(text: str) -> str:
    """In double quotes, with escapes for what may not stand in a YAML file."""
    shown = json.dumps(text, ensure_ascii=False)
    return "".join(letter if letter.isprintable() else _escaped(ord(letter)) for letter in shown)


def _escaped(code: int) -> str:
    return f"\\u{code:04X}" if code <= 0xFFFF else f"\\U{code:08X}"


_WORDS = frozenset(("", "null", "true", "false", "yes", "no", "on", "off", "y", "n", "~"))
_OPENING = frozenset("?:,[]{}#&*!|>'\"%@`= \t")


def _stands_plain(text: str) -> bool:
    """Whether a text needs no quotes, in any place and for any reader of YAML."""
    if text.lower() in _WORDS or text[0] in _OPENING or text[-1] in ": \t" or not text.isprintable():
        return False
    if text[0] == "-" and not text[1:2].isalnum():
        return False
    if any(mark in text for mark in (": ", " #", ",", "[", "]", "{", "}")):
        return False
    return not _looks_like_a_number(text)


def _looks_like_a_number(text: str) -> bool:
    digits = text.lstrip("+-")
    if not digits[:1].isdigit() and digits[:1] != ".":
        return False
    if digits[:2].lower() in ("0x", "0o"):
        return True
    try:
        float(text.replace("_", ""))
    except ValueError:
        # Dates and sexagesimal numbers mean something to older readers.
        return digits[:4].isdigit() and digits[4:5] == "-" and "T" not in text
    return True
