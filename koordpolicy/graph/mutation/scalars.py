"""Other numbers and amounts than those written down."""

import re
from collections.abc import Iterator

from koordpolicy.graph.mutation.operators import Operator

_FEW = 10
"""Whole numbers below this are counts, which are missed by one; larger ones are missed by much as well."""

_AMOUNT = re.compile(r"(?P<number>-?[0-9]+(?:\.[0-9]+)?)(?P<unit>[A-Za-z%]*)\Z")
_DATE = re.compile(r"(?P<year>[0-9]{4})-[0-9]{2}-")
_NUMBER = re.compile(r"[0-9]+")
_OTHER_UNIT = {
    "m": "", "Ki": "Mi", "Mi": "Gi", "Gi": "Mi", "Ti": "Gi", "k": "M", "M": "G", "G": "M", "T": "G",
    "ns": "us", "us": "ms", "ms": "s", "s": "m", "h": "m",
}  # fmt: skip
_OTHER_TIME = {**_OTHER_UNIT, "m": "s"}
_HUNDRED = 100


def other_numbers(value: float, least: float | None = None, most: float | None = None) -> Iterator[float]:
    """One more and one less; twice, or half, what is not small."""
    found: dict[float, None] = {}
    if isinstance(value, int):
        found[value + 1] = None
        found[2 * value if abs(value) >= _FEW else value - 1] = None
    else:
        found[value * 2 or 1.0] = None
        found[value / 2 or 1.0] = None
    yield from (number for number in found if number != value and _is_within(number, least, most))


def more_numbers(value: float, least: float | None = None, most: float | None = None) -> Iterator[float]:
    """None at all, ten times as much, and what is hardly another number."""
    known = {value, *other_numbers(value, least, most)}
    found = (0, value - 1, 10 * value) if isinstance(value, int) else (0.0, value + 1.0, value * 1.001)
    for number in found:
        if number not in known and _is_within(number, least, most):
            known.add(number)
            yield number


def _is_within(number: float, least: float | None, most: float | None) -> bool:
    return (least is None or number >= least) and (most is None or number <= most)


def other_amount(text: str, *, time: bool = False, thorough: bool = False) -> Iterator[tuple[Operator, str]]:
    """A percentage one point off and at half; an amount twice as large, and in another unit; a date a year off.

    Thoroughly, an amount one unit larger and at half, too.
    """
    if date := _DATE.match(text):
        yield Operator.NUMBER, f"{int(date['year']) + 1:04}{text[4:]}"
        return
    found = _AMOUNT.match(text)
    if found is None:
        if number := _NUMBER.search(text):  # a duration of several parts
            yield Operator.NUMBER, text[: number.start()] + str(2 * int(number[0])) + text[number.end() :]
        return
    number_text, unit = found["number"], found["unit"]
    value = float(number_text) if "." in number_text else int(number_text)
    if unit == "%":
        yield Operator.NUMBER, f"{_plain(value + 1 if value < _HUNDRED else value - 1)}%"
        if value:
            yield Operator.NUMBER, f"{_plain(value / 2)}%"
        return
    yield Operator.NUMBER, f"{_plain(value * 2 or 1)}{unit}"
    if thorough and value:
        yield Operator.NUMBER, f"{_plain(value + 1)}{unit}" if value != 1 else f"3{unit}"
        yield Operator.NUMBER, f"{_plain(value / 2)}{unit}"
    other = (_OTHER_TIME if time else _OTHER_UNIT).get(unit)
    if other is not None and value:
        yield Operator.UNIT, f"{number_text}{other}"


def _plain(value: float) -> str:
    return f"{value:.6f}".rstrip("0").rstrip(".")
