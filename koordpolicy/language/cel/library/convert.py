"""Conversions between CEL types, each raising InvalidArgument or Overflow."""

import math
import re
from decimal import Decimal

from koordpolicy.language.cel.errors import InvalidArgument, Overflow
from koordpolicy.language.cel.values import INT_MAX, INT_MIN, UINT_MAX, Timestamp, UInt
from koordpolicy.language.cel.values_time import NANOS, make_timestamp

_TRUE = frozenset(("1", "t", "true", "TRUE", "True"))
_FALSE = frozenset(("0", "f", "false", "FALSE", "False"))
_INTEGER = re.compile(r"[+-]?[0-9]{1,25}")
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_SPECIAL = {"nan": math.nan, "inf": math.inf, "infinity": math.inf}
_SHOWN = 60
_LEAST_POWER, _FIRST_POWER = -4, 6


def int_from_uint(value: UInt) -> int:
    """Raises Overflow above the greatest int."""
    if value > INT_MAX:
        raise Overflow(f"{int(value)} does not fit int")
    return int(value)


def int_from_double(value: float) -> int:
    """Truncate toward zero; both ends of the range are excluded, as CEL wants."""
    if not -(2.0**63) < value < 2.0**63:
        raise Overflow(f"{value} does not fit int")
    return int(value)


def int_from_string(text: str) -> int:
    """Read a decimal integer."""
    if not _INTEGER.fullmatch(text):
        raise InvalidArgument(f"`{text[:_SHOWN]}` is no int")
    value = int(text)
    if not INT_MIN <= value <= INT_MAX:
        raise Overflow(f"`{text}` does not fit int")
    return value


def int_from_timestamp(value: Timestamp) -> int:
    """Whole seconds since the epoch."""
    return value.ns // NANOS


def uint_from_int(value: int) -> UInt:
    """Raises Overflow below 0."""
    if value < 0:
        raise Overflow(f"{value} does not fit uint")
    return UInt(value)


def uint_from_double(value: float) -> UInt:
    """Truncate toward zero."""
    if not 0.0 <= value < 2.0**64:
        raise Overflow(f"{value} does not fit uint")
    return UInt(value)


def uint_from_string(text: str) -> UInt:
    """Read a decimal integer without sign."""
    if not _INTEGER.fullmatch(text) or text[0] in "+-":
        raise InvalidArgument(f"`{text[:_SHOWN]}` is no uint")
    value = int(text)
    if value > UINT_MAX:
        raise Overflow(f"`{text}` does not fit uint")
    return UInt(value)


def double_from_string(text: str) -> float:
    """Read a decimal number, `NaN` or `Infinity`."""
    if len(text) <= 400 and _DECIMAL.fullmatch(text):
        value = float(text)
        if math.isinf(value):
            raise Overflow(f"`{text[:_SHOWN]}` does not fit double")
        return value
    special = _SPECIAL.get(text.lstrip("+-").lower()) if len(text) < 12 else None
    if special is None or text.count("+") + text.count("-") > 1:
        raise InvalidArgument(f"`{text[:_SHOWN]}` is no double")
    return -special if text[0] == "-" else special


def bool_from_string(text: str) -> bool:
    """Read one of the ten spellings that the language has."""
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    raise InvalidArgument(f"`{text[:_SHOWN]}` is no bool")


def string_from_bytes(value: bytes) -> str:
    """Decode UTF-8."""
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        raise InvalidArgument("bytes are not valid UTF-8") from None


def bytes_from_string(text: str) -> bytes:
    """Encode as UTF-8."""
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        raise InvalidArgument("the string holds surrogates, which UTF-8 cannot carry") from None


def string_from_double(value: float) -> str:
    """The shortest decimal that reads back as the same double, as Go's `%g` writes it: with an
    exponent below 1e-4 and from 1e6 on.
    """
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"
    _, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    power = len(digits) - 1 + int(exponent)
    if value == 0 or _LEAST_POWER <= power < _FIRST_POWER:
        return plain_decimal(value)
    fraction = "".join(map(str, digits[1:]))
    sign = "-" if value < 0 else ""
    return f"{sign}{digits[0]}{'.' if fraction else ''}{fraction}e{power:+03}"


def plain_decimal(value: float) -> str:
    """The shortest decimal without an exponent; `NaN`, `Infinity` for what has none."""
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return format(Decimal(repr(value)), "f").removesuffix(".0")


def timestamp_from_int(seconds: int) -> Timestamp:
    """The point in time `seconds` after the epoch."""
    return make_timestamp(seconds * NANOS)


def string_from_bool(value: bool) -> str:
    """`true` or `false`."""
    return "true" if value else "false"


def string_from_int(value: int) -> str:
    """Decimal digits, for int and uint alike."""
    return int.__repr__(value)  # `str` of a UInt would end with a u
