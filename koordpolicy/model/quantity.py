"""Kubernetes quantities: reading, canonical text, and whole amounts, in exact arithmetic.

A quantity is kept as an integer count of 10⁻⁹ units, the finest the API knows (finer text is rounded
away from zero, as the API server does), with the family of suffixes it was written in. No floats.
"""

import re
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Final

from koordpolicy.model.protocol import CPU

INT64_MAX: Final = 2**63 - 1
INT64_MIN: Final = -(2**63)

_NANOS: Final = 10**9
_SYNTAX: Final = re.compile(
    r"(?P<sign>[+-]?)(?P<whole>[0-9]*)(?:\.(?P<part>[0-9]*))?"
    r"(?P<suffix>Ki|Mi|Gi|Ti|Pi|Ei|[numkMGTPE]|[eE][+-]?[0-9]+)?",
    re.ASCII,
)
_DECIMAL_POWERS: Final = {
    "n": -9,
    "u": -6,
    "m": -3,
    "": 0,
    "k": 3,
    "M": 6,
    "G": 9,
    "T": 12,
    "P": 15,
    "E": 18,
}
_DECIMAL_SUFFIXES: Final = {power: suffix for suffix, power in _DECIMAL_POWERS.items()}
_BINARY_SUFFIXES: Final = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_LONGEST: Final = 64
_LARGEST_EXPONENT: Final = 64


class QuantityError(ValueError):
    """Text that is no Kubernetes quantity. The message says what was expected instead."""


class Notation(StrEnum):
    """The family of suffixes a quantity is written in."""

    DECIMAL = "decimal"
    BINARY = "binary"
    EXPONENT = "exponent"


@dataclass(frozen=True, slots=True)
class Quantity:
    """An exact amount: `nanos` x 10⁻⁹ units. Two quantities of one value in differing notation differ."""

    nanos: int
    notation: Notation = Notation.DECIMAL

    @classmethod
    def of(cls, units: int, notation: Notation = Notation.DECIMAL) -> "Quantity":
        """A whole number of units."""
        return cls(units * _NANOS, notation)

    @classmethod
    def of_milli(cls, milli: int) -> "Quantity":
        """A number of thousandths, such as millicores."""
        return cls(milli * 10**6)

    @property
    def units(self) -> int:
        """Whole units, rounded away from zero, kept within int64."""
        return _clamp(_divide_away(self.nanos, _NANOS))

    @property
    def milli(self) -> int:
        """Thousandths, rounded away from zero, kept within int64."""
        return _clamp(_divide_away(self.nanos, 10**6))

    def __str__(self) -> str:
        """The canonical text, as the API server writes it: `1500m`, `2Gi`, `1k`, `12e6`."""
        if self.nanos == 0:
            return "0"
        if self.notation is Notation.BINARY and abs(self.nanos) >= 1024 * _NANOS and self.nanos % _NANOS == 0:
            return _binary_text(self.nanos // _NANOS)
        return _decimal_text(self.nanos, -9, exponent=self.notation is Notation.EXPONENT)


def parse_quantity(value: object) -> Quantity:
    """Read a quantity from JSON: text in any of Kubernetes' forms, or a bare number.

    Forms: `2`, `0.5`, `.5`, `500m`, `100u`, `5n`, `1k` to `1E`, `1Ki` to `1Ei`, `12e6`, `1E-3`, each with
    an optional sign. Raises QuantityError for anything else, and for exponents beyond 64.
    """
    if isinstance(value, str):
        return _parse_text(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return Quantity.of(value)
    if isinstance(value, float):
        return _parse_text(repr(value))
    raise QuantityError(f"a quantity is text or a number, found {type(value).__name__}")


def canonical_text(value: object) -> str:
    """A quantity from JSON as the API server writes it. Raises QuantityError."""
    return _canonical(value) if type(value) is str else str(parse_quantity(value))


def milli_text(value: object) -> str:
    """The thousandths of a quantity from JSON as a whole number, in canonical text: `1500m` and `1.5` give `1500`. Raises QuantityError."""
    return _milli(value) if type(value) is str else str(Quantity.of(parse_quantity(value).milli))


def amount(resource: str, value: object) -> int:
    """The integer amount of a resource as Kubernetes' scheduler counts it.

    cpu → millicores, every other resource → whole units, both rounded away from zero. Raises
    QuantityError.
    """
    in_milli = resource == CPU
    if type(value) is str:
        return _amount(value, in_milli)
    quantity = parse_quantity(value)
    return quantity.milli if in_milli else quantity.units


def amount_text(resource: str, value: int) -> str:
    """The canonical text of an amount: the inverse of `amount` for whole amounts.

    Memory-like resources use decimal notation; use `Quantity.of(value, Notation.BINARY)` for `Gi`.
    """
    return _decimal_text(value, -3 if resource == CPU else 0) if value else "0"


@lru_cache(maxsize=16384)
def _amount(text: str, in_milli: bool) -> int:
    quantity = _parse_text(text)
    return quantity.milli if in_milli else quantity.units


@lru_cache(maxsize=16384)
def _canonical(text: str) -> str:
    return str(_parse_text(text))


@lru_cache(maxsize=16384)
def _milli(text: str) -> str:
    return str(Quantity.of(_parse_text(text).milli))


@lru_cache(maxsize=16384)
def _parse_text(text: str) -> Quantity:
    match = _SYNTAX.fullmatch(text) if len(text) <= _LONGEST else None
    if match is None or not (match["whole"] or match["part"]):
        shown = text if len(text) <= _LONGEST else text[:_LONGEST] + "..."
        raise QuantityError(
            f"`{shown}` is not a quantity; write a number with an optional suffix, such as `500m`, `2` or `4Gi`"
        )
    part = match["part"] or ""
    digits = int((match["whole"] or "0") + part)
    suffix = match["suffix"] or ""
    if suffix.endswith("i"):
        magnitude, notation = _binary_value(digits, len(part), suffix)
    elif suffix[:1] in ("e", "E") and len(suffix) > 1:
        power = int(suffix[1:])
        if abs(power) > _LARGEST_EXPONENT:
            raise QuantityError(f"`{text}` has an exponent beyond {_LARGEST_EXPONENT}")
        magnitude, notation = _scaled(digits, power - len(part)), Notation.EXPONENT
    else:
        magnitude, notation = _scaled(digits, _DECIMAL_POWERS[suffix] - len(part)), Notation.DECIMAL
    return Quantity(-magnitude if match["sign"] == "-" else magnitude, notation)


def _binary_value(digits: int, places: int, suffix: str) -> tuple[int, Notation]:
    factor = 1024 ** _BINARY_SUFFIXES.index(suffix)
    magnitude = _divide_away(digits * factor * _NANOS, 10**places)
    magnitude = min(magnitude, INT64_MAX * _NANOS)  # the API caps binary quantities, and only those
    # Below one unit, binary suffixes cannot show the value: the API falls back to decimal.
    return magnitude, Notation.DECIMAL if 0 < magnitude < _NANOS else Notation.BINARY


def _scaled(digits: int, power: int) -> int:
    """digits x 10^power units in nanos, rounded away from zero. `digits` is not negative."""
    power += 9
    return digits * 10**power if power >= 0 else _divide_away(digits, 10**-power)


def _divide_away(number: int, divisor: int) -> int:
    quotient, rest = divmod(abs(number), divisor)
    quotient += rest > 0
    return -quotient if number < 0 else quotient


def _clamp(number: int) -> int:
    return max(INT64_MIN, min(INT64_MAX, number))


def _decimal_text(number: int, power: int, *, exponent: bool = False) -> str:
    """The text of number x 10 ** power; the power is a multiple of three, at least -9."""
    while power < 18 and number % 1000 == 0:
        number //= 1000
        power += 3
    if exponent:
        return f"{number}e{power}" if power else str(number)
    return f"{number}{_DECIMAL_SUFFIXES[power]}"


def _binary_text(units: int) -> str:
    power = 0
    while power < len(_BINARY_SUFFIXES) - 1 and units % 1024 == 0:
        units //= 1024
        power += 1
    return f"{units}{_BINARY_SUFFIXES[power]}"
