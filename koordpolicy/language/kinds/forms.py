"""How values are written down: one form a type, as users of Kubernetes write them.

A `LiteralForm` is data from which both the check of a literal (`literals`) and its JSON Schema are made, so
that the two cannot disagree.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from koordpolicy.language.cel.types import (
    AMOUNT,
    BANDWIDTH,
    BOOL,
    CPU,
    DOUBLE,
    DURATION,
    INT,
    MEMORY,
    PERCENT,
    STRING,
    TIMESTAMP,
    UINT,
    Type,
)

INT_MAX = 2**63 - 1
_MOST_CORES = 10**12
MOST_UNITS = 10**18
LONGEST_TEXT = 4096
LONGEST_LIST = 1000

_NUMBER = r"-?[0-9]{1,12}(?:\.[0-9]{1,9})?"
# The number of digits is bounded by the suffix, so that every amount fits in 64 bits.
_SCALED = (
    r"-?(?:[0-9]{1,18}(?:\.[0-9]{1,9})?|[0-9]{1,15}(?:\.[0-9]{1,9})?(?:k|Ki)|[0-9]{1,12}(?:\.[0-9]{1,9})?Mi?"
    r"|[0-9]{1,9}(?:\.[0-9]{1,9})?Gi?|[0-9]{1,6}(?:\.[0-9]{1,9})?Ti?|[0-9]{1,3}(?:\.[0-9]{1,9})?Pi?"
    r"|[0-6](?:\.[0-9]{1,9})?Ei?)"
)
# Each unit at most once and in order, with digits bounded so that the sum fits in 64 bits of nanoseconds.
_DURATION = (
    r"-?(?=[0-9])(?:[0-9]{1,6}(?:\.[0-9]{1,9})?h)?(?:[0-9]{1,7}(?:\.[0-9]{1,9})?m)?"
    r"(?:[0-9]{1,9}(?:\.[0-9]{1,9})?s)?(?:[0-9]{1,12}(?:\.[0-9]{1,9})?ms)?(?:[0-9]{1,15}(?:\.[0-9]{1,9})?us)?"
    r"(?:[0-9]{1,18}ns)?"
)
_DATE = r"[0-9]{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])"
_TIME = (
    r"T(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{1,9})?(?:Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])"
)
_TIMESTAMP = _DATE + _TIME
MOMENT = f"{_DATE}(?:{_TIME})?"
"""A date, or a time of a day."""


def exactly(pattern: str) -> str:
    """The pattern for the whole text, equal in JSON Schema's dialect and Python's.

    Python's `$` matches before a final line break; the look-ahead forbids that and is idle elsewhere.
    """
    return f"^(?:{pattern})$(?!\\n)"


@dataclass(frozen=True, slots=True)
class LiteralForm:
    """How literals of a type are written.

    `words` completes the sentence "write ...". A number is accepted between `minimum` and `maximum`
    when `number` is "integer" or "number", a text when it matches `pattern` (with `text`), `true`
    and `false` with `flag`. `element` permits lists, `entry` mappings of such literals, whose names match `names` and are `named`.
    """

    words: str
    number: str | None = None
    minimum: int | None = -MOST_UNITS
    maximum: int | None = MOST_UNITS
    text: bool = False
    pattern: str | None = None
    choices: tuple[str, ...] = ()
    flag: bool = False
    element: "LiteralForm | None" = None
    entry: "LiteralForm | None" = None
    names: str = ""
    named: str = ""

    def schemas(self) -> list[dict[str, Any]]:
        """The JSON Schemas of which one must hold."""
        found: list[dict[str, Any]] = []
        if self.number:
            bounds = {"minimum": self.minimum, "maximum": self.maximum}
            found.append(
                {"type": self.number, **{key: bound for key, bound in bounds.items() if bound is not None}}
            )
        if self.choices:
            found.append({"type": "string", "enum": list(self.choices)})
        elif self.text:
            text: dict[str, Any] = {"type": "string", "maxLength": LONGEST_TEXT}
            found.append({**text, "pattern": self.pattern} if self.pattern else text)
        if self.flag:
            found.append({"type": "boolean"})
        if self.element:
            found.append({"type": "array", "items": any_of(self.element.schemas()), "maxItems": LONGEST_LIST})
        if self.entry:
            found.append(
                {
                    "type": "object",
                    "propertyNames": {
                        "not": {"const": "cel"},
                        **({"pattern": self.names} if self.names else {}),
                    },
                    "additionalProperties": any_of(self.entry.schemas()),
                    "maxProperties": LONGEST_LIST,
                }
            )
        return found


def any_of(schemas: list[dict[str, Any]]) -> dict[str, Any]:
    """One schema for several alternatives."""
    return schemas[0] if len(schemas) == 1 else {"anyOf": schemas}


FORMS: Mapping[Type, LiteralForm] = MappingProxyType(
    {
        BOOL: LiteralForm("`true` or `false`", flag=True),
        INT: LiteralForm("a whole number", number="integer", minimum=-INT_MAX - 1, maximum=INT_MAX),
        UINT: LiteralForm("a whole number from 0", number="integer", minimum=0, maximum=2 * INT_MAX + 1),
        DOUBLE: LiteralForm("a number", number="number", minimum=None, maximum=None),
        STRING: LiteralForm("a text", text=True),
        CPU: LiteralForm(
            "CPU in cores, such as `4` or `500m`",
            number="number",
            minimum=-_MOST_CORES,
            maximum=_MOST_CORES,
            text=True,
            pattern=exactly(_NUMBER + "m?"),
        ),
        MEMORY: LiteralForm(
            "an amount of bytes, such as `200Mi` or `4Gi`",
            number="integer",
            text=True,
            pattern=exactly(_SCALED),
        ),
        AMOUNT: LiteralForm(
            "an amount, such as `4`, `500m` or `4Gi`",
            number="number",
            text=True,
            pattern=exactly(f"{_NUMBER}m|{_SCALED}"),
        ),
        BANDWIDTH: LiteralForm(
            "bits per second, such as `50M` or `10G`", number="integer", text=True, pattern=exactly(_SCALED)
        ),
        PERCENT: LiteralForm("a percentage, such as `65%`", text=True, pattern=exactly(_NUMBER + "%")),
        DURATION: LiteralForm(
            "a duration, such as `15m`, `900s` or `1h30m`", text=True, pattern=exactly(_DURATION)
        ),
        TIMESTAMP: LiteralForm(
            "a time, such as `2026-03-01T12:00:00Z`", text=True, pattern=exactly(_TIMESTAMP)
        ),
    }
)
_SCALAR = LiteralForm(
    "a number, text or truth value",
    number="number",
    minimum=None,
    maximum=None,
    text=True,
    flag=True,
)
_FREE = LiteralForm(
    "a value",
    number="number",
    minimum=None,
    maximum=None,
    text=True,
    flag=True,
    element=_SCALAR,
    entry=_SCALAR,
)


def form_of(type: Type) -> LiteralForm:
    """How literals of a type are written. Types that have no literals accept anything plain."""
    if type.name == "list" and type.params:
        inner = form_of(type.params[0])
        return LiteralForm(f"a list of {inner.words}", element=inner)
    if type.name == "map" and len(type.params) == 2:
        inner = form_of(type.params[1])
        return LiteralForm(f"a mapping of names to {inner.words}", entry=inner)
    return FORMS.get(type, _FREE)
