"""Literals: whether one fits its type, why not, and what it is worth at run time.

`4` cores are 4000 millicores, `65%` is 65.0, `15m` a duration. How literals are written, `forms` says.
"""

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from types import MappingProxyType
from typing import Any

from koordpolicy.diagnostics.nearest import nearest
from koordpolicy.language.cel.errors import CelError
from koordpolicy.language.cel.types import DOUBLE, DURATION, DYN, INT, STRING, TIMESTAMP, UINT, Type, Unit
from koordpolicy.language.cel.values import UInt
from koordpolicy.language.cel.values_time import parse_duration, parse_timestamp
from koordpolicy.language.kinds.forms import (
    FORMS,
    LONGEST_LIST,
    LONGEST_TEXT,
    MOST_UNITS,
    LiteralForm,
    form_of,
)

_SCALES: Mapping[str, int] = MappingProxyType(
    {
        "": 1,
        **{suffix: 1000 ** (power + 1) for power, suffix in enumerate("kMGTPE")},
        **{suffix + "i": 1024 ** (power + 1) for power, suffix in enumerate("KMGTPE")},
    }
)


KEY = "[key]"
"""At the end of a path, as pydantic has it: the name itself, and not what it stands for."""


@dataclass(frozen=True, slots=True)
class LiteralProblem:
    """Why a literal does not fit. `wrong_type` tells KP106 from KP107; `path` leads into the literal.

    `replacement` is what to write instead, where that can be said; it is `safe` where nothing else can be meant.
    `quote` says that the literal belongs in quotes, in the very characters that stand in the file. `others` are the
    problems of other elements of the same list or mapping.
    """

    message: str
    help: str | None = None
    wrong_type: bool = False
    path: tuple[str | int, ...] = ()
    replacement: str | None = None
    safe: bool = False
    quote: bool = False
    others: tuple["LiteralProblem", ...] = ()


class BadLiteral(ValueError):
    """A literal cannot be a value of its type; `problem` says why."""

    def __init__(self, problem: LiteralProblem) -> None:
        super().__init__(problem.message)
        self.problem = problem


def _several(words: str) -> str:
    """`a percentage, such as `65%`` in the plural."""
    noun, comma, rest = words.partition(",")
    if not noun.startswith("a ") or " from " in noun or " of " in noun:
        return words
    return f"{noun.removeprefix('a ')}s{comma}{rest}"


def literal_problem(type: Type, literal: object) -> LiteralProblem | None:
    """Why `literal` cannot be a value of `type`; `None` when it can, as far as its form goes."""
    return form_problem(form_of(type), literal)


def form_problem(form: LiteralForm, literal: object) -> LiteralProblem | None:
    """Why `literal` is not of that form; `None` when it is."""
    if _is_list(form) and isinstance(literal, str | int | float):
        return _one_for_a_list(form, literal)
    if isinstance(literal, bool):
        return None if form.flag else _wrong_type(form, literal)
    if isinstance(literal, int | float):
        return _number_problem(form, literal)
    if isinstance(literal, str):
        return _text_problem(form, literal)
    if isinstance(literal, list):
        if form.element is None:
            return _listed_names(form, literal) or _wrong_type(form, literal)
        if len(literal) > LONGEST_LIST:
            return LiteralProblem(f"the list has more than {LONGEST_LIST} elements")
        return _inner_problem(form.element, enumerate(literal))
    if isinstance(literal, dict):
        if form.entry is None or "cel" in literal:
            return _wrong_type(form, literal)
        if len(literal) > LONGEST_LIST:
            return LiteralProblem(f"the mapping has more than {LONGEST_LIST} entries")
        wrong = list(_entry_problems(form, form.entry, literal))
        named = {problem.path[0] for problem in wrong}
        others = ((name, value) for name, value in literal.items() if name not in named)
        return _inner_problem(form.entry, others, wrong)
    return _wrong_type(form, literal)


def _entry_problems(
    form: LiteralForm, entry: LiteralForm, literal: Mapping[str, object]
) -> Iterator[LiteralProblem]:
    """What is wrong with a mapping's names, and with expressions in the place of its values."""
    for name, value in literal.items():
        if form.names and not re.search(form.names, name):
            yield name_problem(name, form.named)
        elif entry.entry is None and isinstance(value, dict) and list(value) == ["cel"]:
            yield LiteralProblem(
                "an expression gives the whole mapping, not one of its values",
                "write one expression: `{cel: \"{'" + name + "': ...}\"}`",
                wrong_type=True,
                path=(name,),
            )


def name_problem(name: str, named: str) -> LiteralProblem:
    """Why a mapping must not have a name, which is to be as `named` says."""
    return LiteralProblem(
        f"`{shortened(name)}` is not {named.split(', such as', maxsplit=1)[0]}",
        f"write {named}",
        path=(name, KEY),
    )


def _listed_names(form: LiteralForm, literal: Sequence[object]) -> LiteralProblem | None:
    """Kubernetes' list of `name` and `value` where a mapping belongs."""
    if form.entry is None or not literal:
        return None
    if not all(isinstance(one, dict) and isinstance(one.get("name"), str) for one in literal):
        return None
    plain = all(isinstance(one, dict) and one.keys() == {"name", "value"} for one in literal)
    written = {one["name"]: one["value"] for one in literal if isinstance(one, dict) and "value" in one}
    fits = plain and len(written) == len(literal) and form_problem(form, written) is None
    help = "write each as `NAME: value`"
    if fits and len(text := json.dumps(written, ensure_ascii=False)) <= _SHOWN:
        help = f"write a mapping: `{text}`"
    if not plain:
        help += "; what `valueFrom` would read, an expression can: `{cel: \"{'NODE': node.name}\"}`"
    return LiteralProblem(
        "expected a mapping of names to values, found Kubernetes' list of `name` and `value`",
        help,
        wrong_type=True,
    )


_SHOWN = 120


def _is_list(form: LiteralForm) -> bool:
    """Whether nothing but a list is of the form."""
    return form.element is not None and form.entry is None and not (form.number or form.text or form.flag)


def _one_for_a_list(form: LiteralForm, literal: str | float) -> LiteralProblem:
    """A single value where a list belongs: a list of it, where it may be an element."""
    assert form.element is not None
    problem = _wrong_type(form, literal)
    inner = form_problem(form.element, literal)
    written = listed(literal) if inner is None else inner.replacement
    if written is None or (inner is not None and not inner.safe):
        return problem
    written = written if inner is None else f"[{written}]"
    return replace(problem, help=f"write a list: `{written}`", replacement=written, safe=True)


def listed(literal: str | float) -> str | None:
    """A list of one value as it is written; None for what is no plain word or number."""
    text = json.dumps(literal) if isinstance(literal, bool) else str(literal)
    return f"[{text}]" if _PLAIN_WORD.fullmatch(text) else None


_PLAIN_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9_./-]*")


def _inner_problem(
    form: LiteralForm, items: Iterable[tuple[str | int, object]], before: Sequence[LiteralProblem] = ()
) -> LiteralProblem | None:
    """What is wrong with the elements of a list or mapping, as the first problem with the others."""
    found = list(before[:_MOST_TOLD])
    for step, item in items:
        if len(found) >= _MOST_TOLD:
            break
        problem = form_problem(form, item)
        if problem is not None:
            found += (replace(one, path=(step, *one.path), others=()) for one in (problem, *problem.others))
    return replace(found[0], others=tuple(found[1:_MOST_TOLD])) if found else None


_MOST_TOLD = 20
"""Problems of one literal that are told at once."""


def _number_problem(form: LiteralForm, literal: float) -> LiteralProblem | None:
    if form.number is None:
        if form.pattern and "%" in form.pattern:
            written = _decimal(literal * 100 if literal % 1 and abs(literal) < 1 else literal) + "%"
            return LiteralProblem(
                f"`{literal}` has no unit, a percentage is needed",
                f"write `{written}`",
                replacement=written,
                safe=isinstance(literal, int),
            )
        if form is FORMS[DURATION]:
            written = _decimal(literal) + "s"
            return LiteralProblem(
                f"`{literal}` has no unit, a duration is needed",
                f"for seconds write `{written}`",
                replacement=written,
            )
        return _wrong_type(form, literal)
    if form.number == "integer" and literal % 1 != 0:
        return LiteralProblem(f"`{literal}` is not a whole number", f"write {form.words}")
    too_small = form.minimum is not None and literal < form.minimum
    if too_small or (form.maximum is not None and literal > form.maximum):
        return LiteralProblem(f"`{literal}` is out of range", f"write {form.words}, {range_words(form)}")
    return None


def _decimal(number: float) -> str:
    """The number without exponent."""
    return f"{number:.6f}".rstrip("0").rstrip(".")


def range_words(form: LiteralForm) -> str:
    """Between what the numbers of a form lie."""
    least = form.minimum is not None and form.minimum > -MOST_UNITS
    most = form.maximum is not None and form.maximum < MOST_UNITS
    if least and most:
        return f"{form.minimum} to {form.maximum}"
    return f"at least {form.minimum}" if least else f"at most {form.maximum}"


def _text_problem(form: LiteralForm, literal: str) -> LiteralProblem | None:
    if form.choices:
        if literal in form.choices:
            return None
        return choice_problem(literal, form.choices, form.words)
    if not form.text:
        return _wrong_type(form, literal)
    if len(literal) > LONGEST_TEXT:
        return LiteralProblem(f"the text has {len(literal)} characters, more than {LONGEST_TEXT}")
    if form.pattern and not re.search(form.pattern, literal):
        closed = "".join(literal.split())
        if closed != literal and closed[:1].isdigit() and re.search(form.pattern, closed):
            message = f"`{shortened(literal)}` has a space in it"
            return LiteralProblem(message, f"write `{closed}`", replacement=closed, safe=True)
        return LiteralProblem(
            f"`{shortened(literal)}` is not {_noun(form)}", _expression_hint(literal) or f"write {form.words}"
        )
    return None


def choice_problem(text: str, choices: Sequence[str], words: str) -> LiteralProblem:
    """Why a text that is none of the choices does not fit, with the one that was probably meant."""
    same = same_word(text, choices)
    close = same or nearest(text, choices)
    help = f"did you mean `{close}`? Write {words}" if close else f"write {words}"
    message = f"`{shortened(text)}` is not permitted here"
    return LiteralProblem(message, help, replacement=close, safe=same is not None)


def _wrong_type(form: LiteralForm, literal: object) -> LiteralProblem:
    help = f"write {form.words}"
    replacement = None
    if isinstance(literal, str):
        word = literal.lower()
        if form.flag and word in ("yes", "on", "y", "no", "off", "n", "true", "false"):
            replacement = "true" if word in ("yes", "on", "y", "true") else "false"
            help = f"write `{replacement}`"
        else:
            help = _expression_hint(literal) or help
    elif isinstance(literal, dict) and form.entry is None:
        help += ", or an expression as `{cel: ...}`"
    return LiteralProblem(
        f"expected {_noun(form)}, found {described(literal)}",
        help,
        wrong_type=True,
        replacement=replacement,
        safe=replacement is not None,
        quote=isinstance(literal, int | float) and form == FORMS[STRING],
    )


def same_word(text: str, choices: Iterable[str]) -> str | None:
    """The choice that a text names but for capitals, if it is just one."""
    same = [choice for choice in choices if choice.casefold() == text.casefold()]
    return same[0] if len(same) == 1 else None


def _noun(form: LiteralForm) -> str:
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
    units = _units_of(type, resource)
    if units is not None:
        return _scaled(literal, units)
    if type.unit is Unit.PERCENT:
        return float(literal.removesuffix("%"))
    if type in (DURATION, TIMESTAMP):
        try:
            return parse_duration(literal) if type == DURATION else parse_timestamp(literal)
        except CelError as fault:
            raise BadLiteral(LiteralProblem(str(fault))) from None
    if type == INT:
        return int(literal)
    if type == UINT:
        return UInt(literal)
    return float(literal) if type == DOUBLE else literal


def rounded(type: Type, literal: object, resource: str | None = None) -> LiteralProblem | None:
    """Why a literal that `literal_problem` accepts is not worth what it says: a quantity below the unit, which is rounded up."""
    if isinstance(literal, list | dict):
        element = type.params[-1] if type.name in ("list", "map") and type.params else DYN
        items = literal.items() if isinstance(literal, dict) else enumerate(literal)
        for step, item in items:
            problem = rounded(element, item, step if isinstance(step, str) else None)
            if problem is not None:
                return replace(problem, path=(step, *problem.path))
        return None
    units = _units_of(type, resource)
    if units is None or isinstance(literal, bool) or not isinstance(literal, int | float | str):
        return None
    exact, whole = _exactly(literal, units), _scaled(literal, units)
    if exact == whole:
        return None
    unit = "thousandths of a core" if units > 1 else "bytes" if type.unit is Unit.BYTES else "units"
    written = f"{whole}m" if units > 1 else str(whole)
    return LiteralProblem(
        f"`{literal}` is no whole number of {unit}", f"write `{written}`", replacement=written
    )


def _units_of(type: Type, resource: str | None) -> int | None:
    """How many units one of a quantity is; None for what is no quantity."""
    if type.unit is Unit.CPU or (type.unit is Unit.AMOUNT and resource == "cpu"):
        return 1000
    return 1 if type.unit in (Unit.BYTES, Unit.BANDWIDTH, Unit.AMOUNT) else None


def _scaled(literal: float | str, units: int) -> int:
    """A quantity times `units`, rounded up."""
    return literal * units if isinstance(literal, int) else math.ceil(_exactly(literal, units))


def _exactly(literal: float | str, units: int) -> Decimal:
    """A quantity times `units`."""
    if isinstance(literal, int):
        return Decimal(literal * units)
    text = literal if isinstance(literal, str) else repr(literal)
    if text.endswith("m"):
        return Decimal(text[:-1]) * units / 1000
    found = re.match(r"(.*?)([kKMGTPE]i?)?\Z", text)
    assert found is not None
    return Decimal(found.group(1)) * _SCALES[found.group(2) or ""] * units
