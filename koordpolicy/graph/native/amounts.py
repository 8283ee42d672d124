"""What pods request, as CEL over their JSON: whole numbers, rounded and limited as `model.amounts` and `model.quantity` say.

Kubernetes' quantities have no multiplication and tell no remainder, so that one with a fraction is read from its text. That is
canonical, and an API server rounds the amounts of pods up to thousandths before it asks anybody: digits, and `m` or `e-3`.
"""

from typing import Final

from koordpolicy.language.cel.escapes import quote_string
from koordpolicy.model.protocol import CPU
from koordpolicy.model.quantity import INT64_MAX

_HALF: Final = 2**32
"""Sums are taken in two halves, so that one beyond int64 is noticed before it fails."""
_BINARY: Final = ("Ki", "Mi", "Gi", "Ti", "Pi")


def amount_of(text: str, resource: str) -> str:
    """The amount that a quantity's text stands for: millicores of cpu, whole units of all else, rounded up."""
    return f"{amounts_of(f'[{text}]', resource)}[0]"


def amounts_of(texts: str, resource: str) -> str:
    """The same for each text of a list."""
    digits = "q.find('^[0-9]+')"
    if resource == CPU:
        most, whole, part = f"{INT64_MAX}m", "quantity(q).asInteger() * 1000", f"int({digits})"
    else:
        most, whole = str(INT64_MAX), "quantity(q).asInteger()"
        part = f"{digits}.size() > 3 ? int({digits}.substring(0, {digits}.size() - 3)) + 1 : 1"
    return (
        f"{texts}.map(q, quantity(q).compareTo(quantity({quote_string(most)})) >= 0 ? {INT64_MAX}"
        f" : quantity(q).isInteger() ? {whole} : {part})"
    )


def total(amounts: str) -> str:
    """The sum of a list of amounts, at most the end of int64."""
    high = f"l.map(a, a / {_HALF}).sum() + l.map(a, a % {_HALF}).sum() / {_HALF}"
    return f"[{amounts}].map(l, {high} >= {2**31} ? {INT64_MAX} : l.sum())[0]"


def equal_totals(first: str, second: str) -> str:
    """Whether two lists of amounts have the same sum, however large that is."""

    def both_halves(amounts: str) -> str:
        low = f"{amounts}.map(a, a % {_HALF}).sum()"
        return f"[{amounts}.map(a, a / {_HALF}).sum() + {low} / {_HALF}, {low} % {_HALF}]"

    return f"{both_halves(first)} == {both_halves(second)}"


def cpu_text(millicores: str) -> str:
    """What `quantityText` makes of CPU."""
    digits = (
        "(r < 100 ? '0' : '') + (r < 10 ? '0' : '')"
        " + string(r % 100 == 0 ? r / 100 : r % 10 == 0 ? r / 10 : r)"
    )
    return (
        f"[{millicores}].map(m, (m < 0 ? '-' : '') + {_unsigned('m / 1000')}"
        f" + (m % 1000 == 0 ? '' : '.' + [{_absolute('m % 1000')}].map(r, {digits})[0]))[0]"
    )


def memory_text(size: str) -> str:
    """What `quantityText` makes of bytes."""
    text = "string(b)"
    for power, suffix in enumerate(_BINARY, start=1):
        unit = 1024**power
        tenths = f"[b / {unit} * 10 + (b % {unit} * 10 + {unit // 2}) / {unit}]"
        told = f"string(t / 10) + (t % 10 == 0 ? '' : '.' + string(t % 10)) + '{suffix}'"
        text = f"b >= {unit} ? {tenths}.map(t, {told})[0] : {text}"
    least = f"s < -{INT64_MAX}"
    return (
        f"[{size}].map(s, {least} ? '-8192Pi' : (s < 0 ? '-' : '') + [{_absolute('s')}].map(b, {text})[0])[0]"
    )


def _absolute(number: str) -> str:
    return f"{number} < 0 ? -({number}) : {number}"


def _unsigned(number: str) -> str:
    return f"string({_absolute(number)})"
