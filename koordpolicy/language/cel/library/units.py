"""Functions that give numbers their unit, or take it away."""

import math

from koordpolicy.language.cel.errors import Overflow
from koordpolicy.language.cel.functions import Function
from koordpolicy.language.cel.library.convert import int_from_double
from koordpolicy.language.cel.library.quantities import PARSING, parse_quantity
from koordpolicy.language.cel.library.row import function, plain, reads, signature, takes
from koordpolicy.language.cel.library.standard import same
from koordpolicy.language.cel.types import (
    AMOUNT,
    BANDWIDTH,
    CPU,
    DOUBLE,
    INT,
    MEMORY,
    PERCENT,
    STRING,
)
from koordpolicy.language.cel.values import INT_MAX, INT_MIN

_LIB = "units"
_NANO = 10**9
_BINARY = (("Pi", 1 << 50), ("Ti", 1 << 40), ("Gi", 1 << 30), ("Mi", 1 << 20), ("Ki", 1 << 10))
_WRITING = 300
"""Units of writing a double with all its digits."""


def _scaled(text: str, factor: int) -> int:
    """The quantity times `factor`, rounded up to a whole number, as Kubernetes rounds."""
    value = -(-parse_quantity(text).nanos * factor // _NANO)
    if not INT_MIN <= value <= INT_MAX:
        raise Overflow(f"`{text}` is too large")
    return value


def cpu(text: str) -> int:
    """Millicores of a CPU quantity: `4` -> 4000, `500m` -> 500. Raises InvalidArgument, Overflow."""
    return _scaled(text, 1000)


def memory(text: str) -> int:
    """Bytes of a memory quantity: `1Gi` -> 1073741824. Raises InvalidArgument, Overflow."""
    return _scaled(text, 1)


def percent_text(points: float) -> str:
    """Percent points for people: one digit after the point at most, `65%`, `12.5%`."""
    if not math.isfinite(points):
        return "NaN%" if math.isnan(points) else "-Infinity%" if points < 0 else "Infinity%"
    return f"{points:.1f}".removesuffix(".0").replace("-0", "0", 1 if abs(points) < 0.05 else 0) + "%"


def cpu_text(millicores: int) -> str:
    """Cores for people, and for `cpu`: `2`, `2.5`, `0.25`."""
    cores, rest = divmod(abs(millicores), 1000)
    digits = f"{rest:03}".rstrip("0")
    return ("-" if millicores < 0 else "") + (f"{cores}.{digits}" if digits else f"{cores}")


def memory_text(size: int) -> str:
    """Bytes for people: in the largest binary unit that fits, with one digit after the point at most: `62.7Gi`."""
    count = abs(size)
    suffix, unit = next((one for one in _BINARY if one[1] <= count), ("", 1))
    tenths = (count * 10 + unit // 2) // unit
    whole, rest = divmod(tenths, 10)
    return ("-" if size < 0 else "") + (f"{whole}.{rest}" if rest else f"{whole}") + suffix


def _ratio_text(ratio: float) -> str:
    return percent_text(ratio * 100.0)


def _ratio(points: float) -> float:
    return points / 100.0


LIBRARY: tuple[Function, ...] = (
    plain("cpu", _LIB, "a CPU quantity as Kubernetes writes it", "cpu('500m') + cpu('2')", (STRING,), CPU, cpu, reads(0, base=PARSING)),
    plain("memory", _LIB, "a memory quantity as Kubernetes writes it", "memory('1.5Gi')", (STRING,), MEMORY, memory, reads(0, base=PARSING)),
    plain("bandwidth", _LIB, "bits per second as Kubernetes writes quantities", "bandwidth('50M')",
          (STRING,), BANDWIDTH, memory, reads(0, base=PARSING)),
    function(
        "millicores", _LIB, "a number of thousandths of a core as CPU", "millicores(500) == cpu('500m')",
        signature("millicores", (INT,), CPU, same),
        signature("millicores", (DOUBLE,), CPU, int_from_double),
    ),
    function(
        "bytesOf", _LIB, "a number as bytes of memory", "bytesOf(1024) == memory('1Ki')",
        signature("bytesOf", (INT,), MEMORY, same),
        signature("bytesOf", (DOUBLE,), MEMORY, int_from_double),
    ),
    function(
        "percent", _LIB, "a number of percent points", "node.capacity.cpu * percent(65)",
        signature("percent", (INT,), PERCENT, float),
        signature("percent", (DOUBLE,), PERCENT, same),
    ),
    plain("ratio", _LIB, "a percentage as a share of 1", "ratio(percent(65)) == 0.65", (PERCENT,), DOUBLE, _ratio),
    plain("amount", _LIB, "a number as the amount of any resource", "amount(2)", (INT,), AMOUNT, same),
    function(
        "number", _LIB, "a quantity without its unit: millicores, bytes, percent points", "number(cpu('2')) == 2000",
        signature("number", (INT,), INT, same),
        signature("number", (DOUBLE,), DOUBLE, same),
    ),
    function(
        "quantityText", _LIB, "CPU in cores, or memory in its largest unit, for people to read", "quantityText(memory('65794664Ki')) == '62.7Gi'",
        signature("quantityText", (CPU,), STRING, cpu_text, cost=takes(_WRITING)),
        signature("quantityText", (MEMORY,), STRING, memory_text, cost=takes(_WRITING)),
    ),
    function(
        "percentText", _LIB, "a percentage, or a share of 1, for people to read", "percentText(0.655) == '65.5%'",
        signature("percentText", (PERCENT,), STRING, percent_text, cost=takes(_WRITING)),
        signature("percentText", (DOUBLE,), STRING, _ratio_text, cost=takes(_WRITING)),
    ),
)  # fmt: skip
