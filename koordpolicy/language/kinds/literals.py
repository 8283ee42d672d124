"""How values are written down: one grammar a type, as users of Kubernetes write them.

A `Form` is data from which both the check of a literal and its JSON Schema are made, so that the two
cannot disagree. `literal_value` then gives the run-time value: `4` cores are 4000, `65%` is 65.0.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from types import MappingProxyType
from typing import Any

from koordpolicy.language.cel.errors import CelError
from koordpolicy.language.cel.types import (
    AMOUNT,
    BANDWIDTH,
    BOOL,
    CPU,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    MEMORY,
    PERCENT,
    STRING,
    TIMESTAMP,
    UINT,
    Type,
    Unit,
)
from koordpolicy.language.cel.values_time import parse_duration, parse_timestamp

INT_MAX = 2**63 - 1
_MOST_CORES = 10**12
_MOST_UNITS = 10**18
_LONGEST_TEXT = 4096
_LONGEST_LIST = 1000

_NUMBER = r"-?[0-9]{1,12}(?:\.[0-9]{1,9})?"
# The number of digits is bounded by the suffix, so that every amount fits in 64 bits.
_SCALED = (
    r"-?(?:[0-9]{1,18}(?:\.[0-9]{1,9})?|[0-9]{1,15}(?:\.[0-9]{1,9})?[kK]i?|[0-9]{1,12}(?:\.[0-9]{1,9})?Mi?"
    r"|[0-9]{1,9}(?:\.[0-9]{1,9})?Gi?|[0-9]{1,6}(?:\.[0-9]{1,9})?Ti?|[0-9]{1,3}(?:\.[0-9]{1,9})?Pi?"
    r"|[0-6](?:\.[0-9]{1,9})?Ei?)"
)
_DURATION = (
    r"-?(?=[0-9])(?:[0-9]{1,6}(?:\.[0-9]{1,9})?h)?(?:[0-9]{1,8}(?:\.[0-9]{1,9})?m)?"
    r"(?:[0-9]{1,10}(?:\.[0-9]{1,9})?s)?(?:[0-9]{1,12}(?:\.[0-9]{1,9})?ms)?(?:[0-9]{1,15}(?:\.[0-9]{1,9})?us)?"
    r"(?:[0-9]{1,18}ns)?"
)
_TIMESTAMP = (
    r"[0-9]{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])T(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]"
    r"(?:\.[0-9]{1,9})?(?:Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])"
)
_SCALES: Mapping[str, int] = MappingProxyType(
    {
        "": 1,
        **{suffix: 1000 ** (power + 1) for power, suffix in enumerate("kMGTPE")},
        "K": 1000,
        **{suffix + "i": 1024 ** (power + 1) for power, suffix in enumerate("KMGTPE")},
        "ki": 1024,
    }
)


def exactly(pattern: str) -> str:
    """The pattern for the whole text, equal in JSON Schema's dialect and Python's.

    Python's `$` matches before a final line break; the look-ahead forbids that and is idle elsewhere.
    """
    return f"^(?:{pattern})$(?!\\n)"


@dataclass(frozen=True, slots=True)
class LiteralProblem:
    """Why a literal does not fit. `wrong_type` tells KP106 from KP107; `path` leads into the literal."""

    message: str
    help: str | None = None
    wrong_type: bool = False
    path: tuple[str | int, ...] = ()
    replacement: str | None = None


class BadLiteral(ValueError):
    """A literal cannot be a value of its type; `problem` says why."""

    def __init__(self, problem: LiteralProblem) -> None:
        super().__init__(problem.message)
        self.problem = problem


@dataclass(frozen=True, slots=True)
class Form:
    """How literals of a type are written.

    `words` completes the sentence "write ...". A number is accepted between `minimum` and `maximum`
    when `number` is "integer" or "number", a text when it matches `pattern` (with `text`), `true`
    and `false` with `flag`. `element` permits lists, `entry` mappings of such literals.
    """

    words: str
    number: str | None = None
    minimum: int | None = -_MOST_UNITS
    maximum: int | None = _MOST_UNITS
    text: bool = False
    pattern: str | None = None
    choices: tuple[str, ...] = ()
    flag: bool = False
    element: "Form | None" = None
    entry: "Form | None" = None

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
            text: dict[str, Any] = {"type": "string", "maxLength": _LONGEST_TEXT}
            found.append({**text, "pattern": self.pattern} if self.pattern else text)
        if self.flag:
            found.append({"type": "boolean"})
        if self.element:
            found.append(
                {"type": "array", "items": any_of(self.element.schemas()), "maxItems": _LONGEST_LIST}
            )
        if self.entry:
            found.append(
                {
                    "type": "object",
                    "propertyNames": {"not": {"const": "cel"}},
                    "additionalProperties": any_of(self.entry.schemas()),
                    "maxProperties": _LONGEST_LIST,
                }
            )
        return found


def any_of(schemas: list[dict[str, Any]]) -> dict[str, Any]:
    """One schema for several alternatives."""
    return schemas[0] if len(schemas) == 1 else {"anyOf": schemas}


_FORMS: Mapping[Type, Form] = MappingProxyType(
    {
        BOOL: Form("`true` or `false`", flag=True),
        INT: Form("a whole number", number="integer", minimum=-INT_MAX - 1, maximum=INT_MAX),
        UINT: Form("a whole number from 0", number="integer", minimum=0, maximum=2 * INT_MAX + 1),
        DOUBLE: Form("a number", number="number", minimum=None, maximum=None),
        STRING: Form("a text", text=True),
        CPU: Form(
            "CPU in cores, such as `4` or `500m`",
            number="number",
            minimum=-_MOST_CORES,
            maximum=_MOST_CORES,
            text=True,
            pattern=exactly(_NUMBER + "m?"),
        ),
        MEMORY: Form(
            "an amount of bytes, such as `200Mi` or `4Gi`",
            number="integer",
            text=True,
            pattern=exactly(_SCALED),
        ),
        AMOUNT: Form(
            "an amount, such as `4`, `500m` or `4Gi`",
            number="number",
            text=True,
            pattern=exactly(f"{_NUMBER}m|{_SCALED}"),
        ),
        BANDWIDTH: Form(
            "bits per second, such as `50M` or `10G`", number="integer", text=True, pattern=exactly(_SCALED)
        ),
        PERCENT: Form("a percentage, such as `65%`", text=True, pattern=exactly(_NUMBER + "%")),
        DURATION: Form("a duration, such as `15m`, `900s` or `1h30m`", text=True, pattern=exactly(_DURATION)),
        TIMESTAMP: Form("a time, such as `2026-03-01T12:00:00Z`", text=True, pattern=exactly(_TIMESTAMP)),
    }
)
_SCALAR = Form(
    "a number, text or truth value",
    number="number",
    minimum=None,
    maximum=None,
    text=True,
    flag=True,
)
_FREE = Form(
    "a value",
    number="number",
    minimum=None,
    maximum=None,
    text=True,
    flag=True,
    element=_SCALAR,
    entry=_SCALAR,
)


def form_of(type: Type) -> Form:
    """How literals of a type are written. Types that have no literals accept anything plain."""
    if type.name == "list" and type.params:
        inner = form_of(type.params[0])
        return Form(f"a list of {inner.words}", element=inner)
    if type.name == "map" and len(type.params) == 2:
        inner = form_of(type.params[1])
        return Form(f"a mapping of names to {inner.words}", entry=inner)
    return _FORMS.get(type, _FREE)


def literal_problem(type: Type, literal: object) -> LiteralProblem | None:
    """Why `literal` cannot be a value of `type`; `None` when it can, as far as its form goes."""
    return form_problem(form_of(type), literal)


def form_problem(form: Form, literal: object) -> LiteralProblem | None:
    """Why `literal` is not of that form; `None` when it is."""
    if isinstance(literal, bool):
        return None if form.flag else _wrong_type(form, literal)
    if isinstance(literal, int | float):
        return _number_problem(form, literal)
    if isinstance(literal, str):
        return _text_problem(form, literal)
    if isinstance(literal, list):
        if form.element is None:
            return _wrong_type(form, literal)
        if len(literal) > _LONGEST_LIST:
            return LiteralProblem(f"the list has more than {_LONGEST_LIST} elements")
        return _inner_problem(form.element, enumerate(literal))
    if isinstance(literal, dict):
        if form.entry is None or "cel" in literal:
            return _wrong_type(form, literal)
        if len(literal) > _LONGEST_LIST:
            return LiteralProblem(f"the mapping has more than {_LONGEST_LIST} entries")
        return _inner_problem(form.entry, literal.items())
    return _wrong_type(form, literal)


def _inner_problem(form: Form, items: Any) -> LiteralProblem | None:
    for step, item in items:
        problem = form_problem(form, item)
        if problem:
            return LiteralProblem(
                problem.message, problem.help, problem.wrong_type, (step, *problem.path), problem.replacement
            )
    return None


def _number_problem(form: Form, literal: float) -> LiteralProblem | None:
    if form.number is None:
        if form.pattern and "%" in form.pattern:
            written = _decimal(literal * 100 if literal % 1 and abs(literal) < 1 else literal) + "%"
            return LiteralProblem(
                f"`{literal}` has no unit, a percentage is needed", f"write `{written}`", replacement=written
            )
        if form is _FORMS[DURATION]:
            written = _decimal(literal) + "s"
            return LiteralProblem(
                f"`{literal}` has no unit, a duration is needed", f"for seconds write `{written}`"
            )
        return _wrong_type(form, literal)
    if form.number == "integer" and literal % 1 != 0:
        return LiteralProblem(f"`{literal}` is not a whole number", f"write {form.words}")
    too_small = form.minimum is not None and literal < form.minimum
    if too_small or (form.maximum is not None and literal > form.maximum):
        return LiteralProblem(f"`{literal}` is out of range", f"write {form.words}, {_range(form)}")
    return None


def _decimal(number: float) -> str:
    """The number without exponent."""
    return f"{number:.6f}".rstrip("0").rstrip(".")


def _range(form: Form) -> str:
    least = form.minimum is not None and form.minimum > -_MOST_UNITS
    most = form.maximum is not None and form.maximum < _MOST_UNITS
    if least and most:
        return f"{form.minimum} to {form.maximum}"
    return f"at least {form.minimum}" if least else f"at most {form.maximum}"


def _text_problem(form: Form, literal: str) -> LiteralProblem | None:
    if form.choices:
        if literal in form.choices:
            return None
        return LiteralProblem(f"`{shortened(literal)}` is not permitted here", f"write {form.words}")
    if not form.text:
        return _wrong_type(form, literal)
    if len(literal) > _LONGEST_TEXT:
        return LiteralProblem(f"the text has {len(literal)} characters, more than {_LONGEST_TEXT}")
    if form.pattern and not re.search(form.pattern, literal):
        return LiteralProblem(
            f"`{shortened(literal)}` is not {_noun(form)}", _expression_hint(literal) or f"write {form.words}"
        )
    return None


def _wrong_type(form: Form, literal: object) -> LiteralProblem:
    help = f"write {form.words}"
    if isinstance(literal, str):
        word = literal.lower()
        if form.flag and word in ("yes", "on", "y", "no", "off", "n", "true", "false"):
            help = f"write `{'true' if word in ('yes', 'on', 'y', 'true') else 'false'}`"
        else:
            help = _expression_hint(literal) or help
    elif isinstance(literal, dict) and form.entry is None:
        help += ", or an expression as `{cel: ...}`"
    return LiteralProblem(f"expected {_noun(form)}, found {described(literal)}", help, wrong_type=True)


def _noun(form: Form) -> str:
    return form.words.split(", such as")[0]


def _expression_hint(text: str) -> str | None:
    # The search is quadratic in words, so it looks at no more than a line's beginning.
    if re.search(r"[A-Za-z_]\w*\s*(\.\s*[A-Za-z_]|\()|\?|==|&&|\|\|", text[:200]):
        return f"an expression is written `{{cel: ...}}`: `{{cel: {shortened(text)}}}`"
    return None


def described(value: object) -> str:
    """What a value is, in words, for messages."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    return f"the text `{shortened(value)}`" if isinstance(value, str) else f"`{value}`"


def shortened(text: str) -> str:
    """The text on one line of at most 60 characters, for messages."""
    line = text if "\n" not in text else text.split("\n", 1)[0] + " ..."
    return line if len(line) <= 60 else line[:57] + "..."


def literal_value(type: Type, literal: object, resource: str | None = None) -> object:
    """The run-time value of a literal that `literal_problem` accepts.

    cpu becomes int millicores and bytes int bytes (both rounded up, as Kubernetes does), percent
    float points, bandwidth int bits/s, durations and timestamps their run-time classes. An `amount`
    depends on its `resource`: millicores for cpu, else whole units; in a mapping the key names it.
    Raises `BadLiteral`, also where the form is right but the value is not, such as 30 February.
    """
    problem = literal_problem(type, literal)
    if problem:
        raise BadLiteral(problem)
    return _value(type, literal, resource)


def _value(type: Type, literal: Any, resource: str | None) -> object:
    if isinstance(literal, list):
        element = type.params[0] if type.name == "list" else DYN
        return [_value(element, item, resource) for item in literal]
    if isinstance(literal, dict):
        entry = type.params[1] if type.name == "map" else DYN
        return {key: _value(entry, item, key) for key, item in literal.items()}
    if type.unit is Unit.CPU or (type.unit is Unit.AMOUNT and resource == "cpu"):
        return _scaled(literal, 1000)
    if type.unit in (Unit.BYTES, Unit.BANDWIDTH, Unit.AMOUNT):
        return _scaled(literal, 1)
    if type.unit is Unit.PERCENT:
        return float(literal.removesuffix("%"))
    if type in (DURATION, TIMESTAMP):
        try:
            return parse_duration(literal) if type == DURATION else parse_timestamp(literal)
        except CelError as fault:
            raise BadLiteral(LiteralProblem(str(fault))) from None
    if type in (INT, UINT):
        return int(literal)
    return float(literal) if type == DOUBLE else literal


def _scaled(literal: float | str, units: int) -> int:
    """A quantity times `units`, exact, rounded up."""
    if isinstance(literal, int):
        return literal * units
    text = literal if isinstance(literal, str) else repr(literal)
    if text.endswith("m"):
        return math.ceil(Decimal(text[:-1]) * units / 1000)
    found = re.match(r"(.*?)([kKMGTPE]i?)?\Z", text)
    assert found is not None
    return math.ceil(Decimal(found.group(1)) * _SCALES[found.group(2) or ""] * units)
